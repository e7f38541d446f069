// What each node of the graph shows of a run: counts by tone, the worst state, times, joins, gates and waits. Pure.
import { branchesAt, isLive, type Group, type RunState, type Visit } from "./fold";
import { within, type Span } from "./loops";
import { lookOf, people, spentOf, waitWords, workedFor } from "./run-look";
import { WORST, type Look, type Tone } from "./states";
import { duration, soon } from "./time";

export interface Meeting {
  readonly group: string;
  readonly node: string;
  readonly words: string;
}

export interface JoinSummary {
  readonly group: number;
  readonly arrived: number;
  readonly failed: number;
  readonly missing: number;
  readonly needed: number | null;
  readonly total: number;
  readonly words: string;
  readonly until: number | null;
  readonly status: string;
  readonly groups: number;
  /** The branches of a small group while it is open: each with what has become of it. */
  readonly branches: readonly (readonly [branch: number, status: "arrived" | "failed" | "missing"])[];
}

const FEW = 6; // branches that a join shows one by one

export interface NodeSummary {
  readonly ref: string;
  readonly tone: Tone;
  readonly glyph: Look["glyph"];
  /** The tone of the border: the worst state of any visit. */
  readonly worst: Tone;
  readonly visits: number;
  /** Branches that have not begun. */
  readonly pending: number;
  readonly tally: readonly (readonly [tone: Tone, count: number])[];
  readonly value: string;
  readonly line: string;
  readonly stacked: boolean;
  readonly histogram: readonly number[] | null;
  readonly tail: number;
  readonly times: readonly [string, string, string] | null;
  readonly join: JoinSummary | null;
  readonly gates: readonly { visit: number; label: string }[];
  readonly due: number | null;
  /** Changes exactly when what is drawn does. */
  readonly signature: string;
}

const BUCKETS = 36;

/** How many branches a join needs, by its words: `5 of judges`, `60 % of judges`, `all of judges`. */
export function neededOf(words: string, total: number): number | null {
  const percent = /^(\d+(?:\.\d+)?) % of /.exec(words);
  if (percent !== null) return Math.ceil((Number(percent[1]) * total) / 100);
  const some = /^(\d+) of /.exec(words);
  if (some !== null) return Number(some[1]);
  if (words.startsWith("first of ")) return 1;
  return words.startsWith("all of ") ? total : null;
}

function joinOf(state: RunState, ref: string, meetings: readonly Meeting[]): JoinSummary | null {
  if (!meetings.some((one) => one.node === ref)) return null;
  let [newest, count]: [Group | null, number] = [null, 0];
  for (const group of state.groups.values()) {
    const site = group.sites.find((one) => one.target === ref);
    if (site === undefined) continue;
    count += 1;
    if (newest === null || site.status === "open" || newest.sites.find((one) => one.target === ref)?.status !== "open") newest = group;
  }
  const site = newest?.sites.find((one) => one.target === ref);
  if (newest === null || site === undefined) return null;
  const words = meetings.find((one) => one.node === ref && newest.names.includes(one.group))?.words ?? "";
  const decided = site.decided;
  const arrived = decided === null ? branchesAt(state, newest.id, ref).length : Math.max(site.arrived, (decided["arrived"] as number | undefined) ?? 0);
  const failed = newest.failed.size;
  const there = new Set(branchesAt(state, newest.id, ref));
  const statusOf = (branch: number) => (newest.failed.has(branch) ? "failed" : there.has(branch) ? "arrived" : "missing");
  const branches = site.status === "open" && newest.total <= FEW ? Array.from({ length: newest.total }, (_, branch) => [branch, statusOf(branch)] as const) : [];
  const timer = site.timer === null ? undefined : state.timers.get(site.timer);
  return {
    group: newest.id, arrived, failed, missing: Math.max(0, newest.total - arrived - failed), needed: neededOf(words, newest.total), total: newest.total,
    words, until: timer?.due ?? null, status: site.status, groups: count, branches,
  };
}

