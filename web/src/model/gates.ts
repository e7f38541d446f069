// Gates: which ones a list shows, what events do to its rows, and what a person may do about one.
//
// The rules about people are the service's own (it refuses what is not allowed); here they decide what is offered.
import type { components } from "@/api/schema";

export type GateView = components["schemas"]["GateView"];

/** An open gate in a list. */
export interface GateRow {
  readonly gate: string;
  readonly run: string;
  readonly visit: number;
  readonly node: string;
  readonly workflow: string;
  readonly opened: number;
  readonly title: string | null;
  readonly assign: unknown;
  readonly due: number | null;
  readonly claimed_by: string | null;
  readonly escalated: unknown;
  readonly reminded: number;
  readonly commented: number;
  readonly answered: number;
  readonly can: readonly string[];
  /** Set when it stopped waiting after the list was read: it stays until somebody asks for the list anew. */
  readonly over?: Over;
}

export interface Over {
  readonly how: "answered" | "expired" | "closed";
  readonly by: string | null;
  readonly at: number;
}

export interface GateFilter {
  readonly mine: boolean;
  readonly overdue: boolean;
  readonly workflow: string;
  readonly node: string;
  readonly text: string;
}

export function readFilter(search: string): GateFilter {
  const given = new URLSearchParams(search);
  return { mine: given.get("mine") === "true", overdue: given.get("overdue") === "true", workflow: given.get("workflow") ?? "", node: given.get("node") ?? "", text: given.get("text") ?? "" };
}

/** The filter as an address and as the question to the service: the same words. */
export function asked(filter: GateFilter): { mine?: true; overdue?: true; workflow?: string; node?: string; text?: string } {
  return {
    ...(filter.mine ? { mine: true } : {}),
    ...(filter.overdue ? { overdue: true } : {}),
    ...(filter.workflow === "" ? {} : { workflow: filter.workflow }),
    ...(filter.node === "" ? {} : { node: filter.node }),
    ...(filter.text === "" ? {} : { text: filter.text }),
  };
}

export const writeFilter = (filter: GateFilter): string => new URLSearchParams(Object.entries(asked(filter)).map(([key, value]) => [key, String(value)])).toString();

export interface GateGroup {
  readonly key: string;
  readonly workflow: string;
  readonly node: string;
  readonly rows: readonly GateRow[];
}

export const groupKey = (row: { workflow: string; node: string }): string => `${row.workflow}\n${row.node}`;

/** Rows by workflow and node; a group stands where its first row does. */
export function grouped(rows: readonly GateRow[]): GateGroup[] {
  const found = new Map<string, GateGroup & { rows: GateRow[] }>();
  for (const row of rows) {
    const key = groupKey(row);
    const group = found.get(key) ?? { key, workflow: row.workflow, node: row.node, rows: [] };
    group.rows.push(row);
    found.set(key, group);
  }
  return [...found.values()];
}

interface CommittedEvent {
  readonly run: string;
  readonly type: string;
  readonly at: number;
  readonly [field: string]: unknown;
}

const ENDS_RUN = new Set(["run.completed", "run.failed", "run.cancelled", "run.timed_out"]);

/** A row after an event; the same row if the event tells it nothing. */
export function rowAfter(row: GateRow, event: CommittedEvent): GateRow {
  if (event.run !== row.run || row.over !== undefined) return row;
  const over = (how: Over["how"], by: unknown = null): GateRow => ({ ...row, over: { how, by: (by as string | null | undefined) ?? null, at: event.at } });
  if (ENDS_RUN.has(event.type)) return over("closed");
  if (row.visit === 0) return event.type === "run.extended" || event.type === "run.resumed" ? over("answered") : row;
  if (event["token"] !== row.visit) return row;
  switch (event.type) {
    case "gate.completed":
      return over("answered", event["by"]);
    case "gate.expired":
      return over("expired");
    case "token.cancelled":
    case "token.failed":
    case "token.timed_out":
      return over("closed");
    case "gate.claimed":
      return { ...row, claimed_by: event["by"] as string };
    case "gate.delegated":
      return { ...row, claimed_by: event["to"] as string };
    case "gate.released":
      return { ...row, claimed_by: null };
    case "gate.commented":
      return { ...row, commented: row.commented + 1 };
    case "gate.answered":
      return { ...row, answered: row.answered + 1 };
    case "gate.reminded":
      return { ...row, reminded: event["number"] as number };
    case "gate.escalated":
      return { ...row, escalated: event["to"] };
    default:
      return row;
  }
}

