// Folding events of the run as a whole: its status, timers, signals, gates, children, compensation, artifacts.
import { drop, takeBack } from "./groups";
import { orNull, type Compensation, type Event, type RunError, type RunState } from "./state";
import { change, type Fold } from "./visits";

const queued: Fold = (state, event) => {
  if (state.status === "queued") return; // one more item of a batch
  if (state.run === "") identify(state, event);
  else {
    state.stands = state.status; // a fork that waits for its start has a past already
    state.pausedAt ??= event.at;
  }
  state.status = "queued";
};

const began: Fold = (state, event) => {
  if (state.stands !== null) {
    forkBegan(state, event, state.stands);
    return;
  }
  identify(state, event);
  state.status = "running";
};

/** A fork that has waited goes on as it stands, with the time that its clocks had left. */
function forkBegan(state: RunState, event: Event, stands: string): void {
  if (stands !== "paused" && state.pausedAt !== null) {
    const waited = event.at - state.pausedAt;
    for (const timer of state.timers.values()) state.timers.set(timer.id, { ...timer, due: timer.due + waited });
    state.pausedAt = null;
  }
  state.status = stands;
  state.stands = null;
}

function identify(state: RunState, event: Event): void {
  state.run = event["run"] as string;
  state.workflow = event["workflow"] as string;
  state.version = event["version"] as number;
  state.started = event.at;
  state.input = orNull(event["input"]);
  state.scopes.set("", {});
}

function end(state: RunState, event: Event, status: string): void {
  state.status = status;
  state.ended = event.at;
  state.timers.clear();
  for (const visit of state.visits.values()) if (visit.timers.length > 0) change(state, visit.id, { timers: [] });
  state.pausedAt = null;
}

const completed: Fold = (state, event) => {
  end(state, event, "completed");
  state.output = orNull(event["output"]);
};
const failedAs = (status: string): Fold => (state, event) => {
  end(state, event, status);
  state.error = event["error"] as RunError;
};
const cancelled: Fold = (state, event) => end(state, event, "cancelled");

const paused: Fold = (state, event) => {
  state.status = "paused";
  state.pausedAt = event.at;
};

const resumed: Fold = (state, event) => {
  state.status = "running";
  state.pausedAt = null;
  if (event["reopened"]) {
    state.error = null;
    state.ended = null;
    takeBack(state, -1);
    for (const group of state.groups.values()) state.groups.set(group.id, { ...group, sites: group.sites.map((site) => ({ ...site, timer: null })) });
  }
  const shift = (event["shift_ms"] as number | undefined) ?? 0;
  if (shift !== 0) for (const timer of state.timers.values()) state.timers.set(timer.id, { ...timer, due: timer.due + shift });
  if (event["deadline"] !== undefined) dropDeadline(state);
};

function dropDeadline(state: RunState): void {
  for (const timer of [...state.timers.values()]) if (timer.purpose === "run") state.timers.delete(timer.id);
}

const compensating: Fold = (state) => {
  state.status = "compensating";
  state.failures.clear();
  state.fallenArrivals.clear();
};
const compensated: Fold = (state) => {
  state.status = "compensated";
};
const notCompensated: Fold = (state, event) => {
  state.status = "compensation_failed";
  state.error ??= event["error"] as RunError;
};

const timerSet: Fold = (state, event) => {
  if (event["purpose"] === "run") dropDeadline(state);
  const id = event["timer"] as number;
  const [token, group, target] = [orNull<number>(event["token"]), orNull<number>(event["group"]), orNull<string>(event["target"])];
  const visit = token === null ? undefined : state.visits.get(token);
  if (visit !== undefined && event["purpose"] === "lease") drop(state, visit, (timer) => timer.purpose === "lease");
  state.timers.set(id, { id, due: event["due"] as number, purpose: event["purpose"] as string, token, group, target });
  if (token !== null && visit !== undefined) change(state, token, { timers: [...(state.visits.get(token)?.timers ?? []), id] });
  siteTimer(state, group, target, id);
};

function siteTimer(state: RunState, id: number | null, target: string | null, timer: number | null): void {
  const group = id === null || target === null ? undefined : state.groups.get(id);
  if (group !== undefined) state.groups.set(group.id, { ...group, sites: group.sites.map((site) => (site.target === target ? { ...site, timer } : site)) });
}

const timerFired: Fold = (state, event) => {
  const timer = state.timers.get(event["timer"] as number);
  if (timer === undefined) return;
  state.timers.delete(timer.id);
  if (timer.token !== null) change(state, timer.token, { timers: (state.visits.get(timer.token)?.timers ?? []).filter((id) => id !== timer.id) });
  siteTimer(state, timer.group, timer.target, null);
};

const signal: Fold = (state, event) => void state.signals.set(event["signal"] as number, event);
const signalTaken: Fold = (state, event) => void state.signals.delete(event["signal"] as number);

const gateOpened: Fold = (state, event) => void change(state, event["token"], { gate: "open", asked: event });
const gateClaimed: Fold = (state, event) => void change(state, event["token"], { detail: { claimed_by: event["by"] } });
const gateReleased: Fold = (state, event) => void change(state, event["token"], { detail: null });
const gateDelegated: Fold = (state, event) => void change(state, event["token"], { detail: { claimed_by: event["to"], delegated_by: event["by"] } });
const gateClosed: Fold = (state, event) => void change(state, event["token"], { gate: "closed" });

const childStarted: Fold = (state, event) => void change(state, event["token"], { child: event["run"] as string });
const childEnded: Fold = (state, event) => {
  if (state.visits.get(event["token"] as number)?.child === event["run"]) change(state, event["token"], { child: null, deferred: state.status === "paused" });
};
const answered: Fold = (state, event) => {
  if (state.status === "paused") change(state, event["token"], { deferred: true });
};

const record = (status: Compensation["status"]): Fold => (state, event) => {
  const id = event["record"] as number;
  const before = state.compensations.get(id) ?? { record: id, node: event["node"] as string, path: event["path"] as string, undoing: null };
  state.compensations.set(id, { ...before, status, error: (event["error"] as RunError | undefined) ?? null });
};
const artifact: Fold = (state, event) => void state.artifacts.set(event["name"] as string, event);
const warned: Fold = (state) => {
  state.warnings += 1;
};

export const RUN_FOLDS: Record<string, Fold> = {
  "run.queued": queued,
  "run.started": began,
  "run.completed": completed,
  "run.failed": failedAs("failed"),
  "run.timed_out": failedAs("timed_out"),
  "run.cancelled": cancelled,
  "run.paused": paused,
  "run.resumed": resumed,
  "run.compensating": compensating,
  "run.compensated": compensated,
  "run.compensation_failed": notCompensated,
  "timer.set": timerSet,
  "timer.fired": timerFired,
  "signal.received": signal,
  "signal.taken": signalTaken,
  "gate.opened": gateOpened,
  "gate.claimed": gateClaimed,
  "gate.released": gateReleased,
  "gate.delegated": gateDelegated,
  "gate.completed": gateClosed,
  "gate.expired": gateClosed,
  "callback.received": answered,
  "child.started": childStarted,
  "child.ended": childEnded,
  "compensation.recorded": record("recorded"),
  "compensation.started": record("running"),
  "compensation.completed": record("completed"),
  "compensation.failed": record("failed"),
  "compensation.skipped": record("skipped"),
  "artifact.written": artifact,
  "join.mismatch": warned,
  "context.conflict": warned,
  "condition.unevaluable": warned,
};
