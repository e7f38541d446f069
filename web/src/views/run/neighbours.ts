// The run before and after this one in the list that was last seen.
import { useLocation } from "wouter";

const KEY = "treadle.runs.list";

export interface Neighbours {
  readonly place: number;
  readonly count: number;
  readonly previous: string | null;
  readonly next: string | null;
  readonly goPrevious: () => void;
  readonly goNext: () => void;
}

function lastList(): string[] {
  try {
    const list: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(list) ? list.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export function useNeighbours(run: string): Neighbours {
  const [, go] = useLocation();
  const list = lastList();
  const at = list.indexOf(run);
  const [previous, next] = at < 0 ? [null, null] : [list[at - 1] ?? null, list[at + 1] ?? null];
  const open = (to: string | null) => to !== null && go(`/runs/${encodeURIComponent(to)}`);
  return { place: at + 1, count: at < 0 ? 0 : list.length, previous, next, goPrevious: () => open(previous), goNext: () => open(next) };
}
