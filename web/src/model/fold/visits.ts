// Folding events of visits: their moves, waits and ends, and an operator's retry that brings them back.
import { drop, takeBack, withdraw } from "./groups";
import { isLive, orNull, type Event, type Frame, type RunError, type RunState, type Span, type Visit } from "./state";

export type Fold = (state: RunState, event: Event) => void;

/** Puts the changed visit back, and keeps the counts by status. */
export function put(state: RunState, before: Visit | undefined, visit: Visit): Visit {
  state.visits.set(visit.id, visit);
  if (before?.status !== visit.status) {
    if (before !== undefined) count(state, before.status, -1);
    count(state, visit.status, 1);
  }
  return visit;
}

function count(state: RunState, status: string, by: number): void {
  const next = (state.counts.get(status) ?? 0) + by;
  if (next === 0) state.counts.delete(status);
  else state.counts.set(status, next);
}

export function change(state: RunState, id: unknown, fields: Partial<Visit>): Visit | undefined {
  const visit = state.visits.get(id as number);
  return visit === undefined ? undefined : put(state, visit, { ...visit, ...fields });
}

const brief = (error: RunError | null): RunError | null => (error === null || error.traceback == null ? error : { ...error, traceback: null });

/** What a visit does in a state; null: it has ended. */
export function kindOf(status: string, waiting: string | null): Span["kind"] | null {
  if (status === "executing") return "run";
  if (waiting === "siblings") return "held";
  if (status === "waiting" && waiting !== "queue") return "wait";
  return status === "pending" || status === "dispatched" || status === "waiting" ? "queue" : null;
}

/** The spans of a visit that enters its next state now. `outcome`: how a run that ends here has ended. */
function moved(visit: Visit, at: number, status: string, waiting: string | null, outcome: Span["outcome"]): readonly Span[] {
  const kind = kindOf(status, waiting);
  const last = visit.spans.at(-1);
  if (last !== undefined && last.to === null && last.kind === kind && last.reason === waiting && last.attempt === visit.attempt) return visit.spans;
  const spans = visit.spans.slice();
  if (last !== undefined && last.to === null) {
    const why = outcome === "fail" && visit.error !== null ? { error: `${visit.error.kind}: ${visit.error.message}` } : {};
    spans[spans.length - 1] = { ...last, to: at, outcome: last.kind === "run" ? (outcome ?? "done") : outcome, ...why };
  }
  if (kind !== null) spans.push({ kind, from: at, to: null, attempt: visit.attempt, reason: waiting, outcome: null });
  return spans;
}

export function move(state: RunState, visit: Visit, event: Event, status: string, fields: Partial<Visit>, outcome: Span["outcome"] = null): Visit {
  const waiting = fields.waiting === undefined ? visit.waiting : fields.waiting;
  const next = { ...visit, ...fields, status, waiting, since: event.at, deferred: false };
  next.spans = moved(next, event.at, status, waiting, outcome);
  return put(state, visit, next);
}

const created: Fold = (state, event) => {
  const id = event["token"] as number;
  const node = event["node"] as string;
  const visit: Visit = {
    id, node, path: event["path"] as string, frames: (event["frames"] ?? []) as Frame[], status: "pending", waiting: null, detail: null,
    attempt: 0, attempts: 0, error: null, via: orNull(event["via"]), origin: orNull(event["origin"]), why: orNull(event["why"]),
    compensation: event["mode"] === "compensation", created: event.at, createdSeq: event.seq, since: event.at, until: null, ended: null, endedSeq: null,
    arrivals: [], held: false, timers: [], gate: null, asked: null, child: null, worker: null, queue: null,
    spans: [{ kind: "queue", from: event.at, to: null, attempt: 0, reason: null, outcome: null }], text: null, textStep: null, failure: 0, fallen: null, deferred: false,
  };
  put(state, undefined, visit);
  state.nodes.set(node, [...(state.nodes.get(node) ?? []), id]);
  if (visit.compensation) {
    const undone = state.compensations.get(event["record"] as number);
    if (undone !== undefined) state.compensations.set(undone.record, { ...undone, undoing: id });
    return;
  }
  begun(state, visit.frames);
  const fired = state.fired.get(node) ?? 0;
  if (fired > 0) state.fired.set(node, fired - 1);
  else if (visit.via !== null) crossed(state, visit.via, event, visit.origin, visit.why);
};

export function crossed(state: RunState, edge: string, event: Event, origin: number | null, why: string | null): void {
  state.edges.set(edge, { count: (state.edges.get(edge)?.count ?? 0) + 1, last: { seq: event.seq, at: event.at, origin, why } });
}

