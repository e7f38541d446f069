// One node in the list of ranks on a phone.
import { Glyph } from "@/ui/icon";
import { JoinBar, Meter, Tally } from "../graph/bars";
import { useSummary, type Summaries } from "../graph/summaries";

interface Props {
  node: string;
  summaries: Summaries;
  aside: boolean;
  byFailure: boolean;
  last: boolean;
  onOpen: () => void;
}

export function PhoneStep({ node, summaries, aside, byFailure, last, onOpen }: Props) {
  const summary = useSummary(summaries, node);
  if (summary === undefined) return null;
  const future = summary.visits === 0 && summary.join === null;
  const classes = ["run-p-step", aside ? "is-aside" : "", byFailure ? "by-fail" : aside && future ? "by-not" : "", future ? "is-future" : "", summary.worst === "done" ? "is-quiet" : "", summary.stacked ? "is-stack" : "", last ? "is-last" : ""];
  return (
    <li className={classes.filter(Boolean).join(" ")} data-tone={summary.worst}>
      <button type="button" onClick={onOpen}>
        <span className="run-p-glyph tone" data-tone={summary.tone}><Glyph name={summary.glyph} /></span>
        <span className="run-p-body">
          <span className="run-p-line"><b className="clip">{node}</b>{summary.stacked && <span className="run-times">×{(summary.visits + summary.pending).toLocaleString()}</span>}<span className="run-p-val">{summary.value}</span></span>
          {summary.stacked && summary.join === null ? <><Meter summary={summary} /><Tally tally={summary.tally} /></> : summary.join !== null ? <JoinBar summary={summary} /> : summary.line !== "" && !future && <span className="run-p-sub c2">{summary.line}</span>}
        </span>
      </button>
    </li>
  );
}
