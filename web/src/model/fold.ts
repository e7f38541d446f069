// The fold of a run's history into the state that the views show: any moment of a run, quickly.
//
// Pure. Promises to equal the service's fold (`GET /runs/{run}/state?seq=`) in what both have; tests compare them on
// histories of scenarios. States are kept on the way, so that a jump folds a few thousand events at most.
//
// A long history is read from both ends: its newest events are kept as they are, and folded once everything before them is.
import { CHANGE_FOLDS } from "./fold/changes";
import { GROUP_FOLDS, openedWith } from "./fold/groups";
import { migratedWith } from "./fold/migration";
import { RUN_FOLDS } from "./fold/run";
import { copyState, emptyState, type Event, type RunState, type Shape } from "./fold/state";
import { VISIT_FOLDS, type Fold } from "./fold/visits";

export * from "./fold/state";
export { viewOf, waitingFor, scopeView, branchesAt } from "./fold/view";

const FOLDS: Record<string, Fold> = { ...VISIT_FOLDS, ...GROUP_FOLDS, ...RUN_FOLDS, ...CHANGE_FOLDS };
const EVERY = 1_000;
const KEPT_MAX = 50; // states: each has maps of all visits, so a long run has fewer of them for its length

/** A history that grows, and its state at any event. */
export class Folding {
  /** Event `seq` is at index `seq - 1`. */
  readonly events: Event[] = [];
  private readonly kept = new Map<number, RunState>([[0, emptyState()]]);
  /** The newest events, without a gap among them, as long as some before them are missing. */
  private end: Event[] = [];
  private every = EVERY;
  private now = emptyState();
  private past: RunState | null = null;
  private readonly shapes = new Map<number, Shape>();
  /** Folds that depend on the version the run has. */
  private readonly shaped: Record<string, Fold>;

  constructor(shapes: Iterable<readonly [version: number, shape: Shape]> = []) {
    for (const [version, shape] of shapes) this.learn(version, shape);
    const shapeOf = (version: number) => this.shapes.get(version);
    this.shaped = { "group.opened": openedWith(shapeOf), "run.migrated": migratedWith(shapeOf) };
  }

  /** Tells what a version is like: before the events of a run under that version are added. */
  learn(version: number, shape: Shape): void {
    this.shapes.set(version, shape);
  }

  knows = (version: number): boolean => this.shapes.has(version);

  get length(): number {
    return this.events.length;
  }

  /** Events that are here: those that are folded, and the newest of a history that is still being read. */
  get known(): number {
    return this.events.length + this.end.length;
  }

  /** The newest events that are not folded yet. */
  get ahead(): readonly Event[] {
    return this.end;
  }

  /** Keeps events of the end of the history: those right before or right behind what is kept of it. */
  keep(events: readonly Event[]): void {
    const [first, last] = [events[0], events.at(-1)];
    if (first === undefined || last === undefined || last.seq <= this.events.length) return;
    const [begin, end] = [this.end[0]?.seq, this.end.at(-1)?.seq];
    if (begin === undefined || end === undefined) this.end = [...events];
    else if (last.seq === begin - 1) this.end = [...events, ...this.end];
    else if (first.seq === end + 1) this.end.push(...events);
  }

  /** Folds some events of the end, once none is missing before them. False: there are none, or some are missing. */
  close(most: number): boolean {
    if (this.end.length === 0 || (this.end[0] as Event).seq > this.events.length + 1) return false;
    this.add(this.end.slice(0, most));
    this.end = this.end.slice(most);
    return true;
  }

  /** The event of this number, if it is here. */
  event(seq: number): Event | undefined {
    return seq <= this.events.length ? this.events[seq - 1] : this.end[seq - (this.end[0]?.seq ?? 0)];
  }

  /** The state after the newest event that was added. It changes when events are added. */
  get newest(): RunState {
    return this.now;
  }

  /** Adds the events that follow. One that is there already is passed over; gives false at a gap, and adds no more. */
  add(events: readonly Event[]): boolean {
    for (const event of events) {
      if (event.seq <= this.events.length) continue;
      if (event.seq !== this.events.length + 1) return false;
      this.events.push(event);
      this.apply(this.now, event);
      if (event.seq % this.every === 0) this.checkpoint(event.seq);
    }
    return true;
  }

  private checkpoint(seq: number): void {
    this.kept.set(seq, copyState(this.now));
    if (this.kept.size <= KEPT_MAX) return;
    this.every *= 2;
    for (const at of this.kept.keys()) if (at % this.every !== 0) this.kept.delete(at);
  }

  /** The state after an event. It is for reading, until the next question. */
  at(seq: number): RunState {
    const wanted = Math.max(0, Math.min(seq, this.events.length));
    if (wanted === this.events.length) return this.now;
    const from = Math.floor(wanted / this.every) * this.every;
    const near = this.past !== null && this.past.seq <= wanted && this.past.seq >= from ? this.past : copyState(this.kept.get(from) as RunState);
    const state = near === this.past ? copyState(near) : near;
    for (let index = state.seq; index < wanted; index++) this.apply(state, this.events[index] as Event);
    this.past = state;
    return state;
  }

  /** The number of the last event at or before an instant. */
  seqAt(at: number): number {
    let [low, high] = [0, this.events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.events[middle] as Event).at <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private apply(state: RunState, event: Event): void {
    (this.shaped[event.type] ?? FOLDS[event.type])?.(state, event);
    state.seq = event.seq;
    state.at = event.at;
  }
}
