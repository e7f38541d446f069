// Folding an operator's changes to a run: a fork, and visits that were skipped or that jump.
import { drop } from "./groups";
import { isLive, type Event, type RunState, type Visit } from "./state";
import { change, move, revived, type Fold } from "./visits";

const ELSEWHERE = new Set<string | null>([null, "queue", "external", "subworkflow"]);

/** Whether a visit's work is done outside of the run now, and its result has not come. */
const isUnderWay = (visit: Visit): boolean => !visit.held && !visit.deferred && ELSEWHERE.has(visit.waiting) && (visit.status === "dispatched" || visit.status === "executing" || visit.status === "waiting");

/** The past is inherited; work that was under way is to be done again, as the same attempt. */
const forked: Fold = (state, event) => {
  state.forkedFrom = { run: event["from"] as string, point: event["point"] as number };
  const given = (event["changes"] as { input?: unknown } | null | undefined)?.input;
  if (given !== undefined && given !== null) state.input = given;
  for (const visit of [...state.visits.values()]) {
    if (isUnderWay(visit)) takeUp(state, visit, event);
    else if (visit.waiting === "human" && isLive(visit)) change(state, visit.id, { detail: null });
  }
  const shift = (event["shift_ms"] as number | undefined) ?? 0;
  for (const timer of [...state.timers.values()]) state.timers.set(timer.id, { ...timer, due: timer.due + shift });
};

function takeUp(state: RunState, visit: Visit, event: Event): void {
  drop(state, visit, (timer) => timer.purpose === "lease");
  const now = state.visits.get(visit.id) as Visit;
  move(state, now, event, "pending", { attempt: now.attempt - 1, attempts: now.attempts - 1, waiting: null, detail: null, worker: null, child: null, until: null }, "stop");
}

/** A visit is to be completed by hand: its work is told to stop, and a failure is taken back. */
const skipped: Fold = (state, event) => {
  const visit = state.visits.get(event["token"] as number);
  if (visit === undefined) return;
  if (!isLive(visit)) again(state, visit, event, "executing");
  else move(state, visit, event, "executing", { waiting: null, detail: null, child: null, until: null, gate: visit.gate === "open" ? "closed" : visit.gate }, "stop");
};

/** A failed visit is live for a moment, to be ended here and to go on elsewhere. */
const jumped: Fold = (state, event) => {
  const visit = state.visits.get(event["token"] as number);
  if (visit !== undefined && !isLive(visit)) again(state, visit, event, "pending");
};

function again(state: RunState, visit: Visit, event: Event, status: string): void {
  move(state, { ...revived(state, visit), held: false, arrivals: [] }, event, status, { waiting: null, error: null, until: null });
}

export const CHANGE_FOLDS: Record<string, Fold> = { "run.forked": forked, "token.skipped": skipped, "token.jumped": jumped };
