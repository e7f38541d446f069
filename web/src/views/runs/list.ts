// The rows of the list: pages from the service, kept true by the stream. Rows hold still: a new run is counted, and
// comes in when asked for; a row whose run changes, changes in its place.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api, given } from "@/api/client";
import { follow } from "@/api/live";
import { fits, hiddenQuestion, inputFields, isEmpty, question, rowAfter, type Clause, type RunItem } from "@/model/run-filter";

const PAGE = 50;
const READ_MAX = 20; // pages that are read to fill one page of rows, where most are excluded here

export interface RunList {
  readonly rows: readonly RunItem[];
  readonly busy: boolean;
  readonly error: unknown;
  readonly more: boolean;
  /** Runs that began since the list was read. */
  readonly fresh: number;
  readonly readMore: () => void;
  readonly readAgain: () => void;
}

interface Read {
  rows: RunItem[];
  next: string | null;
  now: number;
}

async function readPage(clauses: readonly Clause[], fields: readonly string[], now: number, cursor: string | null): Promise<Read> {
  const asked = question(clauses, now);
  const rows: RunItem[] = [];
  let next = cursor;
  if (isEmpty(asked)) return { rows, next: null, now };
  for (let read = 0; rows.length < PAGE && read < READ_MAX; read += 1) {
    const query = { ...asked, ...(fields.length === 0 ? {} : { field: fields }), limit: PAGE, ...(next === null ? {} : { cursor: next }) };
    const page = await given(api.GET("/api/v1/runs", { params: { query: query as never } }));
    rows.push(...page.items.filter((row) => fits(row, clauses, now)));
    next = page.next ?? null;
    if (next === null) break;
  }
  return { rows, next, now };
}

/** The list as it was last seen, with where it was scrolled to and what was selected: going back finds it so. */
interface Kept {
  readonly key: string;
  read: Read;
  top: number;
  selected: ReadonlySet<string>;
}
let kept: Kept | null = null;
export const keptList = (key: string): Kept | null => (kept !== null && kept.key === key ? kept : null);
export function keepList(key: string, fields: Partial<Pick<Kept, "top" | "selected">>): void {
  if (kept !== null && kept.key === key) Object.assign(kept, fields);
}

/** `fields`: values of inputs that the rows bring along. */
export function useRunList(clauses: readonly Clause[], key: string, fields: readonly string[]): RunList {
  const [read, setRead] = useState<Read>(() => keptList(key)?.read ?? { rows: [], next: null, now: Date.now() });
  const [busy, setBusy] = useState(() => keptList(key) === null);
  const isBack = useRef(keptList(key) !== null);
  const [error, setError] = useState<unknown>(null);
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  const [turn, setTurn] = useState(0);
  const latest = useRef(clauses);
  latest.current = clauses;
  const wanted = fields.join("\n");

  useEffect(() => {
    let over = false;
    const before = isBack.current ? keptList(key) : null;
    if (before === null) setBusy(true);
    readPage(latest.current, fields, Date.now(), null).then(
      (page) => {
        if (over) return;
        isBack.current = false;
        if (before !== null) return void setRead((shown) => renewed(shown, page, setFresh));
        setRead(page);
        setFresh(new Set());
        setError(null);
        setBusy(false);
      },
      (problem: unknown) => {
        if (over) return;
        setError(problem);
        setBusy(false);
      },
    );
    return () => {
      over = true;
    };
  }, [key, turn, wanted]);

  useEffect(() => {
    if (!busy) kept = { key, read, top: keptList(key)?.top ?? 0, selected: keptList(key)?.selected ?? new Set() };
  }, [key, read, busy]);

  useEffect(
    () =>
      follow(null, (events) => {
        setRead((before) => ({ ...before, rows: applied(before.rows, events) }));
        const started = events.filter((event) => event.seq === 1).map((event) => event.run);
        if (started.length > 0) setFresh((before) => new Set([...before, ...started]));
      }),
    [],
  );

  const readMore = useCallback(() => {
    if (busy || read.next === null) return;
    setBusy(true);
    readPage(latest.current, fields, read.now, read.next).then(
      (page) => {
        setRead((before) => ({ ...page, rows: [...before.rows, ...page.rows] }));
        setBusy(false);
      },
      (problem: unknown) => {
        setError(problem);
        setBusy(false);
      },
    );
  }, [busy, read, wanted]);
  const readAgain = useCallback(() => setTurn((before) => before + 1), []);
  const unseen = useMemo(() => [...fresh].filter((run) => !read.rows.some((row) => row.run === run)).length, [fresh, read]);
  return { rows: read.rows, busy, error, more: read.next !== null, fresh: unseen, readMore, readAgain };
}

/** Rows that were shown, with what became of them meanwhile; those that came meanwhile are counted. */
function renewed(shown: Read, page: Read, setFresh: (runs: ReadonlySet<string>) => void): Read {
  const now = new Map(page.rows.map((row) => [row.run, row]));
  const there = new Set(shown.rows.map((row) => row.run));
  const newest = Math.max(0, ...shown.rows.map((row) => row.number));
  setFresh(new Set(page.rows.filter((row) => !there.has(row.run) && row.number > newest).map((row) => row.run)));
  return { ...shown, rows: shown.rows.map((row) => now.get(row.run) ?? row) };
}

const COUNTED = 1_000;

/** How many live runs a filter by time hides; null while it hides none. */
export function useHidden(clauses: readonly Clause[], key: string, turn: unknown): { count: number; more: boolean } | null {
  const [found, setFound] = useState<{ key: string; count: number; more: boolean } | null>(null);
  useEffect(() => {
    const now = Date.now();
    const asked = hiddenQuestion(clauses, now);
    if (asked === null) return undefined;
    let over = false;
    const others = clauses.filter((one) => one.field !== "started");
    const looked = inputFields(clauses).slice(0, 10);
    given(api.GET("/api/v1/runs", { params: { query: { ...asked, ...(looked.length === 0 ? {} : { field: looked }), limit: COUNTED } as never } })).then(
      (page) => over || setFound({ key, count: page.items.filter((row) => fits(row, others, now)).length, more: page.next !== null }),
      () => undefined, // the list itself says that the service does not answer
    );
    return () => {
      over = true;
    };
  }, [key, turn]);
  return found !== null && found.key === key && found.count > 0 && clauses.some((one) => one.field === "started") ? found : null;
}

function applied(rows: RunItem[], events: readonly { run: string; type: string; seq: number; at: number; [field: string]: unknown }[]): RunItem[] {
  const newest = new Map<string, RunItem>();
  const known = new Map(rows.map((row) => [row.run, row]));
  for (const event of events) {
    const row = newest.get(event.run) ?? known.get(event.run);
    if (row !== undefined) newest.set(event.run, rowAfter(row, event));
  }
  return newest.size === 0 ? rows : rows.map((row) => newest.get(row.run) ?? row);
}
