// One scale of time for timeline and slider, over the whole run: linear but for folded idle stretches.
import { createContext, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from "react";
import { foldsOf, idleOf, timeScale, type TimeScale } from "@/model/timescale";
import { useNow } from "@/ui/parts";
import { useSeen } from "./context";
import { isOver } from "./graph/summaries";
import { newestOf } from "./seen";

interface Shared {
  readonly scale: TimeScale;
  /** The end of what has happened: now, or the end of the run. */
  readonly now: number;
  readonly folding: boolean;
  readonly setFolding: (on: boolean) => void;
  readonly measure: (element: HTMLElement | null) => void;
}

const TimeContext = createContext<Shared | null>(null);
export const useTime = (): Shared => useContext(TimeContext) as Shared;

export function TimeProvider({ children }: { children: ReactNode }) {
  const seen = useSeen();
  const tick = useNow(1_000);
  const [folding, setFolding] = useState(true);
  const [width, setWidth] = useState(800);
  const [element, measure] = useState<HTMLElement | null>(null);
  const { events, length } = seen.folding;
  const newest = newestOf(seen);
  const over = isOver(newest.status) && (seen.loaded || newest !== seen.folding.newest);
  const now = over ? newest.at : Math.max(tick, newest.at);
  const from = newest.started || now - 1_000;
  const slow = over ? length : Math.floor(now / 2_000);
  const folds = useMemo(() => (folding && newest.started > 0 ? foldsOf(idleOf(events, newest, from, now), now - from) : []), [folding, slow, over, from, seen.loaded]);
  const to = now + Math.max(1, (now - from - folds.reduce((sum, [a, b]) => sum + b - a, 0)) * 0.22);
  const scale = useMemo(() => timeScale(from, to, width, folds), [from, to, width, folds]);
  useEffect(() => {
    if (element === null) return undefined;
    const watch = new ResizeObserver(([entry]) => entry !== undefined && entry.contentRect.width > 40 && setWidth(Math.round(entry.contentRect.width)));
    watch.observe(element);
    return () => watch.disconnect();
  }, [element]);
  useEffect(() => {
    const flip = () => setFolding((on) => !on);
    addEventListener("treadle.unfold", flip);
    return () => removeEventListener("treadle.unfold", flip);
  }, []);
  const set = useCallback((on: boolean) => setFolding(on), []);
  const shared = useMemo(() => ({ scale, now, folding, setFolding: set, measure }), [scale, now, folding, set]);
  return <TimeContext.Provider value={shared}>{children}</TimeContext.Provider>;
}
