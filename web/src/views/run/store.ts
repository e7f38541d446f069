// One run on the page: its history folded, what the service says of it, the moment that is shown.
//
// Owns the reading: the state at the newest event first, then the history in pages, then the stream. A gap is noticed by
// sequence number and read again. The graph is told once per frame at most. Other views are told less often the more
// telling them costs, so that a run with many events leaves time to scroll and to click.
import { api, given } from "@/api/client";
import { feedState, follow, onFeedState, type FeedState } from "@/api/live";
import { problemOf, type Problem } from "@/api/problem";
import type { components } from "@/api/schema";
import { Folding, type Event, type RunState, type Shape } from "@/model/fold";
import { stateFrom } from "@/model/fold/from-view";
import { LARGE as LARGE_VALUE } from "@/model/large";
import type { Span } from "@/model/loops";

type Schemas = components["schemas"];
export type RunDetail = Schemas["RunDetail"];
export type DrawnGraph = Schemas["DrawnGraph"];

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

const PAGE = 1_000;
const DETAIL_MS = 1_000;
const LARGE = 2_000;
const MISSED_MS = 2_000; // the stream may be that late before what it should have brought is read
const READING_MS = 400; // between two pictures while the history is read
const CALM_LEAST_MS = 50;
const CALM_MOST_MS = 1_000;
const CALM_SHARE = 30; // a view that takes 10 ms to tell is told every 300 ms: one frame in twenty

/** One version of the workflow, as far as the page draws it. */
interface Drawn {
  readonly graph: DrawnGraph;
  readonly canvas: unknown;
}

const shapeOf = (graph: DrawnGraph): Shape => ({
  meetings: graph.meetings.map((one) => [one.group, one.node, one.timed ?? false] as const),
  edges: new Map(graph.transitions.map(({ id, source, target, triggered, group }) => [id, { source, target, triggered, group: group ?? null }])),
});

/** The versions that events lead to. */
const versionsOf = (events: readonly Event[]): number[] =>
  events.flatMap((event) => (event.type === "run.migrated" ? [event["to"] as number] : event.type === "run.started" || event.type === "run.queued" ? [event["version"] as number] : []));

export class RunStore {
  private folding = new Folding();
  private seen: Seen;
  private calm: Seen;
  private calmTimer: ReturnType<typeof setTimeout> | null = null;
  private calmEvery = CALM_LEAST_MS;
  private calmTold = 0;
  private isWhole = true;
  private readonly watchers = new Set<() => void>();
  private readonly calmWatchers = new Set<() => void>();
  private readonly ends: (() => void)[] = [];
  private ahead = new Map<number, Event>();
  private fresh: Event[] = [];
  private reading = false;
  private readAgain = false;
  private frame: number | null = null;
  private detailTimer: ReturnType<typeof setTimeout> | null = null;
  private missTimer: ReturnType<typeof setTimeout> | null = null;
  private stopped = false;
  private told = 0;
  private stand: RunState | null = null;
  private readonly drawn = new Map<number, Drawn>();

  constructor(readonly run: string) {
    this.seen = {
      state: this.folding.newest, detail: null, graph: null, canvas: null, folding: this.folding, cursor: null, span: null, head: 0, loaded: false, feed: feedState(),
      problem: null, fresh: null, turn: 0,
    };
    this.calm = this.seen;
  }

  get = (): Seen => this.seen;
  getCalm = (): Seen => this.calm;

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  watchCalmly = (watcher: () => void): (() => void) => {
    this.calmWatchers.add(watcher);
    return () => this.calmWatchers.delete(watcher);
  };

  start(): void {
    this.stopped = false;
    this.ends.push(follow(this.run, (events) => this.receive(events as unknown as Event[])));
    this.ends.push(onFeedState(() => this.feedChanged()));
    this.seen = { ...this.seen, feed: feedState() }; // it may have changed since the page was rendered, and nobody told us
    void this.open();
  }

