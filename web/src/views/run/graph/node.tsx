// One node of the graph: a group with one action, to select it. What it shows follows from its summary.
import { Handle, Position, type NodeProps } from "@xyflow/react";
import { createContext, memo, useContext } from "react";
import { footOf, type NodeSummary } from "@/model/summary";
import { Glyph, Icon } from "@/ui/icon";
import { Histogram, JoinBar, Meter, Tally } from "./bars";
import { useSummary, type Summaries } from "./summaries";

export interface StepData extends Record<string, unknown> {
  ref: string;
  kind: string;
  words: string;
}

export interface GraphShared {
  readonly summaries: Summaries;
  readonly selected: string | null;
  readonly onSelect: (ref: string) => void;
  /** A branch of the join at a node, by its index, or those that have arrived, failed or are missing. */
  readonly onPick: (ref: string, group: number, pick: string) => void;
}
export const GraphContext = createContext<GraphShared | null>(null);

const ICONS: Record<string, string> = { human: "person", waits: "clock", calls: "link", native: "tool", task: "terminal", pass: "join" };

/** The icon of what a node does: by its kind of action where that says more. */
export function iconOf(kind: string, words: string): string {
  const action = words.split(/[ ,·]/)[0] ?? "";
  const known: Record<string, string> = { llm: "llm", http: "send", wait: "clock", signal: "mail", send: "mail", webhook: "send", mcp: "tool", set: "box" };
  return known[action] ?? ICONS[kind] ?? "box";
}

export const Step = memo(function Step({ data }: NodeProps) {
  const { ref, kind, words } = data as StepData;
  const shared = useContext(GraphContext) as GraphShared;
  const summary = useSummary(shared.summaries, ref);
  if (summary === undefined) return null;
  const isSelected = shared.selected === ref;
  const future = summary.visits === 0 && summary.join === null;
  const classes = ["node", "run-node", summary.stacked ? "is-stack" : "", isSelected ? "is-selected" : "", future ? "is-future" : "", summary.worst === "done" ? "is-quiet" : ""];
  return (
    <div
      className={classes.filter(Boolean).join(" ")} data-tone={summary.worst} data-node={ref} role="button" tabIndex={0} aria-pressed={isSelected}
      onClick={(event) => {
        const pick = (event.target as HTMLElement).closest<HTMLElement>("[data-pick]")?.dataset["pick"];
        if (pick !== undefined && summary.join !== null) shared.onPick(ref, summary.join.group, pick);
        else shared.onSelect(ref);
      }}
    >
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <div className="node-head" data-tone={summary.tone}>
        <Glyph name={summary.glyph} />
        <span className="node-name clip" title={ref}>{ref}</span>
        {summary.stacked && <span className="run-times">×{(summary.visits + summary.pending).toLocaleString()}</span>}
        {!future && <span className="node-val">{valueParts(summary)}</span>}
        <span className="sr">{spoken(summary)}</span>
      </div>
      <Body summary={summary} icon={iconOf(kind, words)} />
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
});

function valueParts(summary: NodeSummary) {
  if (summary.join === null || !summary.value.includes(" of ")) return summary.value;
  const [first, rest] = summary.value.split(" of ");
  return (
    <>
      <b>{first}</b> of {rest}
    </>
  );
}

function Body({ summary, icon }: { summary: NodeSummary; icon: string }) {
  if (summary.stacked && summary.join === null) {
    return (
      <>
        <Meter summary={summary} />
        <Tally tally={summary.tally} />
        {summary.histogram !== null && <Histogram bars={summary.histogram} tail={summary.tail} />}
        {summary.times !== null && <Times times={summary.times} />}
      </>
    );
  }
  const foot = footOf(summary, Date.now());
  const line = summary.visits === 0 && summary.join === null && summary.value !== "" ? summary.value : summary.line; // "not reached" needs the whole width
  return (
    <>
      {line !== "" && (
        <div className="node-sub"><Icon name={summary.join !== null ? "join" : icon} size={14} /><span className="clip">{line}</span></div>
      )}
      {summary.join !== null && <JoinBar summary={summary} />}
      {summary.gates.length > 0 && (
        <div className="run-ents" data-tone="ask">
          {summary.gates.map((gate) => <span key={gate.visit} className="run-ent">{gate.label}</span>)}
        </div>
      )}
      {foot !== null && <div className="node-sub run-foot">{foot}</div>}
    </>
  );
}

/** Durations in the middle, at the 95th of a hundred and at most; each once. */
function Times({ times: [middle, high, most] }: { times: NonNullable<NodeSummary["times"]> }) {
  if (middle === most) return <div className="run-axis"><span>each {most}</span></div>;
  const fits = `${middle}${high}${most}`.length <= 16; // three of `906 ms` would run into each other
  return <div className="run-axis"><span>p50 {middle}</span>{high !== most && fits && <span>p95 {high}</span>}<span>max {most}</span></div>;
}

function spoken(summary: NodeSummary): string {
  const states = summary.tally.map(([tone, count]) => `${count} ${tone}`).join(", ");
  return [summary.visits === 0 ? "not visited" : summary.visits === 1 ? "1 visit" : `${summary.visits} visits`, states].filter(Boolean).join(", ");
}