/** Rows after events; the same list if nothing changed. */
export function rowsAfter(rows: readonly GateRow[], events: readonly CommittedEvent[]): readonly GateRow[] {
  const runs = new Set(events.map((event) => event.run));
  let changed = false;
  const next = rows.map((row) => {
    if (!runs.has(row.run)) return row;
    const after = events.reduce(rowAfter, row);
    changed ||= after !== row;
    return after;
  });
  return changed ? next : rows;
}

export interface Asker {
  readonly name: string;
  readonly groups: readonly string[];
  readonly admin: boolean;
  /** Whether the role allows to answer at all. */
  readonly approver: boolean;
}

export interface Named {
  readonly kind: "name" | "user" | "group";
  readonly name: string;
}

const listed = (names: unknown): string[] => (typeof names === "string" ? [names] : Array.isArray(names) ? names.filter((one): one is string => typeof one === "string") : []);

/** Everybody that an `assign` names. */
export function peopleOf(assign: unknown): Named[] {
  if (typeof assign === "string" || Array.isArray(assign)) return listed(assign).map((name) => ({ kind: "name", name }));
  if (typeof assign !== "object" || assign === null) return [];
  const { users, groups } = assign as { users?: unknown; groups?: unknown };
  return [...listed(users).map((name): Named => ({ kind: "user", name })), ...listed(groups).map((name): Named => ({ kind: "group", name }))];
}

export const isAsked = (assign: unknown, person: Asker): boolean =>
  peopleOf(assign).some(({ kind, name }) => (kind !== "group" && name === person.name) || (kind !== "user" && person.groups.includes(name)));

/** How many people answer and how many equal answers are enough; null: the first answer counts. */
export function quorumOf(assign: unknown): { of: number; accept: number } | null {
  const quorum = typeof assign === "object" && assign !== null ? (assign as { quorum?: { of: number; accept: number } }).quorum : undefined;
  return quorum ?? null;
}

export interface Rights {
  readonly answer: boolean;
  readonly claim: boolean;
  readonly release: boolean;
  readonly delegate: boolean;
  readonly comment: boolean;
  readonly link: boolean;
  /** Why answering is not offered. */
  readonly why: string | null;
}

/** What a person may do about a gate. */
export function rightsOf(gate: Pick<GateRow, "can" | "assign" | "escalated" | "claimed_by"> & { readonly answers?: readonly { by: string | null }[] }, person: Asker): Rights {
  const can = (act: string) => person.approver && gate.can.includes(act);
  const holder = gate.claimed_by;
  const isInvited = person.admin || holder === person.name || peopleOf(gate.assign).length === 0 || isAsked(gate.assign, person) || isAsked(gate.escalated, person);
  const isFree = holder === null || holder === person.name || person.admin;
  const quorum = quorumOf(gate.assign) !== null;
  const hasAnswered = gate.answers?.some((answer) => answer.by === person.name) ?? false;
  const answer = can("answer") && isInvited && isFree && !hasAnswered;
  return {
    answer,
    claim: can("claim") && isInvited && holder === null && !quorum,
    release: can("release") && holder !== null && (holder === person.name || person.admin),
    delegate: can("delegate") && isInvited && isFree && !quorum,
    comment: can("comment"),
    link: can("answer") && isInvited,
    why: answer ? null : whyNot(gate, person, isInvited, hasAnswered),
  };
}

function whyNot(gate: { readonly can: readonly string[]; readonly claimed_by: string | null }, person: Asker, isInvited: boolean, hasAnswered: boolean): string | null {
  if (!gate.can.includes("answer")) return null;
  if (!person.approver) return "Your role may read gates, not answer them.";
  if (hasAnswered) return "You have answered. It waits for others.";
  if (!isInvited) return "It is asked of others.";
  return `${gate.claimed_by} has taken it on.`;
}

const DAY_MS = 86_400_000;
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const weekday = new Intl.DateTimeFormat(undefined, { weekday: "short" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

/** When a gate is due, in few words: `today 17:00`, `Tue 09:00`, `4 Dec`. */
export function dueWords(due: number, now: number): string {
  const at = new Date(due);
  if (at.toDateString() === new Date(now).toDateString()) return `today ${clock.format(at)}`;
  return due - now < 6 * DAY_MS ? `${weekday.format(at)} ${clock.format(at)}` : day.format(at);
}
