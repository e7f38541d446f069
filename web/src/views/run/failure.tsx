// What failed, at the top of a failed run: how many, which, why, and the one act that helps, with its effects.
import type { components } from "@/api/schema";
import { placeOf, retryUndoEffects, undoingOf, undoingWords, type Undoing } from "@/model/undoing";
import { retryable, retryEffects } from "@/model/acts";
import type { RunState, Visit } from "@/model/fold";
import { visitName } from "@/model/run-look";
import { instant } from "@/model/time";
import { Button, Words } from "@/ui/parts";
import { Glyph } from "@/ui/icon";
import { Effects } from "./acts/effects";
import { useActDialog, useRunOffers } from "./acts/use-acts";
import { useRunPage, useSeen } from "./context";

type Cause = components["schemas"]["FailureCause"];

const failedVisits = (state: RunState): Visit[] => [...state.visits.values()].filter((visit) => (visit.status === "failed" || visit.status === "timed_out") && visit.failure !== 0);

function titleOf(state: RunState, failed: readonly Visit[]): string {
  const first = failed[0];
  if (first === undefined) return state.error?.kind ?? "The run failed";
  const same = failed.filter((visit) => visit.node === first.node).length;
  const frame = first.frames.at(-1);
  const all = (frame === undefined ? undefined : state.groups.get(frame[0])?.total) ?? state.nodes.get(first.node)?.length ?? same;
  return all > 1 ? `${same} of ${all.toLocaleString()} branches of ${first.node} failed` : `${first.node} failed`;
}

/** The other errors in a few words: `3 × HTTP_403, 1 × TIMEOUT`. */
function rest(failed: readonly Visit[]): string {
  const kinds = new Map<string, number>();
  for (const visit of failed) kinds.set(visit.error?.kind ?? "failed", (kinds.get(visit.error?.kind ?? "failed") ?? 0) + 1);
  return [...kinds].map(([kind, count]) => `${count} × ${kind}`).join(", ");
}

export function FailureCard() {
  const { select } = useRunPage();
  const { folding, detail, loaded, cursor } = useSeen();
  const state = folding.newest; // it stays while the past is shown, so that nothing below it moves
  const offers = useRunOffers();
  const retry = offers.find((offer) => offer.icon === "retry");
  const skip = offers.find((offer) => offer.icon === "skip");
  const undoing = undoingOf(state);
  const [dialog, open] = useActDialog();
  if ((state.error === null && undoing === null) || !loaded) return null;
  const failed = failedVisits(state);
  const shown = failed.slice(0, 3);
  return (
    <section className="card run-err" aria-label="Failure">
      <div className="run-err-main">
        <h2 className="t4 b row"><span className="tone" data-tone="fail"><Glyph name="fail" /></span>{cursor === null ? "" : "In the end: "}{titleOf(state, failed)}</h2>
        <p className="c2 t2 run-err-words"><Words text={wordsOf(state, detail?.causes ?? [], failed)} /></p>
        <ul className={failed.length === 1 ? "run-err-list is-one" : "run-err-list"}>
          {shown.map((visit) => (
            <li key={visit.id}>
              <button type="button" onClick={() => select({ node: null, visit: visit.id, group: null })}>
                <span className="tone" data-tone="fail"><Glyph name="fail" small /></span>
                {failed.length > 1 && <span className="mono clip run-err-path">{visitName(visit)}</span>}
                <span className="clip"><Words text={visit.error?.message ?? "failed"} /></span>
                <span className="push c2 t1 nowrap"><span className="mono">{visit.error?.kind}</span> · {visit.attempts === 1 ? "1 try" : `${visit.attempts} tries`}</span>
              </button>
            </li>
          ))}
        </ul>
        {failed.length > 3 && <p className="t1"><button type="button" className="link t1" onClick={() => select({ node: failed[0]?.node ?? null, visit: null, group: null })}>+{failed.length - 3} more</button> <span className="c2">{rest(failed.slice(3))}</span></p>}
        {undoing !== null && <UndoingPart undoing={undoing} />}
      </div>
      {undoing !== null && undoing.failed.length > 0 && retry !== undefined && skip !== undefined && (
        <div className="run-err-act">
          <Button kind="primary" size="lg" icon="retry" onClick={() => open(retry.act)}>{retry.name}</Button>
          <Button icon="skip" onClick={() => open(skip.act)}>{skip.name}</Button>
          <Effects effects={retryUndoEffects(state)} />
        </div>
      )}
      {retry !== undefined && retryable(state).length > 0 && (
        <div className="run-err-act">
          <Button kind="primary" size="lg" icon="retry" onClick={() => open(retry.act)}>{retry.name}</Button>
          <Effects effects={retryEffects(state)} />
        </div>
      )}
      {dialog}
    </section>
  );
}

/** How far undoing has come, and what could not be undone. */
function UndoingPart({ undoing }: { undoing: Undoing }) {
  const { select } = useRunPage();
  return (
    <section className="run-undo" aria-label="Undoing">
      <h3 className="t2 row row-4"><span className="tone" data-tone={undoing.failed.length > 0 ? "fail" : "undo"}><Glyph name={undoing.failed.length > 0 ? "fail" : "undo"} small /></span>{undoing.failed.length > 0 ? "Undoing stopped: " : "Undoing: "}{undoingWords(undoing)}</h3>
      <ul className="run-err-list">
        {undoing.failed.slice(0, 3).map((one) => (
          <li key={one.record}>
            <button type="button" disabled={one.undoing === null} onClick={() => select({ node: null, visit: one.undoing, group: null })}>
              <span className="tone" data-tone="undo"><Glyph name="undo" small /></span>
              <span className="mono clip run-err-path">{placeOf(one)}</span>
              <span className="clip"><b>{one.error?.kind}</b> {one.error?.message}</span>
            </button>
          </li>
        ))}
      </ul>
      {undoing.failed.length > 3 && <p className="t1 c2">+{undoing.failed.length - 3} more, in the menu of the run</p>}
    </section>
  );
}

/** Why and when the run ended. An error that the list below has word for word is not said twice. */
function wordsOf(state: RunState, causes: readonly Cause[], failed: readonly Visit[]): string {
  const join = causes.find((cause) => cause.join != null);
  const when = state.ended === null ? "" : instant(state.ended);
  const told = join !== undefined ? (join.message ?? "") : failed.some((visit) => visit.error?.message === state.error?.message) ? "" : (state.error?.message ?? "");
  return [when, told].filter(Boolean).join(" · ");
}