/** Branches that have begun to exist. */
export function begun(state: RunState, frames: readonly Frame[]): void {
  for (const [id, branch] of frames) {
    const group = state.groups.get(id);
    if (group !== undefined && branch >= group.begun) state.groups.set(id, { ...group, begun: branch + 1 });
  }
}

const dispatched: Fold = (state, event) => {
  const visit = state.visits.get(event["token"] as number);
  if (visit === undefined) return;
  const again = Boolean(event["recovery"]);
  const queue = orNull<string>(event["queue"]);
  if (again) drop(state, visit, (timer) => timer.purpose === "lease");
  const now = state.visits.get(visit.id) as Visit;
  move(state, now, event, "dispatched", {
    attempts: now.attempts + (again ? 0 : 1), attempt: event["attempt"] as number, error: null, queue, worker: null,
    waiting: queue !== null ? "queue" : now.waiting, text: again ? now.text : null,
  });
};

const started: Fold = (state, event) => {
  const visit = state.visits.get(event["token"] as number);
  if (visit === undefined) return;
  const first = visit.status === "pending";
  move(state, visit, event, "executing", {
    attempts: visit.attempts + (first ? 1 : 0), attempt: event["attempt"] as number, worker: orNull(event["worker"]), waiting: null,
  });
};

const waiting: Fold = (state, event) => {
  if (event["arrival"] !== undefined) {
    holdArrivalAgain(state, event["arrival"] as number);
    return;
  }
  const visit = state.visits.get(event["token"] as number);
  if (visit === undefined) return;
  const reason = event["reason"] as string;
  const until = orNull<number>(event["until"]);
  if (!isLive(visit)) {
    waitAgain(state, visit, event, reason);
  } else if (reason === "siblings") {
    move(state, visit, event, "waiting", { waiting: reason, attempts: visit.attempts + ((event["tries"] as number | undefined) ?? 0), until });
  } else {
    const detail = orNull<{ child?: string; life?: number }>(event["detail"]);
    const back = reason === "subworkflow" && detail?.life !== undefined ? { child: detail.child ?? null } : {};
    move(state, visit, event, "waiting", { waiting: reason, detail, until, ...back });
  }
};

function holdArrivalAgain(state: RunState, id: number): void {
  const arrival = state.fallenArrivals.get(id);
  if (arrival === undefined) return;
  state.fallenArrivals.delete(id);
  const visit = state.visits.get(arrival.token);
  if (visit !== undefined && visit.held && isLive(visit)) {
    put(state, visit, { ...visit, arrivals: [...visit.arrivals, id] });
    state.arrivals.set(id, arrival);
  } else {
    state.arrivals.set(id, { ...arrival, token: 0 });
  }
}

/** Makes a visit live again that has failed or went down with a failure. */
export function revived(state: RunState, visit: Visit): Visit {
  if (visit.failure !== 0) takeBack(state, visit.failure);
  return { ...visit, failure: 0, fallen: null, ended: null, endedSeq: null };
}

function waitAgain(state: RunState, visit: Visit, event: Event, reason: string): void {
  const arrivals = visit.fallen ?? [];
  const back = revived(state, visit);
  if (reason === "siblings") {
    for (const arrival of arrivals) state.arrivals.set(arrival.id, arrival);
    move(state, back, event, "waiting", { waiting: reason, error: null, held: true, arrivals: arrivals.map((arrival) => arrival.id) });
    return;
  }
  const detail = orNull<{ child?: string }>(event["detail"]);
  move(state, back, event, "waiting", { waiting: reason, error: null, held: false, arrivals: [], detail, child: detail?.child ?? null });
}

const retryScheduled: Fold = (state, event) => {
  let visit = state.visits.get(event["token"] as number);
  if (visit === undefined) return;
  const operator = event["by"] !== undefined;
  if (operator) visit = { ...revived(state, visit), held: false, arrivals: [] };
  drop(state, visit, (timer) => timer.purpose !== "trigger");
  const timers = state.visits.get(visit.id)?.timers ?? [];
  const until = operator ? null : (event["due"] as number);
  move(state, { ...visit, timers, status: state.visits.get(visit.id)?.status ?? visit.status }, event, operator ? "pending" : "waiting", {
    waiting: operator ? null : "timer", attempts: visit.attempts + ((event["tries"] as number | undefined) ?? 0),
    error: brief(orNull<RunError>(event["error"])), child: null, gate: null, detail: null, worker: null, until,
  }, "fail");
};