/** Branches that are still to begin at a node: its fan-outs have not made all their tokens. */
function pendingAt(state: RunState, replicated: ReadonlySet<string>): number {
  let sum = 0;
  for (const group of state.groups.values()) {
    if (group.withdrawn || !group.transitions.some((id) => replicated.has(id))) continue;
    if (group.sites.length === 0 || group.sites.some((site) => site.status === "open")) sum += Math.max(0, group.total - group.begun);
  }
  return sum;
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

function histogramOf(visits: readonly Visit[], now: number) {
  const times = visits.filter((visit) => visit.spans.some((span) => span.kind === "run")).map((visit) => spentOf(visit, now).run).sort((a, b) => a - b);
  if (times.length < 5) return { histogram: null, tail: BUCKETS, times: null };
  const most = Math.max(1, times.at(-1) ?? 1);
  const buckets = Array<number>(BUCKETS).fill(0);
  for (const time of times) buckets[Math.min(BUCKETS - 1, Math.floor((time / most) * BUCKETS))]! += 1;
  const high = Math.max(...buckets);
  const [p50, p95] = [percentile(times, 0.5), percentile(times, 0.95)];
  return {
    histogram: buckets.map((count) => (count === 0 ? 0 : Math.max(0.06, Math.round((count / high) * 50) / 50))),
    tail: Math.floor((p95 / most) * BUCKETS) + 1,
    times: [duration(p50), duration(p95), duration(most)] as const,
  };
}

/** A visit that stands at a join has done its own work: the join shows who is missing. */
export const isAtWork = (visit: Visit): boolean => !(visit.held && isLive(visit));

function tallyOf(visits: readonly Visit[], pending: number): Map<Tone, number> {
  const tally = new Map<Tone, number>();
  for (const visit of visits) {
    const tone = isAtWork(visit) ? lookOf(visit).tone : "done";
    tally.set(tone, (tally.get(tone) ?? 0) + 1);
  }
  if (pending > 0) tally.set("idle", (tally.get("idle") ?? 0) + pending);
  return tally;
}

const ORDER: readonly Tone[] = ["done", "fail", "active", "wait", "ask", "retry", "queued", "stop", "undo", "idle"];

export interface NodeGiven {
  readonly ref: string;
  readonly words: string;
  /** Transitions into the node that make many tokens of one. */
  readonly replicated: ReadonlySet<string>;
  readonly meetings: readonly Meeting[];
  /** Whether the run can still come here. */
  readonly reachable: boolean;
}

export function summarise(state: RunState, given: NodeGiven, now: number, span: Span | null = null): NodeSummary {
  const { ref } = given;
  const visits = within((state.nodes.get(ref) ?? []).map((id) => state.visits.get(id) as Visit), span);
  const pending = given.replicated.size > 0 && visits.length > 0 ? pendingAt(state, given.replicated) : 0;
  const tally = tallyOf(visits, pending);
  const join = joinOf(state, ref, given.meetings);
  const waitsToJoin = join !== null && join.status === "open" && visits.every((visit) => !isLive(visit));
  const worst = waitsToJoin ? "wait" : (WORST.find((tone) => tally.has(tone)) ?? "idle");
  const live = visits.findLast((visit) => isLive(visit) && isAtWork(visit));
  const tone = waitsToJoin ? "wait" : join?.status === "failed" ? "fail" : tally.has("active") ? "active" : live !== undefined ? lookOf(live).tone : worst;
  const stacked = given.replicated.size > 0 && visits.length + pending > 1;
  const gates = visits.filter((visit) => visit.gate === "open");
  const histogram = stacked ? histogramOf(visits, now) : { histogram: null, tail: 0, times: null };
  const found = {
    ref, tone, glyph: glyphOf(visits, tone), worst: join?.status === "failed" ? ("fail" as const) : worst, visits: visits.length, pending,
    tally: ORDER.filter((one) => tally.has(one)).map((one) => [one, tally.get(one) as number] as const),
    value: valueOf(visits, pending, join, gates, stacked, given, now), line: lineOf(visits, join, given, gates, now), stacked, ...histogram, join,
    gates: gates.filter((visit) => visit.frames.length > 0).slice(0, 5).map((visit) => ({ visit: visit.id, label: String(visit.frames.at(-1)?.[1]) })),
    due: gates.map((visit) => visit.asked?.["due"] as number | undefined).filter((due) => due !== undefined).sort((a, b) => a - b)[0] ?? null,
  };
  return { ...found, signature: JSON.stringify(found) };
}

function glyphOf(visits: readonly Visit[], tone: Tone): Look["glyph"] {
  const like = visits.findLast((visit) => isAtWork(visit) && lookOf(visit).tone === tone);
  return like === undefined ? tone : lookOf(like).glyph;
}

function valueOf(visits: readonly Visit[], pending: number, join: JoinSummary | null, gates: readonly Visit[], stacked: boolean, given: NodeGiven, now: number): string {
  if (join !== null && join.status !== "dead") return `${join.arrived} of ${join.needed ?? join.total}`;
  if (stacked) {
    const over = visits.filter((visit) => !isLive(visit) || !isAtWork(visit)).length;
    return `${Math.floor((100 * over) / Math.max(1, visits.length + pending))} %`;
  }
  if (gates.length > 0) return gates.length === 1 ? "open" : `${gates.length} open`;
  const last = visits.at(-1);
  if (last === undefined) return given.reachable ? "" : "not reached";
  return visits.length > 1 ? `×${visits.length}` : workedFor(last, now);
}

function lineOf(visits: readonly Visit[], join: JoinSummary | null, given: NodeGiven, gates: readonly Visit[], now: number): string {
  if (join !== null && join.status === "open") {
    const more = join.needed === null ? null : Math.max(0, join.needed - join.arrived);
    return more === null ? join.words : `needs ${more} more`;
  }
  if (join !== null) return join.status === "failed" ? "could not meet" : join.words;
  const gate = gates[0];
  if (gate !== undefined) return people(gate) ?? "anybody";
  const waiting = visits.findLast((visit) => visit.status === "waiting");
  if (waiting !== undefined && isAtWork(waiting)) return waitWords(waiting, now);
  const failed = visits.findLast((visit) => visit.status === "failed" || visit.status === "timed_out");
  if (failed !== undefined && visits.length === 1) return failed.error?.message ?? failed.error?.kind ?? "failed";
  return visits.length > 1 && given.words !== "" ? `${given.words} · ${visits.length} visits` : given.words;
}

/** `by 12:10 CET, else fail` at the foot of a join, `due today 17:00` at that of a gate. */
export function footOf(summary: NodeSummary, now: number): string | null {
  if (summary.join?.status === "open" && summary.join.until !== null) return `by ${soon(summary.join.until, now)}`;
  return summary.due === null ? null : `due ${soon(summary.due, now)}`;
}
