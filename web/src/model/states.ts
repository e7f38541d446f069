// The words and tones of every state, in one place: a state looks and reads the same on every screen.

export type Tone = "idle" | "queued" | "active" | "wait" | "ask" | "retry" | "done" | "fail" | "stop" | "undo";

export interface Look {
  readonly tone: Tone;
  readonly word: string;
  readonly glyph: Tone | "timeout" | "pause";
}

const look = (tone: Tone, word: string, glyph: Look["glyph"] = tone): Look => ({ tone, word, glyph });

const RUN: Record<string, Look> = {
  created: look("idle", "created"),
  queued: look("queued", "queued"),
  running: look("active", "running"),
  paused: look("stop", "paused", "pause"),
  completed: look("done", "completed"),
  failed: look("fail", "failed"),
  timed_out: look("fail", "timed out", "timeout"),
  cancelled: look("stop", "cancelled"),
  compensating: look("undo", "compensating"),
  compensated: look("undo", "compensated"),
  compensation_failed: look("fail", "compensation failed"),
};

const VISIT: Record<string, Look> = {
  created: look("idle", "created"),
  dispatched: look("queued", "dispatched"),
  executing: look("active", "executing"),
  waiting: look("wait", "waiting"),
  completed: look("done", "completed"),
  failed: look("fail", "failed"),
  timed_out: look("fail", "timed out", "timeout"),
  cancelled: look("stop", "cancelled"),
  closed: look("stop", "closed"),
};

const WAITING: Record<string, Look> = {
  human: look("ask", "waits for a person"),
  retry: look("retry", "waits to try again"),
  backoff: look("retry", "waits to try again"),
  queue: look("queued", "waits in a queue"),
  mutex: look("queued", "waits for its turn"),
};

/** How a run's status is shown. */
export const runLook = (status: string): Look => RUN[status] ?? look("idle", status.replaceAll("_", " "));

/** How a visit is shown: a waiting one by what it waits for. */
export function visitLook(status: string, waiting?: string | null): Look {
  if (status === "waiting" && waiting != null && WAITING[waiting] !== undefined) return WAITING[waiting];
  return VISIT[status] ?? look("idle", status.replaceAll("_", " "));
}

/** From worst to best: a stack wears the first of these that any of its visits has. */
export const WORST: readonly Tone[] = ["fail", "undo", "retry", "ask", "wait", "active", "queued", "idle", "stop", "done"];
