// The rows of the timeline: one for each node in the order of its first visit, and one for each visit of an open node.
import { isLive, type Group, type RunState, type Visit } from "./fold";
import { within, type Span } from "./loops";

export type Row =
  | { readonly kind: "node"; readonly key: string; readonly ref: string; readonly visits: readonly Visit[]; readonly groups: readonly Group[]; readonly open: boolean }
  | { readonly kind: "visit"; readonly key: string; readonly visit: Visit };

const failed = (visit: Visit): boolean => visit.status === "failed" || visit.status === "timed_out";
const order = (visit: Visit): number => (failed(visit) ? 0 : isLive(visit) ? 1 : 2);

/** Failed visits first, then live ones, then the others by number. */
export const worstFirst = (visits: readonly Visit[]): Visit[] => [...visits].sort((a, b) => order(a) - order(b) || a.id - b.id);

export function rowsOf(state: RunState, open: ReadonlySet<string>, filter: string, span: Span | null = null): Row[] {
  const wanted = filter.trim().toLowerCase();
  const meetings = new Map<string, Group[]>();
  for (const group of state.groups.values()) for (const site of group.sites) meetings.set(site.target, [...(meetings.get(site.target) ?? []), group]);
  const first = (ref: string) => state.visits.get(state.nodes.get(ref)?.[0] ?? 0)?.createdSeq ?? Infinity;
  const began = (ref: string) => Math.min(first(ref), ...(meetings.get(ref) ?? []).map((group) => group.openedSeq + 1.5));
  const refs = [...new Set([...state.nodes.keys(), ...meetings.keys()])].sort((a, b) => began(a) - began(b));
  const rows: Row[] = [];
  for (const ref of refs) {
    const visits = within((state.nodes.get(ref) ?? []).map((id) => state.visits.get(id) as Visit), span);
    const fits = wanted === "" || ref.toLowerCase().includes(wanted) || visits.some((visit) => visit.path.toLowerCase().includes(wanted));
    if (!fits) continue;
    const isOpen = open.has(ref) && visits.length > 1;
    rows.push({ kind: "node", key: ref, ref, visits, groups: meetings.get(ref) ?? [], open: isOpen });
    if (isOpen) for (const visit of worstFirst(visits)) rows.push({ kind: "visit", key: `v${visit.id}`, visit });
  }
  return rows;
}

/** How many visits are at work in each of `buckets` slices of a scale, and where some have failed. */
export function densityOf(visits: readonly Visit[], buckets: number, x: (at: number) => number, width: number, now: number): { counts: number[]; fails: number[] } {
  const change = Array<number>(buckets + 1).fill(0);
  const fails = new Set<number>();
  const bucket = (at: number) => Math.max(0, Math.min(buckets - 1, Math.floor((x(at) / width) * buckets)));
  for (const visit of visits) {
    for (const span of visit.spans) {
      if (span.kind !== "run") continue;
      change[bucket(span.from)]! += 1;
      change[bucket(span.to ?? now) + 1]! -= 1;
    }
    if (failed(visit) && visit.ended !== null) fails.add(bucket(visit.ended));
  }
  const counts: number[] = [];
  let sum = 0;
  for (let index = 0; index < buckets; index++) counts.push((sum += change[index] as number));
  return { counts, fails: [...fails] };
}
