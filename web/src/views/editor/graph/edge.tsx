// A transition: its line, and its label as a button that opens it. The number in it is the tier.
import { EdgeLabelRenderer, type EdgeProps } from "@xyflow/react";
import { memo } from "react";
import type { FlowEdge } from "@/model/flow";
import type { Route } from "@/model/route";
import { Icon } from "@/ui/icon";
import { subjectOf, useEditing } from "../context";

export interface WayData extends Record<string, unknown> {
  edge: FlowEdge;
  route: Route;
}

const ICONS: Partial<Record<FlowEdge["look"], string>> = { fan: "fan", join: "join", loop: "loop", trigger: "clock" };

/** Branches that come together: lines from the stack of cards into the transition. */
const strands = ([x, y]: readonly [number, number]): string => [-9, 9].map((by) => `M${x} ${y + by}C${x + 16} ${y + by} ${x + 20} ${y} ${x + 36} ${y}`).join("");

export const Way = memo(function Way({ data }: EdgeProps) {
  const { edge, route } = data as WayData;
  const { selection, select, findings } = useEditing();
  const { path, label } = route;
  const selected = selection !== null && "edge" in selection && selection.edge === edge.id;
  const wrong = findings.some((one) => {
    const about = subjectOf(one);
    return about !== null && "transition" in about && about.transition === edge.index && one.error;
  });
  const tone = selected ? "sel" : wrong || edge.look === "fail" ? "fail" : "plain";
  const bare = edge.label === "" && edge.tier === 0;
  const icon = ICONS[edge.look];
  return (
    <>
      {edge.look === "join" && route.start !== null && <path className={`edge ed-edge ed-strand ed-edge-${tone}`} d={strands(route.start)} />}
      <path className={`edge ed-edge ed-edge-${tone}`} d={path} markerEnd={`url(#ed-head-${tone})`} />
      <path className="ed-edge-hit" d={path} onClick={() => select({ edge: edge.id })} />
      <EdgeLabelRenderer>
        <div className="ed-label-at nopan" style={{ transform: `translate(-50%, -50%) translate(${label[0]}px, ${label[1]}px)` }}>
          <button
            type="button" data-edge={edge.id} className={`ed-label ed-label-${tone} ${bare ? "is-bare" : ""}`} aria-pressed={selected}
            aria-label={`Transition from ${edge.source} to ${edge.target}${edge.tier > 0 ? `, tier ${edge.tier}` : ""}${edge.label === "" ? "" : `, ${edge.label}`}${wrong ? ", has a problem" : ""}`}
            onClick={() => select({ edge: edge.id })}
          >
            {edge.tier > 0 && <b className="ed-tier">{edge.tier}</b>}
            {icon !== undefined && <Icon name={icon} size={14} />}
            {edge.label === "" && edge.tier > 0 ? "otherwise" : edge.label}
          </button>
          {edge.sub !== "" && <span className="ed-label-sub">{edge.sub}</span>}
        </div>
      </EdgeLabelRenderer>
    </>
  );
});

/** Arrow heads, once for all edges. */
export function Heads() {
  return (
    <svg className="sr" aria-hidden="true">
      <defs>
        {["plain", "sel", "fail"].map((name) => (
          <marker key={name} id={`ed-head-${name}`} className={`ed-head-${name}`} viewBox="0 0 8 8" refX="3" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">
            <path d="M0 0.5 L7.5 4 L0 7.5 Z" />
          </marker>
        ))}
      </defs>
    </svg>
  );
}
