// The rows of the inbox: pages from the service, longest open first, kept true by the stream. Rows hold still: a gate
// that stops waiting stays and says why, new ones are counted at their group, and both change when asked for.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api, given } from "@/api/client";
import { follow } from "@/api/live";
import { asked, groupKey, rowsAfter, type GateFilter, type GateRow } from "@/model/gates";

const PAGE = 100;
const SETTLE_MS = 400; // a burst of gates is one question to the service

interface Count {
  readonly workflow: string;
  readonly node: string;
  readonly count: number;
}

export interface GateList {
  readonly rows: readonly GateRow[];
  readonly busy: boolean;
  readonly error: unknown;
  readonly more: boolean;
  /** Open gates that fit the filter, by group. */
  readonly counts: ReadonlyMap<string, number>;
  /** Gates that are not in the list yet, by group. */
  readonly fresh: ReadonlyMap<string, number>;
  readonly totals: { readonly mine: number; readonly all: number } | null;
  readonly readMore: () => void;
  readonly readAgain: () => void;
}

interface Read {
  readonly rows: readonly GateRow[];
  readonly next: string | null;
}

async function readPage(filter: GateFilter, cursor: string | null): Promise<Read> {
  const query = { ...asked(filter), limit: PAGE, ...(cursor === null ? {} : { cursor }) };
  const page = await given(api.GET("/api/v1/gates", { params: { query } }));
  return { rows: page.items as GateRow[], next: page.next ?? null };
}

async function readCounts(query: object): Promise<Count[]> {
  const { items } = await given(api.GET("/api/v1/gates", { params: { query: { ...query, by: "node" } } }));
  return items as Count[];
}

const sum = (counts: readonly Count[]) => counts.reduce((total, one) => total + one.count, 0);

export function useGateList(filter: GateFilter, key: string): GateList {
  const [read, setRead] = useState<Read>({ rows: [], next: null });
  const [busy, setBusy] = useState(true);
  const [error, setError] = useState<unknown>(null);
  const [turn, setTurn] = useState(0);
  const latest = useRef(filter);
  latest.current = filter;

  useEffect(() => {
    let over = false;
    setBusy(true);
    readPage(latest.current, null).then(
      (page) => {
        if (over) return;
        setRead(page);
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
  }, [key, turn]);

  useEffect(() => follow(null, (events) => setRead((before) => ({ ...before, rows: rowsAfter(before.rows, events) }))), []);

  const readMore = useCallback(() => {
    if (busy || read.next === null) return;
    setBusy(true);
    readPage(latest.current, read.next).then(
      (page) => {
        setRead((before) => ({ ...page, rows: [...before.rows, ...page.rows] }));
        setBusy(false);
      },
      (problem: unknown) => {
        setError(problem);
        setBusy(false);
      },
    );
  }, [busy, read.next]);
  const readAgain = useCallback(() => setTurn((before) => before + 1), []);
  const { counts, totals } = useCounts(latest, `${key} ${turn}`);
  const fresh = useFresh(read, counts, busy);
  const isNews = fresh.size > 0 && read.rows.length === 0;
  useEffect(() => {
    if (isNews) readAgain(); // in an empty list nothing can move
  }, [isNews, readAgain]);
  return { rows: read.rows, busy, error, more: read.next !== null, counts, fresh, totals, readMore, readAgain };
}

/** Numbers of open gates: read with the list, and again a moment after events of gates. */
function useCounts(filter: { readonly current: GateFilter }, key: string) {
  const [counts, setCounts] = useState<ReadonlyMap<string, number>>(new Map());
  const [totals, setTotals] = useState<GateList["totals"]>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    let over = false;
    const ask = async () => {
      timer = null;
      try {
        const [fitting, mine, all] = await Promise.all([readCounts(asked(filter.current)), readCounts({ mine: true }), readCounts({})]);
        if (over) return;
        setCounts(new Map(fitting.map((one) => [groupKey(one), one.count])));
        setTotals({ mine: sum(mine), all: sum(all) });
      } catch {
        // The numbers stay as they were; the next event asks again.
      }
    };
    void ask();
    const stop = follow(null, (events) => {
      if (timer === null && events.some((event) => event.type.startsWith("gate.") || event.type.startsWith("run."))) timer = setTimeout(() => void ask(), SETTLE_MS);
    });
    return () => {
      over = true;
      stop();
      if (timer !== null) clearTimeout(timer);
    };
  }, [filter, key]);
  return { counts, totals };
}

/** What is counted but not listed. Rows and numbers are compared when numbers come in: a gate that was answered a moment
 * ago is still part of the older numbers. While pages are left to read, the rest of them is no news. */
function useFresh(read: Read, counts: ReadonlyMap<string, number>, busy: boolean): ReadonlyMap<string, number> {
  const latest = useRef(read);
  latest.current = read;
  return useMemo(() => {
    const fresh = new Map<string, number>();
    const { rows, next } = latest.current;
    if (busy || next !== null) return fresh;
    const shown = new Map<string, number>();
    for (const row of rows) if (row.over === undefined) shown.set(groupKey(row), (shown.get(groupKey(row)) ?? 0) + 1);
    for (const [group, count] of counts) if (count > (shown.get(group) ?? 0)) fresh.set(group, count - (shown.get(group) ?? 0));
    return fresh;
  }, [counts, busy]);
}
