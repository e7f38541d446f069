// What changed between two moments of the run: places with the value before and after.
import { useMemo } from "react";
import { changesBetween } from "@/model/diff";
import { viewOf, type Event } from "@/model/fold";
import { Copy } from "@/ui/parts";
import { useSeen } from "../context";
import { Value } from "../inspector/value";

const MOST = 200;

export function Changes({ from, to, event }: { from: number; to: number; event: Event | undefined }) {
  const { folding } = useSeen();
  const changes = useMemo(() => {
    const before = viewOf(folding.at(from));
    return changesBetween(before, viewOf(folding.at(to)));
  }, [folding, from, to]);
  return (
    <div className="run-changes">
      {changes.length === 0 && <p className="c2 t2">Nothing of the run's state: it says why, or reports.</p>}
      <ul>
        {changes.slice(0, MOST).map((change) => (
          <li key={change.place} data-kind={change.kind}>
            <Copy text={change.place} shown={<span className="t1">{change.place}</span>} label={`path ${change.place}`} />
            {change.kind !== "added" && <Line mark="−" value={change.before} />}
            {change.kind !== "removed" && <Line mark="+" value={change.after} />}
          </li>
        ))}
      </ul>
      {changes.length > MOST && <p className="c2 t1">{changes.length - MOST} more changes.</p>}
      {event !== undefined && (
        <details>
          <summary className="section-title">The event as it was committed</summary>
          <Value value={event} />
        </details>
      )}
    </div>
  );
}

function Line({ mark, value }: { mark: string; value: unknown }) {
  const text = JSON.stringify(value) ?? "nothing";
  return <div className="run-change mono" data-mark={mark}><span aria-hidden="true">{mark}</span><span className="sr">{mark === "+" ? "after" : "before"}</span>{text.length > 400 ? `${text.slice(0, 400)}…` : text}</div>;
}