  stop(): void {
    this.stopped = true;
    for (const end of this.ends.splice(0)) end();
    if (this.frame !== null) cancelAnimationFrame(this.frame);
    if (this.detailTimer !== null) clearTimeout(this.detailTimer);
    for (const timer of [this.calmTimer, this.missTimer]) if (timer !== null) clearTimeout(timer);
    this.frame = this.detailTimer = this.calmTimer = this.missTimer = null;
  }

  /** Shows the moment after an event; null follows the newest. */
  seek(seq: number | null): void {
    const cursor = seq === null || seq >= this.folding.length ? null : Math.max(1, seq);
    if (cursor === this.seen.cursor) return;
    this.isWhole = true;
    this.change({ cursor }, true);
  }

  /** Shows one iteration of a loop as it ended, or all again. */
  pin(span: Span | null): void {
    if (span?.from === this.seen.span?.from && span?.to === this.seen.span?.to) return;
    this.isWhole = true;
    this.change({ span, cursor: span === null || span.to >= this.folding.length ? null : span.to }, true);
  }

  /** Asks the service again what it says of the run: after an act. */
  refresh = (): void => {
    void this.askDetail();
    this.readAgain = this.reading; // the page that is under way may have been cut before what is asked for now
    void this.read();
  };

  private async open(): Promise<void> {
    try {
      const detail = await given(api.GET("/api/v1/runs/{run}", { params: { path: { run: this.run }, query: { value_max: LARGE_VALUE } } }));
      this.folding = new Folding();
      const { graph, canvas } = await this.draw(detail.workflow, detail.version);
      if (this.stopped) return;
      this.isWhole = true;
      this.change({ detail, graph, canvas, folding: this.folding, head: Math.max(this.seen.head, detail.seq), problem: null });
      if (detail.seq > LARGE) void this.askState();
      await this.read();
    } catch (error) {
      if (!this.stopped) this.change({ problem: problemOf(error) });
    }
  }

  /** Reads one version of the workflow, once. */
  private async draw(workflow: string, version: number): Promise<Drawn> {
    const known = this.drawn.get(version);
    const found = known ?? (await this.fetchDrawn(workflow, version));
    this.drawn.set(version, found);
    this.folding.learn(version, shapeOf(found.graph));
    return found;
  }

  private async fetchDrawn(workflow: string, version: number): Promise<Drawn> {
    const path = { name: workflow, version: String(version) };
    const [graph, definition] = await Promise.all([
      given(api.GET("/api/v1/workflows/{name}/graph", { params: { path: { name: workflow }, query: { version } } })) as Promise<DrawnGraph>,
      given(api.GET("/api/v1/workflows/{name}/versions/{version}", { params: { path } })).catch(() => null),
    ]);
    return { graph, canvas: definition?.canvas ?? null };
  }

  /** Reads the versions that these events lead to, so that they can be folded. */
  private async learn(events: readonly Event[]): Promise<void> {
    const workflow = this.seen.detail?.workflow ?? "";
    for (const version of versionsOf(events)) if (!this.folding.knows(version)) await this.draw(workflow, version);
  }

  /** The state at the newest event, shown until the history has caught up with it. */
  private async askState(): Promise<void> {
    const view = await given(api.GET("/api/v1/runs/{run}/state", { params: { path: { run: this.run } } })).catch(() => null);
    if (view === null || this.stopped || this.seen.loaded) return;
    this.stand = stateFrom(view, this.folding.newest);
    this.isWhole = true;
    this.change({});
  }

  private async read(): Promise<void> {
    if (this.reading || this.seen.graph === null) return;
    this.reading = true;
    try {
      for (;;) {
        this.readAgain = false;
        const after = this.folding.length;
        const query = { after, limit: PAGE, value_max: LARGE_VALUE };
        const page = await given(api.GET("/api/v1/runs/{run}/history", { params: { path: { run: this.run }, query } }));
        await this.learn(page.items as unknown as Event[]);
        if (this.stopped) return;
        this.folding.add(page.items as unknown as Event[]);
        this.isWhole ||= this.folding.length > after;
        this.drain();
        const head = Math.max(this.seen.head, this.folding.length);
        const isEnd = this.folding.length === after || (page.next === null && this.ahead.size === 0);
        if (isEnd && !this.readAgain) {
          this.isWhole ||= !this.seen.loaded;
          this.change({ head, loaded: true, problem: null });
          return;
        }
        this.change({ head });
      }
    } catch (error) {
      if (!this.stopped) this.change({ problem: problemOf(error) });
    } finally {
      this.reading = false;
    }
  }

