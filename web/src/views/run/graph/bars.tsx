// Small pictures of counts: the bar of a fan-out, the bar of a join, tallies, and a histogram of durations.
import type { Tone } from "@/model/states";
import type { NodeSummary } from "@/model/summary";
import { Glyph } from "@/ui/icon";

const share = (count: number, total: number) => ({ width: `${(100 * count) / Math.max(1, total)}%` });

export function Meter({ summary }: { summary: NodeSummary }) {
  const total = summary.visits + summary.pending;
  return (
    <div className="meter" aria-hidden="true">
      {summary.tally.filter(([tone]) => tone !== "idle" && tone !== "queued").map(([tone, count]) => <i key={tone} data-tone={tone} style={share(count, total)} />)}
    </div>
  );
}

const BRANCH = { arrived: "done", failed: "fail", missing: "idle" } as const;

/** Its parts are picked with a pointer (`data-pick`); by keyboard the node opens its panel, which lists the same. */
export function JoinBar({ summary }: { summary: NodeSummary }) {
  const join = summary.join as NonNullable<NodeSummary["join"]>;
  return (
    <>
      <div className="run-quorum" aria-hidden="true">
        <div className="meter">
          <i data-tone="done" style={share(join.arrived, join.total)} />
          <i data-tone="fail" style={share(join.failed, join.total)} />
        </div>
        {join.needed !== null && join.needed < join.total && <span className="run-need" style={{ left: share(join.needed, join.total).width }} />}
      </div>
      {join.branches.length > 0 ? (
        <div className="run-tally run-branches">
          {join.branches.map(([branch, status]) => <span key={branch} data-tone={BRANCH[status]} data-pick={branch} title={`Branch ${branch}: ${status}`}><Glyph name={BRANCH[status]} small />[{branch}]</span>)}
        </div>
      ) : (
        <div className="run-tally">
          <span data-tone="done" data-pick="arrived" title="Show those that have arrived"><Glyph name="done" small />{join.arrived.toLocaleString()}</span>
          {join.failed > 0 && <span data-tone="fail" data-pick="failed" title="Show those that have failed"><Glyph name="fail" small />{join.failed}</span>}
          {join.missing > 0 && <span className="run-missing" data-pick="missing" title="Show those that are missing"><Glyph name="idle" small />{join.missing.toLocaleString()} {join.status === "open" ? "missing" : "left out"}</span>}
        </div>
      )}
    </>
  );
}

export function Tally({ tally }: { tally: readonly (readonly [Tone, number])[] }) {
  return (
    <div className="run-tally">
      {tally.slice(0, 5).map(([tone, count]) => (
        <span key={tone} data-tone={tone}><Glyph name={tone} small />{count.toLocaleString()}</span>
      ))}
    </div>
  );
}

export function Histogram({ bars, tail }: { bars: readonly number[]; tail: number }) {
  const width = 170 / bars.length;
  return (
    <svg className="run-hist" width="170" height="26" viewBox="0 0 170 26" preserveAspectRatio="none" aria-hidden="true">
      {bars.map((bar, index) => bar > 0 && <rect key={index} className={index >= tail ? "tail" : undefined} x={index * width} y={26 - bar * 26} width={Math.max(1, width - 1.5)} height={bar * 26} />)}
    </svg>
  );
}
