// One run on the page: its history folded, what the service says of it, the moment that is shown.
//
// Owns the reading: of a long run its picture first, then the history in pages from both ends, then the stream. A gap is
// noticed by sequence number and read again. The graph is told once per frame at most. Other views are told less often the more
// telling them costs, so that a run with many events leaves time to scroll and to click.
import { feedState, follow, onFeedState } from "@/api/live";
import { problemOf } from "@/api/problem";
import { nextPages, PAGE } from "@/model/ends";
import { Folding, type Event, type RunState } from "@/model/fold";
import { stateFrom } from "@/model/fold/from-picture";
import type { Span } from "@/model/loops";
import { askPage, askPicture, askRun, type Page } from "./asking";
import type { RunDetail, Seen } from "./seen";
import { Versions, versionsOf, type DrawnGraph } from "./versions";

export type { DrawnGraph, RunDetail, Seen };

const DETAIL_MS = 1_000;
const LARGE = 2_000; // events: a longer history is read from both ends
const MISSED_MS = 2_000; // the stream may be that late before what it should have brought is read
const READING_MS = 400; // between two pictures while the history is read
const CALM_LEAST_MS = 50;
const CALM_MOST_MS = 1_000;
const CALM_SHARE = 30; // a view that takes 10 ms to tell is told every 300 ms: one frame in twenty

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
  private opening = false;
  private isLate = false;
  private reading = false;
  private readAgain = false;
  private frame: number | null = null;
  private detailTimer: ReturnType<typeof setTimeout> | null = null;
  private missTimer: ReturnType<typeof setTimeout> | null = null;
  private lateTimer: ReturnType<typeof setTimeout> | null = null;
  private stopped = false;
  private told = 0;
  private stand: RunState | null = null;
  private readonly versions = new Versions();

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
    for (const timer of [this.calmTimer, this.missTimer, this.lateTimer]) if (timer !== null) clearTimeout(timer);
    this.frame = this.detailTimer = this.calmTimer = this.missTimer = this.lateTimer = null;
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
    if (this.opening) {
      this.isLate = true;
      return;
    }
    this.opening = true;
    try {
      const first = askPage(this.run, { after: 0, limit: PAGE });
      const asked = askRun(this.run);
      this.folding = new Folding();
      void this.paint(first).catch(() => undefined); // whatever failed is told by what is awaited below
      const detail = await asked;
      const drawn = await this.versions.draw(detail.workflow, detail.version);
      this.folding.learn(detail.version, drawn.shape);
      if (this.stopped) return;
      this.isWhole = true;
      this.change({ detail, graph: this.seen.graph ?? drawn.graph, canvas: this.seen.canvas ?? drawn.canvas, folding: this.folding, head: Math.max(this.seen.head, detail.seq), problem: null });
      await this.read(first);
      if (this.isLate) this.refresh(); // the stream began while the first page was under way
    } catch (error) {
      if (!this.stopped) this.change({ problem: problemOf(error) });
    } finally {
      this.opening = this.isLate = false;
    }
  }

  /** Shows a long run before its history is read: while the service still adds up its details. */
  private async paint(first: Promise<Page>): Promise<void> {
    const { items, next } = await first;
    const began = items[0];
    if (began === undefined || next === null) return;
    const drawing = this.versions.draw(began["workflow"] as string, began["version"] as number);
    await Promise.all([drawing, this.show()]);
  }

  /** The state at the newest event, shown until the history has caught up with it. */
  private async show(): Promise<void> {
    const picture = await askPicture(this.run);
    const { graph, canvas, shape } = await this.versions.draw(picture.workflow, picture.version);
    if (this.stopped || this.seen.loaded) return;
    this.stand = stateFrom(picture, shape);
    this.isWhole = true;
    this.change({ graph, canvas, head: Math.max(this.seen.head, picture.seq) }, true);
  }

  /** Reads what is missing. `first`: the first page, if it is under way. */
  private async read(first: Promise<Page> | null = null): Promise<void> {
    if (this.reading || this.seen.detail === null) return;
    this.reading = true;
    try {
      for (;;) {
        this.readAgain = false;
        const { folding } = this;
        const before = folding.length;
        const pages = await Promise.all(first !== null && before === 0 ? [first] : nextPages(before, this.endOf()).map((ask) => askPage(this.run, ask)));
        for (const { items } of pages) await this.versions.learn(this.seen.detail.workflow, items, folding);
        if (this.stopped) return;
        for (const { items } of pages) if (!folding.add(items)) folding.keep(items);
        while (folding.close(PAGE)) await new Promise((resolve) => setTimeout(resolve)); // a page at a time: nothing waits for all of them
        this.isWhole ||= folding.length > before;
        this.drain();
        const head = Math.max(this.seen.head, folding.length);
        const isEnd = folding.length === before || (pages.at(-1)?.next === null && this.ahead.size === 0 && folding.ahead.length === 0);
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

  /** The first event that is there of the end of a long history; null: it is read from the beginning alone. */
  private endOf(): number | null {
    const { ahead, length } = this.folding;
    if (ahead[0] !== undefined) return ahead[0].seq;
    return !this.seen.loaded && this.seen.head - length > LARGE ? this.seen.head + 1 : null;
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
    if (this.seen.detail === null) return;
    for (let next = this.ahead.get(this.folding.length + 1); next !== undefined; next = this.ahead.get(this.folding.length + 1)) {
      if (versionsOf([next]).some((version) => !this.folding.knows(version))) break; // it is read with its version
      this.ahead.delete(next.seq);
      this.folding.add([next]);
      this.fresh.push(next);
    }
    for (let next = this.after(); next !== undefined; next = this.after()) {
      this.ahead.delete(next.seq);
      this.folding.keep([next]);
    }
    for (const seq of this.ahead.keys()) if (seq <= this.folding.length) this.ahead.delete(seq);
  }

  /** What came by the stream and follows the end of a history of which the middle is missing. */
  private after(): Event | undefined {
    const last = this.folding.ahead.at(-1);
    const next = last === undefined ? undefined : this.ahead.get(last.seq + 1);
    return next === undefined || versionsOf([next]).length > 0 ? undefined : next; // one with a version is read with it
  }

  private async askDetail(): Promise<void> {
    const detail = await askRun(this.run).catch(() => null);
    if (detail === null || this.stopped) return;
    this.change({ detail, head: Math.max(this.seen.head, detail.seq) });
    if (this.stand !== null && !this.seen.loaded && detail.seq > this.stand.seq) void this.show().catch(() => undefined);
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
    if (this.seen.detail === null) void this.open();
    else this.refresh(); // whatever was committed meanwhile
  }

  private change(fields: Partial<Seen>, now = false): void {
    this.seen = { ...this.seen, ...fields };
    if (now) this.tell(true);
    else if (this.reading && !this.seen.loaded && performance.now() - this.told < READING_MS) this.lateTimer ??= setTimeout(() => this.tell(false), READING_MS);
    else this.frame ??= requestAnimationFrame(() => this.tell(false));
  }

  private tell(now: boolean): void {
    if (this.frame !== null) cancelAnimationFrame(this.frame);
    if (this.lateTimer !== null) clearTimeout(this.lateTimer);
    this.frame = this.lateTimer = null;
    this.told = performance.now();
    const { cursor, loaded } = this.seen;
    const state = cursor !== null ? this.folding.at(cursor) : !loaded && this.stand !== null ? this.stand : this.folding.newest;
    const fresh = this.isWhole || cursor !== null ? (this.isWhole ? null : []) : this.fresh;
    this.fresh = [];
    this.isWhole = false;
    this.seen = { ...this.seen, ...(this.drawnAt(state.version)), state, fresh, turn: this.seen.turn + 1 };
    for (const watcher of this.watchers) watcher();
    if (now || this.told - this.calmTold >= this.calmEvery) this.tellCalmly();
    else this.calmTimer ??= setTimeout(() => this.tellCalmly(), this.calmEvery - (this.told - this.calmTold));
  }

  private drawnAt(version: number): Partial<Seen> {
    const drawn = this.versions.of(version);
    return drawn === undefined ? {} : { graph: drawn.graph, canvas: drawn.canvas };
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
