// What the views of the run page see of the run at one moment.
import type { FeedState } from "@/api/live";
import type { Problem } from "@/api/problem";
import type { components } from "@/api/schema";
import type { Event, Folding, RunState } from "@/model/fold";
import type { Span } from "@/model/loops";
import type { DrawnGraph } from "./versions";

export type RunDetail = components["schemas"]["RunDetail"];

export interface Seen {
  /** The state of the moment that is shown. */
  readonly state: RunState;
  readonly detail: RunDetail | null;
  /** The version that the run has at that moment, and its drawing. */
  readonly graph: DrawnGraph | null;
  readonly canvas: unknown;
  readonly folding: Folding;
  /** The event that is shown; null: the newest, and it follows. */
  readonly cursor: number | null;
  /** The iteration of a loop that is pinned: views show the visits that it made. */
  readonly span: Span | null;
  /** The newest event that is known of. */
  readonly head: number;
  readonly loaded: boolean;
  readonly feed: FeedState;
  readonly problem: Problem | null;
  /** Events that came by the stream since the last time: tokens that hop. Null: anything may be another. */
  readonly fresh: readonly Event[] | null;
  readonly turn: number;
}

/** The state at the newest event: of a long run the picture, until its history is read. */
export const newestOf = (seen: Seen): RunState => (seen.loaded || seen.cursor !== null ? seen.folding.newest : seen.state);