  private receive(events: readonly Event[]): void {
    let head = this.seen.head;
    for (const event of events) {
      head = Math.max(head, event.seq);
      if (event.seq > this.folding.length) this.ahead.set(event.seq, event);
    }
    this.drain();
    this.change({ head });
    if (this.ahead.size > 0) void this.read();
    this.detailTimer ??= setTimeout(() => {
      this.detailTimer = null;
      void this.askDetail();
    }, DETAIL_MS);
  }

  /** Adds what came by the stream and follows without a gap. */
  private drain(): void {
    if (this.seen.graph === null) return;
    for (let next = this.ahead.get(this.folding.length + 1); next !== undefined; next = this.ahead.get(this.folding.length + 1)) {
      if (versionsOf([next]).some((version) => !this.folding.knows(version))) break; // it is read with its version
      this.ahead.delete(next.seq);
      this.folding.add([next]);
      this.fresh.push(next);
    }
    for (const seq of this.ahead.keys()) if (seq <= this.folding.length) this.ahead.delete(seq);
  }

  private async askDetail(): Promise<void> {
    const detail = await given(api.GET("/api/v1/runs/{run}", { params: { path: { run: this.run }, query: { value_max: LARGE_VALUE } } })).catch(() => null);
    if (detail === null || this.stopped) return;
    this.change({ detail, head: Math.max(this.seen.head, detail.seq) });
    this.missTimer ??= setTimeout(() => this.fetchMissed(detail.seq), MISSED_MS);
  }

  /** Reads what the service has told of and the stream has not brought since. */
  private fetchMissed(seq: number): void {
    this.missTimer = null;
    if (this.seen.loaded && this.folding.length < seq) void this.read();
  }

  private feedChanged(): void {
    const feed = feedState();
    const back = feed.kind === "live" && this.seen.feed.kind !== "live";
    this.change({ feed });
    if (!back) return;
    if (this.seen.graph === null) void this.open();
    else this.refresh(); // whatever was committed meanwhile
  }

  private change(fields: Partial<Seen>, now = false): void {
    this.seen = { ...this.seen, ...fields };
    if (now) this.tell(true);
    else if (this.reading && !this.seen.loaded && performance.now() - this.told < READING_MS) return;
    else this.frame ??= requestAnimationFrame(() => this.tell(false));
  }

  private tell(now: boolean): void {
    if (this.frame !== null) cancelAnimationFrame(this.frame);
    this.frame = null;
    this.told = performance.now();
    const { cursor, loaded } = this.seen;
    const state = cursor !== null ? this.folding.at(cursor) : !loaded && this.stand !== null ? this.stand : this.folding.newest;
    const fresh = this.isWhole || cursor !== null ? (this.isWhole ? null : []) : this.fresh;
    this.fresh = [];
    this.isWhole = false;
    this.seen = { ...this.seen, ...(this.drawn.get(state.version) ?? {}), state, fresh, turn: this.seen.turn + 1 };
    for (const watcher of this.watchers) watcher();
    if (now || this.told - this.calmTold >= this.calmEvery) this.tellCalmly();
    else this.calmTimer ??= setTimeout(() => this.tellCalmly(), this.calmEvery - (this.told - this.calmTold));
  }

  private tellCalmly(): void {
    if (this.calmTimer !== null) clearTimeout(this.calmTimer);
    this.calmTimer = null;
    this.calm = this.seen;
    const began = (this.calmTold = performance.now());
    for (const watcher of this.calmWatchers) watcher();
    queueMicrotask(() => { // behind React, which draws what it was told in a microtask of its own
      this.calmEvery = Math.min(CALM_MOST_MS, Math.max(CALM_LEAST_MS, (performance.now() - began) * CALM_SHARE));
    });
  }
}
