// What an entry of the audit says, in words: `Answer a gate` for `POST /api/v1/gates/{run}/{visit}/answer`. Pure.

const NOUNS: Record<string, string> = {
  runs: "a run", gates: "a gate", workflows: "a workflow", schedules: "a schedule", hooks: "a hook", subscriptions: "a subscription", keys: "a key", secrets: "a secret",
  queues: "the rules of a queue", entities: "an entity", tasks: "a task", session: "a session", signals: "a signal", migrations: "runs to another version", visits: "a visit",
  groups: "a group", compensations: "an undoing", deliveries: "a delivery", artifacts: "an artifact", "dead-letters": "a dead letter", audit: "the audit",
};
const WHOLE: Record<string, string> = {
  "POST session": "Sign in", "GET session": "Ask who is signed in", "DELETE session": "Sign out", "POST runs": "Start a run", "POST runs/batch": "Act on many runs", "POST workflows": "Deploy a workflow",
  "POST gates/answer": "Answer many gates", "POST keys": "Create a key", "DELETE keys/{}": "Revoke a key", "POST migrations": "Move runs to another version", "POST signals": "Send a signal to runs",
  "POST runs/{}/signals": "Send a signal to a run", "PUT workflows/{}/canvas": "Save a drawing", "POST workflows/{}/simulate": "Simulate a workflow", "POST tasks/claim": "Claim tasks",
  "POST gates/{}/{}/comment": "Comment on a gate", "POST gates/{}/{}/link": "Make a link to a gate", "POST schedules/{}/fire": "Start a run of a schedule", "POST runs/{}/budget": "Raise the budget of a run",
  "POST runs/{}/groups/{}/add": "Add branches to a group", "POST runs/{}/visits/{}/input": "Set the input of a visit", "POST runs/{}/visits/{}/jump": "Let a visit go on elsewhere",
  "POST runs/{}/compensations/{}/retry": "Retry an undoing", "PUT runs/{}/artifacts/{}": "Write an artifact of a run",
};
const VERBS: Record<string, string> = { GET: "Read", PUT: "Write", POST: "Change", DELETE: "Delete" };
const title = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** The action of an entry in words; what is no route, such as `keys create`, stays as it is. */
export function actionWords(action: string): string {
  const found = /^([A-Z]+) (?:\/p\/[^/]+)?\/(?:api\/v1\/)?(.*)$/.exec(action);
  if (found === null) return title(action);
  const [method, route] = [found[1] ?? "", (found[2] ?? "").replace(/\{[^}]*\}/g, "{}")];
  const whole = WHOLE[`${method} ${route}`];
  if (whole !== undefined) return whole;
  const parts = route.split("/").filter((part) => part !== "" && part !== "{}");
  const last = parts.at(-1) ?? "";
  const isVerb = parts.length > 1 && NOUNS[last] === undefined && !route.endsWith("{}");
  const noun = NOUNS[(isVerb ? parts.at(-2) : last) ?? ""];
  return noun === undefined ? action : `${isVerb ? title(last.replaceAll("-", " ")) : (VERBS[method] ?? method)} ${noun}`;
}

/** The run of an entry and what else its path names: `visit 2`. What the path of no entry says stays out. */
export function aboutOf({ action, path, about }: { action: string; path: string; about: string | null }): { run: string | null; rest: string } {
  const [wanted, given] = [action.split(" ").at(-1)?.split("/") ?? [], path.split("/")];
  const named = wanted.flatMap((part, at) => (part.startsWith("{") && given[at] !== undefined ? [[part.slice(1, -1), decodeURIComponent(given[at])] as const] : []));
  const words = named.flatMap(([name, value]) => (name === "run" ? [] : [["visit", "group"].includes(name) ? `${name} ${value}` : value]));
  if (about !== null && about !== DRY_RUN && !words.includes(about)) words.push(about);
  return { run: named.find(([name]) => name === "run")?.[1] ?? null, rest: words.join(" · ") };
}

const DRY_RUN = "dry run";
const REFUSED: Record<string, string> = {
  UNAUTHENTICATED: "not signed in", FORBIDDEN: "not allowed", BAD_REQUEST: "not understood", NOT_FOUND: "not there", SCHEMA: "does not fit the schema", INVALID_STATE: "not possible in this state", STALE_VERSION: "somebody was faster", RATE_LIMITED: "too many requests",
};

/** How it went: `done`, that it only asked what would happen, or why it was refused. */
export const outcomeWords = (status: number, code: string | null | undefined, about: string | null = null): string => (status < 400 ? (about === DRY_RUN ? "only asked what would happen" : "done") : code == null || code === "" ? `refused (${status})` : (REFUSED[code] ?? code.toLowerCase().replaceAll("_", " ")));