const resumed: Fold = (state, event) => {
  const visit = state.visits.get(event["token"] as number);
  if (visit === undefined) return;
  const pending = event["by"] === "mutex" || event["by"] === "retry";
  move(state, visit, event, pending ? "pending" : "executing", { waiting: null, detail: null, until: null });
};

/** Ends a visit: it leaves its joins and timers. */
function end(state: RunState, visit: Visit, event: Event, status: string, fields: Partial<Visit>, outcome: Span["outcome"]): Visit {
  for (const arrival of visit.arrivals) state.arrivals.delete(arrival);
  for (const timer of visit.timers) state.timers.delete(timer);
  return move(state, visit, event, status, { waiting: null, until: null, arrivals: [], timers: [], child: null, ended: event.at, endedSeq: event.seq, ...fields }, outcome);
}

const completed: Fold = (state, event) => {
  const visit = state.visits.get(event["token"] as number);
  if (visit !== undefined) end(state, visit, event, "completed", { attempts: visit.attempts + ((event["tries"] as number | undefined) ?? 0) }, "done");
};

function failedWith(state: RunState, event: Event, visit: Visit, status: string): void {
  const error = brief(event["error"] as RunError);
  const lasting = event["fails"] !== undefined || Boolean(event["unhandled"]);
  end(state, visit, event, status, {
    error, attempts: Math.max(visit.attempts, error?.attempts ?? 0), gate: visit.gate === "open" ? "closed" : visit.gate, failure: lasting ? event.seq : 0,
  }, "fail");
  if (lasting) noteFailure(state, event.seq, orNull(event["fails"]), error as RunError);
}

export function noteFailure(state: RunState, seq: number, fails: Frame | null, error: RunError): void {
  state.failures.set(seq, { fails, closed: [] });
  const group = fails === null ? undefined : state.groups.get(fails[0]);
  if (group !== undefined && fails !== null) state.groups.set(group.id, { ...group, failed: new Map(group.failed).set(fails[1], error) });
}

const failed: Fold = (state, event) => {
  const visit = state.visits.get(event["token"] as number);
  if (visit !== undefined) failedWith(state, event, visit, "failed");
};

const timedOut: Fold = (state, event) => {
  const visit = state.visits.get(event["token"] as number);
  if (visit === undefined) return;
  if ((event["error"] as RunError).kind !== "SYNC_TIMEOUT") failedWith(state, event, visit, "timed_out");
  else endBecause(state, visit, event, "timed_out", { error: event["error"] as RunError });
};

/** Ends a visit that went down with a failure, if it says so: a retry of that failure brings it back. */
function endBecause(state: RunState, visit: Visit, event: Event, status: string, fields: Partial<Visit>): void {
  const kept = event["because"] ? visit.arrivals.map((id) => state.arrivals.get(id)).filter((arrival) => arrival !== undefined) : null;
  end(state, visit, event, status, { ...fields, gate: visit.gate === "open" ? "closed" : visit.gate, fallen: kept }, "stop");
}

const cancelled: Fold = (state, event) => {
  if (event["arrival"] !== undefined) {
    const arrival = state.arrivals.get(event["arrival"] as number);
    if (arrival === undefined) return;
    withdraw(state, arrival);
    if (event["because"]) state.fallenArrivals.set(arrival.id, arrival);
    return;
  }
  const visit = state.visits.get(event["token"] as number);
  if (visit !== undefined) endBecause(state, visit, event, "cancelled", {});
};

const progress: Fold = (state, event) => {
  const visit = state.visits.get(event["token"] as number);
  const data = event["data"] as { text?: unknown; at?: unknown; step?: unknown } | undefined;
  if (visit === undefined || event["name"] !== "llm.partial" || typeof data?.text !== "string") return;
  const before = data.step === visit.textStep ? (visit.text ?? "") : "";
  put(state, visit, { ...visit, text: before.slice(0, typeof data.at === "number" ? data.at : undefined) + data.text, textStep: data.step });
};

export const VISIT_FOLDS: Record<string, Fold> = {
  "token.created": created,
  "token.dispatched": dispatched,
  "token.started": started,
  "token.waiting": waiting,
  "token.resumed": resumed,
  "token.retry_scheduled": retryScheduled,
  "token.completed": completed,
  "token.failed": failed,
  "token.timed_out": timedOut,
  "token.cancelled": cancelled,
  "token.progress": progress,
  "custom.llm.partial": progress,
};
