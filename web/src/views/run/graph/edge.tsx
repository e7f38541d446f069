// Edges of the graph: taken, not taken (dashed), failure, loop; with counts. Why stands in the one tooltip of the graph.
import { EdgeLabelRenderer, type EdgeProps } from "@xyflow/react";
import { createContext, memo, useContext, useState } from "react";
import type { EdgeGiven, EdgeSummary } from "@/model/edges";
import { Glyph, Icon } from "@/ui/icon";
import { TIP, TipContext } from "./tip";
import { useWay } from "./ways";

export interface WayData extends Record<string, unknown> {
  edge: EdgeGiven;
  path: string;
  label: readonly [number, number];
}

/** Edges over which a token has just gone, while motion is reduced. */
export const BoldContext = createContext<ReadonlySet<string>>(new Set());

export const Way = memo(function Way({ data }: EdgeProps) {
  const { edge, path, label } = data as WayData;
  const summary = useWay(edge);
  const bold = useContext(BoldContext).has(edge.id);
  const [hovered, setHovered] = useState(false);
  const kind = summary.verdict === "open" ? "" : summary.verdict === "not" ? "edge-not" : summary.fails ? "edge-fail" : "edge-taken";
  const head = hovered ? "hover" : summary.verdict === "taken" ? (summary.fails ? "fail" : "taken") : "soft";
  return (
    <>
      <path className={`edge ${kind} ${hovered ? "is-hover" : ""} ${bold ? "is-bold" : ""}`} d={path} markerEnd={`url(#run-head-${head})`} />
      <EdgeLabelRenderer>
        <Label edge={edge} summary={summary} at={label} hovered={hovered} onHover={setHovered} />
      </EdgeLabelRenderer>
    </>
  );
});

interface LabelProps {
  edge: EdgeGiven;
  summary: EdgeSummary;
  at: readonly [number, number];
  hovered: boolean;
  onHover: (is: boolean) => void;
}

function Label({ edge, summary, at, hovered, onHover }: LabelProps) {
  const tips = useContext(TipContext);
  const enter = (label: HTMLElement, now: boolean) => {
    tips.show(edge, label, now);
    onHover(true);
  };
  const leave = () => {
    tips.hide();
    onHover(false);
  };
  return (
    <div className="run-edge-at nopan" style={{ transform: `translate(-50%, -50%) translate(${at[0]}px, ${at[1]}px)` }}>
      <button
        type="button" className={`run-edge-label ${summary.label === "" ? "is-empty" : ""}`} data-tone={summary.fails && summary.count > 0 ? "fail" : undefined} aria-describedby={hovered ? TIP : undefined}
        aria-label={`Edge from ${edge.source} to ${edge.target}: ${summary.verdict === "not" ? "not taken" : summary.verdict} ${summary.label}`}
        onPointerEnter={(event) => enter(event.currentTarget, false)} onPointerLeave={leave} onFocus={(event) => enter(event.currentTarget, true)} onBlur={leave}
      >
        {summary.fails && summary.count > 0 && <Glyph name="fail" small />}
        {edge.back && summary.label !== "" && <Icon name="loop" size={14} />}
        {summary.label}
      </button>
    </div>
  );
}

/** Arrow heads, once for all edges. */
export function Heads() {
  return (
    <svg className="sr" aria-hidden="true">
      <defs>
        {["soft", "taken", "fail", "hover"].map((name) => (
          <marker key={name} id={`run-head-${name}`} className={`run-head-${name}`} viewBox="0 0 8 8" refX="3" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">
            <path d="M0 0.5 L7.5 4 L0 7.5 Z" />
          </marker>
        ))}
      </defs>
    </svg>
  );
}
