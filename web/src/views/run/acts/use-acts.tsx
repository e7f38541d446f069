// The acts on a run, a visit and a group: who may, when they fit, what they say before, what they send.
import { useState, type ReactNode } from "react";
import { api } from "@/api/client";
import { cancelEffects, pauseEffects, retryable, retryEffects, type Effect } from "@/model/acts";
import { isLive, type Compensation, type RunState, type Visit } from "@/model/fold";
import { visitName } from "@/model/run-look";
import { placeOf, retryUndoEffects, skipUndoEffects, undoingOf } from "@/model/undoing";
import { fetched } from "@/ui/fetched";
import { useRunPage, useSeen } from "../context";
import { isOver } from "../graph/summaries";
import type { Act } from "./dialog";

const ActDialog = fetched(() => import("./dialog"));
const ChangeDialog = fetched(() => import("../change"));

/** A change with a form of its own. `at`: the event that a fork begins behind; `visit`: what it is about. */
export interface Change {
  readonly change: "fork" | "edit" | "skip" | "jump" | "input" | "budget" | "migrate";
  readonly at?: number;
  readonly visit?: number;
}

export type Opened = Act | Change;

export interface Offer {
  readonly name: string;
  readonly icon: string;
  readonly danger?: boolean;
  readonly act: Opened;
}

const none = (): Effect[] => [];
const why = (values: Record<string, string>) => ({ reason: values["reason"] || null });

const STILL = new Set(["paused", "failed"]);
const MIGRATABLE = new Set(["running", "paused", "queued", "failed"]);

function runOffers(run: string, state: RunState, waitsForTime: boolean, budget: "none" | "there" | "exceeded"): Offer[] {
  const params = { path: { run } };
  const offers: Offer[] = [];
  const add = (name: string, icon: string, act: Opened, danger = false) => offers.push({ name, icon, act, danger });
  const over = isOver(state.status);
  const isQueued = state.status === "queued";
  if (budget === "exceeded" && !over) add("Raise budget…", "plus", { change: "budget" });
  if (state.status === "running") add("Pause", "pause", { title: "Pause this run?", about: "Nothing new begins until somebody resumes it.", effects: () => pauseEffects(state), confirm: "Pause", reason: true, run: (values) => api.POST("/api/v1/runs/{run}/pause", { params, body: why(values) }) });
  if (state.status === "paused" && !waitsForTime && budget !== "exceeded") add("Resume", "play", { title: "Resume this run?", about: "It goes on where it stopped; its timers move by the time it stood still.", effects: () => pauseEffects(state).filter((one) => one.tone === "wait").map((one) => ({ ...one, words: one.count === 1 ? "timer goes on" : "timers go on" })), confirm: "Resume", run: () => api.POST("/api/v1/runs/{run}/resume", { params }) });
  if (state.status === "paused" && waitsForTime) {
    add("Extend…", "clock", { title: "Give this run more time?", about: "Its deadline has passed; it stands still until somebody decides.", effects: none, confirm: "Extend", form: minutes, run: (values) => api.POST("/api/v1/runs/{run}/extend", { params, body: { ms: Math.round(Number(values["minutes"] ?? "60") * 60_000) } }) });
  }
  if (state.status === "paused" && (waitsForTime || budget === "exceeded")) {
    add("Abort…", "stop", { title: "Abort this run?", about: "It ends here, as cancelled.", effects: () => cancelEffects(state), confirm: "Abort", danger: true, run: () => api.POST("/api/v1/runs/{run}/abort", { params }) }, true);
  }
  const failed = retryable(state);
  if (state.status === "failed" && failed.length > 0) add(failed.length === 1 ? "Retry" : `Retry ${failed.length} failures`, "retry", { title: failed.length === 1 ? "Retry what has failed?" : `Retry ${failed.length} failed visits?`, about: "The run opens again. Actions of these visits run once more, with their side effects.", effects: () => retryEffects(state), confirm: "Retry", run: () => api.POST("/api/v1/runs/{run}/retry", { params }) });
  if (state.status === "compensation_failed") for (const one of undoingOf(state)?.failed ?? []) offers.push(...undoOffers(run, state, one));
  if (!over && !isQueued) {
    add("Send a signal…", "mail", { title: "Send a signal", about: "Visits that wait for it go on; if none does, it is kept.", effects: none, confirm: "Send", form: signalForm, run: (values) => api.POST("/api/v1/runs/{run}/signals", { params, body: signalOf(values) }) });
  }
  if (!over) {
    add("Cancel…", "stop", { title: "Cancel this run?", about: "It ends as cancelled. What can be undone is undone, if the workflow says so.", effects: () => cancelEffects(state), confirm: "Cancel the run", danger: true, reason: true, run: (values) => api.POST("/api/v1/runs/{run}/cancel", { params, body: why(values) }) }, true);
  }
  if (!isQueued) add("Fork…", "split", { change: "fork" });
  if (STILL.has(state.status)) add("Edit data…", "braces", { change: "edit" });
  if (MIGRATABLE.has(state.status)) add("Move to another version…", "diff", { change: "migrate" });
  if (budget === "there" && !over) add("Raise budget…", "plus", { change: "budget" });
  return offers;
}

