// The shapes of a folded run. Values are never changed in place: a change puts a new object into its map, so that a copy
// of the maps is a checkpoint, and a view sees by identity what is another.
import type { Overlay } from "./scope";

/** One committed event, as `GET …/history` and the stream give it. */
export interface Event {
  readonly seq: number;
  readonly at: number;
  readonly type: string;
  readonly [field: string]: unknown;
}

export type Frame = readonly [group: number, branch: number];

export interface RunError {
  readonly kind: string;
  readonly message: string;
  readonly node?: string | null;
  readonly path?: string | null;
  readonly attempts?: number;
  readonly retryable?: boolean;
  readonly traceback?: string | null;
  readonly [field: string]: unknown;
}

/** A stretch of a visit's time. `held`: its work is done and it stands at a join. */
export interface Span {
  readonly kind: "queue" | "wait" | "run" | "held";
  readonly from: number;
  readonly to: number | null;
  readonly attempt: number;
  /** Of a wait: what for. Of a run: how it ended. */
  readonly reason: string | null;
  readonly outcome: "done" | "fail" | "stop" | null;
  /** Of a run that failed: why. */
  readonly error?: string;
}

export interface Visit {
  readonly id: number;
  readonly node: string;
  readonly path: string;
  readonly frames: readonly Frame[];
  readonly status: string;
  readonly waiting: string | null;
  readonly detail: unknown;
  readonly attempt: number;
  readonly attempts: number;
  readonly error: RunError | null;
  readonly via: string | null;
  readonly origin: number | null;
  readonly why: string | null;
  readonly compensation: boolean;
  readonly created: number;
  readonly createdSeq: number;
  readonly since: number;
  readonly until: number | null;
  readonly ended: number | null;
  readonly endedSeq: number | null;
  readonly arrivals: readonly number[];
  readonly held: boolean;
  readonly timers: readonly number[];
  readonly gate: "open" | "closed" | null;
  readonly asked: Event | null;
  readonly child: string | null;
  readonly worker: string | null;
  readonly queue: string | null;
  readonly spans: readonly Span[];
  readonly text: string | null;
  readonly textStep: unknown;
  /** The key of its failure in `failures`; 0: it has none that an operator could retry. */
  readonly failure: number;
  /** Its arrivals, if it went down with a failure that a retry takes back. */
  readonly fallen: readonly Arrival[] | null;
  /** Its result came during a pause, and is applied when the run goes on. */
  readonly deferred: boolean;
}

export interface Arrival {
  readonly id: number;
  readonly token: number;
  readonly target: string;
  readonly via: string;
  readonly frames: readonly Frame[];
  readonly group: number | null;
  readonly item: Frame | null;
}

export interface Site {
  readonly target: string;
  readonly status: "open" | "fired" | "failed" | "dead";
  readonly timer: number | null;
  readonly decided: Event | null;
  /** Branches that had arrived when it was decided. */
  readonly arrived: number;
}

export interface Group {
  readonly id: number;
  readonly names: readonly string[];
  readonly node: string;
  readonly path: string;
  readonly origin: number;
  readonly frames: readonly Frame[];
  readonly transitions: readonly string[];
  readonly total: number;
  readonly begun: number;
  readonly open: boolean;
  readonly withdrawn: boolean;
  readonly isolating: boolean;
  readonly items: readonly unknown[] | null;
  readonly failed: ReadonlyMap<number, RunError>;
  readonly sites: readonly Site[];
  readonly openedAt: number;
  readonly openedSeq: number;
}

export interface Timer {
  readonly id: number;
  readonly due: number;
  readonly purpose: string;
  readonly token: number | null;
  readonly group: number | null;
  readonly target: string | null;
}

/** What a retry of a failure takes back. */
export interface Failure {
  readonly fails: Frame | null;
  readonly closed: readonly { group: number; open: boolean; withdrawn: boolean }[];
}

/** One token on one edge. */
export interface Crossing {
  readonly seq: number;
  readonly at: number;
  readonly origin: number | null;
  readonly why: string | null;
}

export interface EdgeUse {
  readonly count: number;
  readonly last: Crossing;
}

/** What a fold has to know of one version of the workflow. */
export interface Shape {
  /** Where groups meet: the group's name in the history, the node, and whether it waits for a limited time. */
  readonly meetings: readonly (readonly [group: string, node: string, timed: boolean])[];
  readonly edges: ReadonlyMap<string, { readonly source: string; readonly target: string; readonly triggered: boolean; readonly group: string | null }>;
}

/** A completed visit that can be undone, and how far undoing it has come. */
export interface Compensation {
  readonly record: number;
  readonly status: "recorded" | "running" | "completed" | "failed" | "skipped";
  readonly node: string;
  readonly path: string;
  /** The visit that undoes it, once there is one. */
  readonly undoing: number | null;
  readonly error: RunError | null;
}

export interface RunState {
  run: string;
  workflow: string;
  version: number;
  seq: number;
  at: number;
  started: number;
  ended: number | null;
  status: string;
  input: unknown;
  output: unknown;
  error: RunError | null;
  pausedAt: number | null;
  /** The run whose past this one has, and the event up to which. */
  forkedFrom: { readonly run: string; readonly point: number } | null;
  /** Of a fork that waits for its start: the status it will go on with. */
  stands: string | null;
  visits: Map<number, Visit>;
  groups: Map<number, Group>;
  arrivals: Map<number, Arrival>;
  fallenArrivals: Map<number, Arrival>;
  failures: Map<number, Failure>;
  scopes: Map<string, Record<string, unknown> | Overlay>;
  timers: Map<number, Timer>;
  signals: Map<number, Event>;
  edges: Map<string, EdgeUse>;
  nodes: Map<string, readonly number[]>;
  counts: Map<string, number>;
  artifacts: Map<string, Event>;
  compensations: Map<number, Compensation>;
  warnings: number;
  /** Joins that have fired and whose visit is not made yet: its way was counted with its arrivals. */
  fired: Map<string, number>;
}

export function emptyState(): RunState {
  return {
    run: "", workflow: "", version: 0, seq: 0, at: 0, started: 0, ended: null, status: "created", input: null, output: null, error: null, pausedAt: null, stands: null, forkedFrom: null,
    visits: new Map(), groups: new Map(), arrivals: new Map(), fallenArrivals: new Map(), failures: new Map(), scopes: new Map(), timers: new Map(),
    signals: new Map(), edges: new Map(), nodes: new Map(), counts: new Map(), artifacts: new Map(), compensations: new Map(), warnings: 0, fired: new Map(),
  };
}

/** An independent state: the maps are copied, their values are shared. */
export function copyState(state: RunState): RunState {
  return {
    ...state,
    visits: new Map(state.visits), groups: new Map(state.groups), arrivals: new Map(state.arrivals), fallenArrivals: new Map(state.fallenArrivals),
    failures: new Map(state.failures), scopes: new Map(state.scopes), timers: new Map(state.timers), signals: new Map(state.signals), edges: new Map(state.edges),
    nodes: new Map(state.nodes), counts: new Map(state.counts), artifacts: new Map(state.artifacts), compensations: new Map(state.compensations), fired: new Map(state.fired),
  };
}

export const LIVE: ReadonlySet<string> = new Set(["created", "pending", "dispatched", "executing", "waiting"]);
export const isLive = (visit: Visit): boolean => LIVE.has(visit.status);
export const frameKey = (frame: Frame | null): string => (frame === null ? "" : `${frame[0]}.${frame[1]}`);
/** What the history leaves out has no value. */
export const orNull = <T>(value: unknown): T | null => (value === undefined ? null : (value as T));
