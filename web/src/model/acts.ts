// What acts on a run will do, in numbers, before they are done. Pure.
import { isLive, type RunState, type Visit } from "./fold";

export interface Effect {
  readonly tone: "fail" | "stop" | "retry" | "done" | "wait" | "ask" | "active" | "undo";
  readonly count: number;
  readonly words: string;
}

const effect = (tone: Effect["tone"], count: number, one: string, many: string): Effect[] => (count === 0 ? [] : [{ tone, count, words: count === 1 ? one : many }]);

function of(state: RunState, which: (visit: Visit) => boolean): Visit[] {
  return [...state.visits.values()].filter(which);
}

/** Cancelling a run, or the visits that `inside` names. */
export function cancelEffects(state: RunState, inside: (visit: Visit) => boolean = () => true): Effect[] {
  const live = of(state, (visit) => isLive(visit) && inside(visit));
  const kept = of(state, (visit) => visit.status === "completed" && inside(visit)).length;
  return [
    ...effect("stop", live.length, "visit is cancelled", "visits are cancelled"),
    ...effect("active", live.filter((visit) => visit.status === "executing").length, "of them is at work and is told to stop", "of them are at work and are told to stop"),
    ...effect("ask", live.filter((visit) => visit.gate === "open").length, "question to a person is withdrawn", "questions to people are withdrawn"),
    ...effect("wait", live.filter((visit) => visit.child !== null).length, "run that it called is cancelled", "runs that it called are cancelled"),
    ...effect("done", kept, "completed visit stays as it is", "completed visits stay as they are"),
  ];
}

/** Retrying what has failed: all of it, or one visit. */
export function retryEffects(state: RunState, only: number | null = null): Effect[] {
  const failed = of(state, (visit) => visit.failure !== 0 && (only === null || visit.id === only));
  const back = of(state, (visit) => visit.fallen !== null && !isLive(visit));
  const kept = of(state, (visit) => visit.status === "completed").length;
  return [
    ...effect("retry", Math.max(failed.length, only === null ? 0 : 1), "visit tries again", "visits try again"),
    ...effect("stop", back.length, "cancelled sibling comes back", "cancelled siblings come back"),
    ...effect("done", kept, "result is kept", "results are kept"),
  ];
}

export const retryable = (state: RunState): Visit[] => of(state, (visit) => visit.failure !== 0 && state.failures.has(visit.failure));

export function pauseEffects(state: RunState): Effect[] {
  const live = of(state, isLive);
  return [
    ...effect("active", live.filter((visit) => visit.status === "executing").length, "visit goes on with its work; its result waits", "visits go on with their work; their results wait"),
    ...effect("wait", state.timers.size, "timer stands still", "timers stand still"),
    ...effect("ask", live.filter((visit) => visit.gate === "open").length, "question stays open", "questions stay open"),
  ];
}
