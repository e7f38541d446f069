// One line about an event, for the history. Pure.
import type { Event, RunState } from "./fold";
import { visitName } from "./run-look";
import { largeOf, sizeWords } from "./large";
import type { Look } from "./states";
import { duration, instant } from "./time";

const text = (value: unknown): string => {
  const large = largeOf(value);
  return large !== null ? `(${sizeWords(large.bytes)})` : value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
};
const cut = (value: string, most = 140): string => (value.length > most ? `${value.slice(0, most - 1)}…` : value);

const TONES: [RegExp, Look["glyph"]][] = [
  [/failed$|timed_out$|expired$/, "fail"], [/cancelled$|dead$|closed$/, "stop"], [/^gate\.opened/, "ask"], [/^gate\./, "ask"], [/retry_scheduled$|reopened$/, "retry"],
  [/paused$/, "pause"], [/compensat/, "undo"], [/completed$|fired$|taken$/, "done"], [/started$|resumed$/, "active"], [/dispatched$/, "queued"], [/waiting$|timer/, "wait"],
];

export const eventGlyph = (type: string): Look["glyph"] => TONES.find(([fits]) => fits.test(type))?.[1] ?? "idle";

/** The visit or the join that an event is about. */
export function subjectOf(event: Event, state: RunState): string {
  const token = event["token"];
  if (typeof token === "number" && token > 0) {
    const visit = state.visits.get(token);
    return visit === undefined ? ((event["node"] as string | undefined) ?? `visit ${token}`) : visitName(visit);
  }
  if (typeof event["target"] === "string") return `join ${event["target"]}`;
  if (typeof event["group"] === "number") return `group ${event["group"]}`;
  return "";
}

const errorOf = (event: Event): string => {
  const error = event["error"] as { kind?: string; message?: string } | undefined;
  return error === undefined ? "" : `${error.kind ?? ""} ${error.message ?? ""}`.trim();
};

const WORDS: Record<string, (event: Event) => string> = {
  "run.started": (event) => `${text(event["workflow"])} v${text(event["version"])} with ${cut(text(event["input"]), 80)}`,
  "run.queued": (event) => `${text(event["workflow"])} v${text(event["version"])} because of ${text(event["why"])}`,
  "run.forked": (event) => `from run ${text(event["from"])} after event ${text(event["point"])} by ${text(event["by"])}`,
  "run.migrated": (event) => `from v${text(event["from"])} to v${text(event["to"])} by ${text(event["by"])}`,
  "token.skipped": (event) => `by ${text(event["by"])}${event["reason"] ? `, ${text(event["reason"])}` : ""}: ${cut(text(event["output"]))}`,
  "token.jumped": (event) => `to ${text(event["to"])} by ${text(event["by"])}${event["reason"] ? `, ${text(event["reason"])}` : ""}`,
  "token.input_set": (event) => `by ${text(event["by"])}: ${cut(text(event["input"]))}`,
  "budget.warned": (event) => `${text(event["spent"])} of ${text(event["limit"])} ${text(event["part"])} spent`,
  "budget.exceeded": (event) => `${text(event["spent"])} of ${text(event["limit"])} ${text(event["part"])} spent`,
  "token.created": (event) => [event["via"] ? `by ${text(event["via"])}` : "start", event["why"] ? `because ${text(event["why"])}` : ""].filter(Boolean).join(", "),
  "token.dispatched": (event) => `try ${text(event["attempt"])}${event["queue"] ? ` to the queue ${text(event["queue"])}` : ""}`,
  "token.started": (event) => `try ${text(event["attempt"])}${event["worker"] ? ` by ${text(event["worker"])}` : ""}`,
  "token.waiting": (event) => `for ${text(event["reason"])}${event["until"] ? ` until ${instant(event["until"] as number)}` : ""}`,
  "token.retry_scheduled": (event) => `try ${text(event["attempt"])} after ${duration((event["due"] as number) - event.at)}: ${errorOf(event)}`,
  "token.completed": (event) => cut(text(event["output"])),
  "token.progress": (event) => `${text(event["name"])} ${cut(text(event["data"]))}`,
  "group.opened": (event) => `${text(event["total"])} branches by ${(event["transitions"] as string[] | undefined)?.join(", ") ?? ""}`,
  "join.fired": (event) => `${text(event["arrived"])} of ${text(event["total"])}${event["why"] ? `, ${text(event["why"])}` : ""}`,
  "join.arrived": (event) => `by ${text(event["via"])}${event["absorbed"] ? ", too late" : ""}`,
  "context.updated": (event) => cut(((event["writes"] ?? []) as [string[], unknown][]).map(([path, value]) => `${path.join(".")} = ${cut(text(value), 40)}`).join("; ")),
  "timer.set": (event) => `${text(event["purpose"])}, ${instant(event["due"] as number)}`,
  "timer.fired": (event) => text(event["purpose"]),
  "signal.received": (event) => `${text(event["name"])} ${cut(text(event["data"]))}`,
  "gate.opened": (event) => `${text(event["title"])}${event["assign"] ? ` to ${text(event["assign"])}` : ""}`,
  "gate.completed": (event) => `${event["by"] ? `by ${text(event["by"])}: ` : ""}${cut(text(event["data"]))}`,
  "child.started": (event) => `${text(event["workflow"])}, run ${text(event["run"])}`,
  "child.ended": (event) => `${text(event["status"])}`,
};

export function eventWords(event: Event): string {
  const words = WORDS[event.type]?.(event);
  if (words !== undefined) return words;
  return errorOf(event) || [event["by"] ? `by ${text(event["by"])}` : "", text(event["reason"]), cut(text(event["data"]))].filter(Boolean).join(" ");
}
