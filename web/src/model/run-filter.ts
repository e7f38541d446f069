// Which runs a list shows: clauses that a person put together, in the address, and as a question to the service.
//
// The service includes; a clause may also exclude. What the service cannot do (leave out a workflow, a tag; runs without
// progress; values of the input) is done here on the rows it gives, page by page.
import type { components } from "@/api/schema";

export type RunItem = components["schemas"]["RunItem"];
export type Field = "status" | "workflow" | "tag" | "entity" | "key" | "input" | "started" | "stuck" | "waiting" | "text";

export interface Clause {
  readonly field: Field;
  readonly not: boolean;
  /** Of `started` and `stuck` one duration, in milliseconds; of `input` a place and what stands there, `customer.city=Graz`. */
  readonly values: readonly string[];
}

export const STATUSES = [
  "created", "queued", "running", "paused", "completed", "failed", "timed_out", "cancelled", "compensating", "compensated", "compensation_failed",
] as const;
export const ENDED = new Set(["completed", "failed", "timed_out", "cancelled", "compensated", "compensation_failed"]);
export const LIVE = STATUSES.filter((status) => !ENDED.has(status));
/** What a run can be found by that its visits wait for, and the words. */
export const AWAITED: readonly (readonly [string, string])[] = [
  ["retry", "their next try"], ["human", "a person"], ["timer", "a time"], ["signal", "a signal"], ["external", "an answer from outside"], ["queue", "a worker"],
  ["subworkflow", "a run they called"], ["mutex", "their turn"], ["siblings", "other branches"],
];
export const FAILED = ["failed", "timed_out", "compensation_failed"] as const;

const FIELDS: readonly Field[] = ["status", "workflow", "tag", "entity", "key", "input", "started", "stuck", "waiting", "text"];

/** Clauses out of an address: `?status=running&workflow=!nightly`. */
export function readClauses(search: string): Clause[] {
  const given = new URLSearchParams(search);
  const found: Clause[] = [];
  for (const field of FIELDS) {
    const values = given.getAll(field);
    for (const not of [false, true]) {
      const mine = values.filter((value) => value.startsWith("!") === not).map((value) => (not ? value.slice(1) : value));
      if (mine.length > 0) found.push({ field, not, values: mine });
    }
  }
  return found;
}

/** The address of clauses; the same clauses always give the same text. */
export function writeClauses(clauses: readonly Clause[]): string {
  const given = new URLSearchParams();
  for (const field of FIELDS) {
    for (const clause of clauses) {
      if (clause.field === field) for (const value of clause.values) given.append(field, clause.not ? `!${value}` : value);
    }
  }
  return given.toString();
}

export interface Question {
  workflow?: string;
  status?: string[];
  tag?: string[];
  entity?: string;
  key?: string;
  started_from?: number;
  started_until?: number;
  waiting?: string[];
  text?: string;
}

/** What the service is asked. `statuses` that are excluded become all the others. */
export function question(clauses: readonly Clause[], now: number): Question {
  const asked: Question = {};
  let statuses: readonly string[] = STATUSES;
  for (const { field, not, values } of clauses) {
    const [first] = values;
    if (first === undefined) continue;
    if (field === "status") statuses = statuses.filter((one) => values.includes(one) !== not);
    else if (field === "stuck") statuses = statuses.filter((one) => !ENDED.has(one));
    else if (not || field === "input") continue; // the rows bring the value along
    else if (field === "started") asked.started_from = now - Number(first);
    else if (field === "waiting") asked.waiting = [...values];
    else if (field === "tag") asked.tag = [...(asked.tag ?? []), ...values];
    else if (values.length === 1) asked[field] = first;
  }
  if (statuses.length < STATUSES.length) asked.status = [...statuses];
  return asked;
}

/** The question for live runs that a time hides; null: no time is asked for, or live runs are not. */
export function hiddenQuestion(clauses: readonly Clause[], now: number): Question | null {
  const span = clauses.find((one) => one.field === "started" && !one.not)?.values[0];
  if (span === undefined) return null;
  const asked = question(clauses.filter((one) => one.field !== "started"), now);
  const status = (asked.status ?? [...STATUSES]).filter((one) => !ENDED.has(one));
  return status.length === 0 ? null : { ...asked, status, started_until: now - Number(span) };
}

/** Whether a row that the service gave is shown: what the question could not say. */
export function fits(row: RunItem, clauses: readonly Clause[], now: number): boolean {
  return clauses.every(({ field, not, values }) => {
    switch (field) {
      case "workflow":
        return values.includes(row.workflow) !== not;
      case "status":
        return values.includes(row.status) !== not;
      case "tag":
        return not ? !values.some((tag) => row.tags.includes(tag)) : values.every((tag) => row.tags.includes(tag));
      case "entity":
        return not ? !values.some((one) => sameEntity(row.entity, one)) : true;
      case "key":
        return values.includes(row.key ?? "") !== not;
      case "input":
        return not ? !values.some((one) => hasInput(row, one)) : values.every((one) => hasInput(row, one));
      case "stuck":
        return !ENDED.has(row.status) && row.changed <= now - Number(values[0]);
      default:
        return true;
    }
  });
}

/** A place in the input and the text that is looked for there. */
export function inputParts(value: string): readonly [place: string, text: string] {
  const at = value.indexOf("=");
  return at < 0 ? [value.trim(), ""] : [value.slice(0, at).trim(), value.slice(at + 1).trim()];
}

/** The values of inputs that clauses look at: the service is asked for them. */
export const inputFields = (clauses: readonly Clause[]): string[] =>
  clauses.filter((one) => one.field === "input").flatMap((one) => one.values.map((value) => fieldAt(inputParts(value)[0])));

const fieldAt = (place: string): string => (place.startsWith("input.") ? place : `input.${place}`);

/** Whether the value at a place contains a text, however it is written; an empty text: whether there is a value at all. */
function hasInput(row: RunItem, value: string): boolean {
  const [place, text] = inputParts(value);
  const given = (row.fields as Record<string, unknown> | undefined)?.[fieldAt(place)];
  if (given === undefined || given === null) return false;
  return (typeof given === "string" ? given : JSON.stringify(given)).toLowerCase().includes(text.toLowerCase());
}

const sameEntity = (shown: string | null, named: string) => shown !== null && (shown === named || shown === named.split("/").slice(1).join("/"));

/** No row can fit: a status was excluded and asked for at once. */
export const isEmpty = (asked: Question): boolean => asked.status !== undefined && asked.status.length === 0;

const STATUS_AFTER: Record<string, string> = {
  "run.queued": "queued",
  "run.started": "running",
  "run.completed": "completed",
  "run.failed": "failed",
  "run.timed_out": "timed_out",
  "run.cancelled": "cancelled",
  "run.paused": "paused",
  "run.resumed": "running",
  "run.compensating": "compensating",
  "run.compensated": "compensated",
  "run.compensation_failed": "compensation_failed",
};

/** A row after an event of its run; the same row if the event tells it nothing. */
export function rowAfter(row: RunItem, event: { type: string; seq: number; at: number; [field: string]: unknown }): RunItem {
  if (event.seq <= row.seq) return row;
  const status = STATUS_AFTER[event.type] ?? row.status;
  const version = event.type === "run.migrated" && typeof event["to"] === "number" ? event["to"] : row.version;
  return { ...row, status, version, seq: event.seq, changed: event.at, ended: ENDED.has(status) ? event.at : null };
}
