// One stream of server-sent events, kept open. It is the same in a tab and in the shared worker.
//
// It reads by `fetch`, not by `EventSource`: the service names each message after its event's type, and an EventSource
// tells only names it was given beforehand, and hides why it was refused.
import { createParser } from "eventsource-parser";
import { LARGE, shorten } from "@/model/large";

/** An event of any run, as the service committed it. */
export interface LiveEvent {
  readonly run: string;
  readonly seq: number;
  readonly at: number;
  readonly type: string;
  readonly [field: string]: unknown;
}

/** `refused`: nobody is signed in, or not any more. */
export type FeedState =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "offline"; readonly since: number }
  | { readonly kind: "refused" };

export interface Feed {
  close(): void;
}

const GATHER_MS = 16; // one frame: a burst of events is one message to the page, not thousands
const RETRY_MS = 500;
const RETRY_MAX_MS = 10_000;
const CONTROL = new Set(["end", "slow", "drain"]);

/** Follows `url`, continues behind the last event it has seen, and gathers events for a frame before it tells them. */
export class StreamFeed implements Feed {
  private readonly stop = new AbortController();
  private gathered: LiveEvent[] = [];
  private timer: ReturnType<typeof setTimeout> | null = null;
  private position: string | null = null;
  private since = 0;
  private refused = false;

  constructor(
    private readonly url: string,
    private readonly tell: (events: readonly LiveEvent[]) => void,
    private readonly change: (state: FeedState) => void,
  ) {
    void this.run();
  }

  close(): void {
    this.stop.abort();
    if (this.timer !== null) clearTimeout(this.timer);
  }

  private async run(): Promise<void> {
    let wait = RETRY_MS;
    while (!this.stop.signal.aborted) {
      try {
        if (await this.read()) wait = RETRY_MS;
      } catch {
        // The connection broke: it is begun again below.
      }
      if (this.stop.signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(wait * 2, RETRY_MAX_MS);
    }
  }

  /** One connection, until it ends. True if it was open. */
  private async read(): Promise<boolean> {
    this.refused = false;
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (this.position !== null) headers["Last-Event-ID"] = this.position;
      const answer = await fetch(this.url, { headers, signal: this.stop.signal, cache: "no-store" });
      if (answer.status === 401 || answer.status === 403) {
        this.refused = true;
        this.change({ kind: "refused" });
        return false;
      }
      if (answer.status === 410) this.position = null; // what came behind it is not kept: the page reads its history again
      if (!answer.ok || answer.body === null) throw new Error(`the stream answered ${answer.status}`);
      this.since = 0;
      this.change({ kind: "live" });
      const parser = createParser({ onEvent: (message) => this.take(message) });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) parser.feed(part.value);
      return true;
    } finally {
      if (!this.stop.signal.aborted && !this.refused) {
        this.since ||= Date.now();
        this.change({ kind: "offline", since: this.since });
      }
    }
  }

  private take(message: { id?: string | undefined; event?: string | undefined; data: string }): void {
    if (message.event !== undefined && CONTROL.has(message.event)) return;
    if (message.id !== undefined) this.position = message.id;
    const event = JSON.parse(message.data) as LiveEvent;
    this.gathered.push(message.data.length > LARGE ? shorten(event) : event); // mostly in the worker: no page waits for it
    this.timer ??= setTimeout(() => {
      this.timer = null;
      const events = this.gathered;
      this.gathered = [];
      this.tell(events);
    }, GATHER_MS);
  }
}
