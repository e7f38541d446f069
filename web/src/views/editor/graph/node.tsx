// A node of the draft: its name, what it does, what is wrong with it, what a simulation did there.
import { Handle, Position, type NodeProps } from "@xyflow/react";
import { memo } from "react";
import type { FlowNode } from "@/model/flow";
import { kindLook } from "@/model/palette";
import { Glyph, Icon } from "@/ui/icon";
import { subjectOf, useEditing } from "../context";

export interface StepData extends Record<string, unknown> {
  node: FlowNode;
  /** Several branches visit it: how many, if that is known. Null: one. */
  stack: string | null;
}

export const Step = memo(function Step({ data }: NodeProps) {
  const { node, stack } = data as StepData;
  const { selection, findings, connecting, fixed, played } = useEditing();
  const look = kindLook(node.kind);
  const wrong = findings.filter((one) => {
    const about = subjectOf(one);
    return about !== null && "node" in about && about.node === node.ref;
  });
  const errors = wrong.filter((one) => one.error).length;
  const selected = selection !== null && "node" in selection && selection.node === node.ref;
  const target = connecting !== null && connecting.to === node.ref;
  const classes = ["node ed-node", stack !== null ? "is-stack" : "", selected ? "is-selected" : "", errors > 0 ? "is-problem" : "", target ? "is-target" : "", connecting?.from === node.ref ? "is-from" : ""];
  const sim = played.get(node.ref);
  const name = [node.ref, node.words, look.name, node.start ? "start" : "", stack === null ? "" : `several branches ${stack}`.trim(), wrong.length > 0 ? `${wrong.length} ${wrong.length === 1 ? "problem" : "problems"}` : "", selected ? "selected" : "", sim === undefined ? "" : `simulated: ${sim.done} completed, ${sim.active} under way, ${sim.failed} failed`];
  return (
    <>
      {node.start && <span className="ed-start" aria-hidden="true" />}
      <Handle type="target" position={Position.Left} isConnectable={!fixed} />
      <div className={classes.filter(Boolean).join(" ")} role="button" tabIndex={0} data-node={node.ref} aria-pressed={selected} aria-label={name.filter(Boolean).join(", ")}>
        <span className="ed-tile"><Icon name={look.icon} /></span>
        <span className="ed-node-text">
          <b className="clip">{node.ref}</b>{" "}
          <span className="clip">{node.words}</span>
        </span>
        {stack !== null && stack !== "" && <span className="ed-node-count" aria-hidden="true">{stack}</span>}
      </div>
      {wrong.length > 0 && (
        <span className="ed-node-wrong" data-tone={errors > 0 ? "fail" : "wait"} aria-hidden="true" title={wrong.map((one) => `${one.code}: ${one.message}`).join("\n")}>
          <Icon name="close" size={14} />
          {wrong.length}
        </span>
      )}
      {sim !== undefined && (
        <span className="ed-node-sim" aria-hidden="true">
          {sim.done > 0 && <span data-tone="done" className="tone row row-4"><Glyph name="done" small />{sim.done}</span>}
          {sim.active > 0 && <span data-tone="active" className="tone row row-4"><Glyph name="active" small />{sim.active}</span>}
          {sim.failed > 0 && <span data-tone="fail" className="tone row row-4"><Glyph name="fail" small />{sim.failed}</span>}
        </span>
      )}
      <Handle type="source" position={Position.Right} isConnectable={!fixed} />
    </>
  );
});