/** A compensation that failed is tried again, or its visit stays as it is; either way undoing goes on. */
export function undoOffers(run: string, state: RunState, undone: Compensation): Offer[] {
  const [params, place] = [{ path: { run, record: String(undone.record) } }, placeOf(undone)];
  return [
    { name: `Retry undoing ${place}`, icon: "retry", act: { title: `Undo ${place} again?`, about: "Its compensation runs once more, with its side effects. If it succeeds, undoing goes on.", effects: () => retryUndoEffects(state), confirm: "Retry", run: () => api.POST("/api/v1/runs/{run}/compensations/{record}/retry", { params }) } },
    { name: `Skip undoing ${place}…`, icon: "skip", act: { title: `Skip undoing ${place}?`, about: "What this visit has done is not undone. Undoing goes on with the visits before it. This cannot be taken back.", effects: () => skipUndoEffects(state), confirm: "Skip it", danger: true, run: () => api.POST("/api/v1/runs/{run}/compensations/{record}/skip", { params }) } },
  ];
}

function signalOf(values: Record<string, string>) {
  const parse = (text: string | undefined) => (text === undefined || text.trim() === "" ? undefined : (JSON.parse(text) as unknown));
  const [key, data] = [parse(values["key"]), parse(values["data"])];
  return { name: values["name"] ?? "", key: key ?? null, data: data ?? null, id: null };
}

const field = (label: string, name: string, hint: string, set: (name: string, value: string) => void, values: Record<string, string>, type = "text"): ReactNode => (
  <label className="field" key={name}>
    <span className="label">{label}</span>
    <input className="input" type={type} value={values[name] ?? ""} onChange={(event) => set(name, event.target.value)} placeholder={hint} />
  </label>
);
const minutes: NonNullable<Act["form"]> = (set, values) => field("Minutes", "minutes", "60", set, values, "number");
const signalForm: NonNullable<Act["form"]> = (set, values) => [field("Name", "name", "paid", set, values), field("Key, as JSON", "key", "none", set, values), field("Data, as JSON", "data", "null", set, values)];
const itemsForm: NonNullable<Act["form"]> = (set, values) => [field("How many", "count", "1", set, values, "number"), field("or items, as a JSON list", "items", "[…]", set, values)];

/** Acts on the run that fit its state now, for people who may. */
export function useRunOffers(): Offer[] {
  const { store, mayAct } = useRunPage();
  const { state, cursor, loaded, detail } = useSeen();
  if (!mayAct || !loaded) return [];
  if (cursor !== null) return [{ name: `Fork from event ${cursor.toLocaleString()}…`, icon: "split", act: { change: "fork", at: cursor } }];
  const budget = detail?.budget == null ? "none" : detail.budget.exceeded === null ? "there" : "exceeded";
  return runOffers(store.run, state, (budget !== "exceeded" && detail?.waiting.some((wait) => wait.visit === 0)) ?? false, budget);
}

/** A fork before a visit is the one act that fits every moment of it. */
export const forkOffer = (visit: Visit): Offer => ({ name: "Fork before it…", icon: "split", act: { change: "fork", visit: visit.id } });

