// Events as they are committed, for every part of the page, over one stream for the whole browser.
//
// A SharedWorker (`live.worker.ts`) holds the stream of all runs and tells each tab what it asked for. Where there is
// no SharedWorker, or it does not answer, this tab holds a stream of its own. Promises: every committed event that matches is told once, in
// the order of its run; after a loss of connection the stream continues where it stopped. A part of the page that needs
// the past reads it first (`GET …/history`) and drops what it has by `seq`.
import { apiBase } from "./base";
import { StreamFeed, type Feed, type FeedState, type LiveEvent } from "./feed";

export type { FeedState, LiveEvent };
type Listener = (events: readonly LiveEvent[]) => void;

const listeners = new Map<Listener, string | null>();
const watchers = new Set<(state: FeedState) => void>();
let state: FeedState = { kind: "connecting" };
let feed: Feed | null = null;

function receive(events: readonly LiveEvent[]): void {
  for (const [listener, run] of listeners) {
    const mine = run === null ? events : events.filter((event) => event.run === run);
    if (mine.length > 0) listener(mine);
  }
}

function change(next: FeedState): void {
  state = next;
  for (const watcher of watchers) watcher(next);
}

const ANSWER_MS = 10_000; // a worker whose script could not be fetched says nothing; this is how long it may take to begin

function start(): Feed {
  const url = `${location.origin}${apiBase}/stream`;
  const alone = () => new StreamFeed(url, receive, change);
  if (typeof SharedWorker === "undefined") return alone();
  const worker = new SharedWorker(new URL("./live.worker.ts", import.meta.url), { type: "module", name: `treadle ${apiBase}` });
  const giveUp = () => {
    clearTimeout(timer);
    worker.port.onmessage = null;
    worker.port.postMessage({ close: true });
    feed = alone();
  };
  const timer = setTimeout(giveUp, ANSWER_MS);
  worker.onerror = giveUp;
  worker.port.onmessage = ({ data }: MessageEvent<{ events?: LiveEvent[]; state?: FeedState }>) => {
    clearTimeout(timer);
    if (data.state !== undefined) change(data.state);
    if (data.events !== undefined) receive(data.events);
  };
  worker.port.start();
  worker.port.postMessage({ open: url });
  addEventListener("pagehide", () => worker.port.postMessage({ close: true }));
  addEventListener("pageshow", (event) => (event as PageTransitionEvent).persisted && worker.port.postMessage({ open: url }));
  return { close: () => worker.port.postMessage({ close: true }) };
}

/** Tells `listener` the events of one run, or of all (`null`), from now on. Gives what ends it. */
export function follow(run: string | null, listener: Listener): () => void {
  feed ??= start();
  listeners.set(listener, run);
  return () => listeners.delete(listener);
}

/** The state of the stream, and a way to hear of changes, as `useSyncExternalStore` wants them. */
export const feedState = (): FeedState => state;
export function onFeedState(watcher: () => void): () => void {
  feed ??= start();
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}
