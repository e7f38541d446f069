// What is selected and which view is shown, in the address: a link leads to the same place, and Back goes back.
import { useCallback, useMemo } from "react";
import { useLocation, useSearch } from "wouter";
import type { Selection } from "./context";

const number = (text: string | null): number | null => (text !== null && /^\d+$/.test(text) ? Number(text) : null);

export function useSelection(): { selection: Selection; select: (next: Partial<Selection>) => void; query: URLSearchParams; set: (fields: Record<string, string | null>) => void } {
  const search = useSearch();
  const [place, go] = useLocation();
  const query = useMemo(() => new URLSearchParams(search), [search]);
  const set = useCallback((fields: Record<string, string | null>) => {
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(fields)) value === null ? next.delete(name) : next.set(name, value);
    const text = next.toString();
    go(text === "" ? place : `${place}?${text}`, { replace: true });
  }, [place, go]);
  const selection = useMemo(() => ({ node: query.get("node"), visit: number(query.get("visit")), group: number(query.get("group")), branches: query.get("branches") }), [query]);
  const select = useCallback((next: Partial<Selection>) => set(Object.fromEntries(Object.entries({ branches: null, ...next }).map(([name, value]) => [name, value === null ? null : String(value)]))), [set]);
  return { selection, select, query, set };
}