export function visitOffers(run: string, state: RunState, visit: Visit): Offer[] {
  const params = { path: { run, visit: String(visit.id) } };
  const offers: Offer[] = [];
  const isStill = STILL.has(state.status);
  const isOpen = !visit.compensation && !visit.held && (isLive(visit) || (visit.failure !== 0 && state.failures.has(visit.failure)));
  if (visit.failure !== 0 && state.failures.has(visit.failure)) {
    offers.push({ name: "Retry", icon: "retry", act: { title: `Retry ${visitName(visit)}?`, about: "Its action runs once more, with its side effects.", effects: () => retryEffects(state, visit.id), confirm: "Retry", run: () => api.POST("/api/v1/runs/{run}/visits/{visit}/retry", { params }) } });
  }
  if (visit.status === "waiting" && visit.waiting === "timer" && visit.error !== null && state.status === "running") {
    offers.push({ name: "Try now", icon: "retry", act: { title: `Try ${visitName(visit)} now?`, about: "It waits for its next attempt. The attempt begins at once, and counts as it would have.", effects: () => [{ tone: "retry", count: 1, words: "visit tries again now" }], confirm: "Try now", run: () => api.POST("/api/v1/runs/{run}/visits/{visit}/retry", { params }) } });
  }
  if (isLive(visit)) {
    const only = (one: Visit) => one.id === visit.id;
    const effects = () => cancelEffects(state, only).filter((one) => one.tone !== "done");
    offers.push({ name: "Cancel…", icon: "stop", danger: true, act: { title: `Cancel ${visitName(visit)}?`, about: "The token ends here. Joins that wait for it count it as missing.", effects, confirm: "Cancel the visit", danger: true, reason: true, run: (values) => api.POST("/api/v1/runs/{run}/visits/{visit}/cancel", { params, body: why(values) }) } });
  }
  if (isOpen && (isStill || state.status === "running")) offers.push({ name: "Skip…", icon: "skip", act: { change: "skip", visit: visit.id } });
  if (isOpen && isStill) {
    offers.push({ name: "Jump…", icon: "move", act: { change: "jump", visit: visit.id } }, { name: "Set its input…", icon: "braces", act: { change: "input", visit: visit.id } });
    if (visit.frames.length > 0) offers.push({ name: "Edit the data of its branch…", icon: "braces", act: { change: "edit", visit: visit.id } });
  }
  if (!visit.compensation) return [...offers, forkOffer(visit)];
  const failed = state.status !== "compensation_failed" ? undefined : undoingOf(state)?.failed.find((one) => one.undoing === visit.id);
  return failed === undefined ? offers : [...offers, ...undoOffers(run, state, failed).map((offer, index) => ({ ...offer, name: index === 0 ? "Retry" : "Skip…" }))];
}

export function groupOffers(run: string, state: RunState, id: number): Offer[] {
  const group = state.groups.get(id);
  const params = { path: { run, group: String(id) } };
  const live = [...state.visits.values()].some((visit) => isLive(visit) && visit.frames.some(([one]) => one === id));
  const offers: Offer[] = [];
  if (group === undefined || isOver(state.status)) return offers;
  if (group.open) {
    offers.push({ name: "Add branches…", icon: "plus", act: { title: "Add branches", about: "Each item, or each of so many, becomes a branch of this group.", effects: none, confirm: "Add", form: itemsForm, run: (values) => api.POST("/api/v1/runs/{run}/groups/{group}/add", { params, body: { items: values["items"] ? (JSON.parse(values["items"]) as unknown[]) : null, count: values["items"] ? null : Number(values["count"] || "1"), id: null } }) } });
    offers.push({ name: "Close", icon: "box", act: { title: "Close this group?", about: "No more branches can be added; its joins can be decided.", effects: () => [{ tone: "done", count: group.total, words: "branches are all there are" }], confirm: "Close", run: () => api.POST("/api/v1/runs/{run}/groups/{group}/close", { params }) } });
  }
  if (live || group.begun < group.total) {
    const inside = (visit: Visit) => visit.frames.some(([one]) => one === id);
    const rest = group.total - group.begun;
    const effects = () => [...cancelEffects(state, inside), ...(rest > 0 ? [{ tone: "stop" as const, count: rest, words: "branches never begin" }] : [])];
    offers.push({ name: "Cancel group…", icon: "stop", danger: true, act: { title: "Cancel this group?", about: "Its live branches end; the join decides without them.", effects, confirm: "Cancel the group", danger: true, run: () => api.POST("/api/v1/runs/{run}/groups/{group}/cancel", { params }) } });
  }
  return offers;
}

/** A dialog for acts, and what opens it. */
export function useActDialog(): [ReactNode, (act: Opened) => void] {
  const { store } = useRunPage();
  const [act, setAct] = useState<Opened | null>(null);
  const close = () => {
    setAct(null);
    store.refresh();
  };
  return [act !== null && ("change" in act ? <ChangeDialog key="act" change={act} onClose={close} /> : <ActDialog key="act" act={act} onClose={close} />), setAct];
}
