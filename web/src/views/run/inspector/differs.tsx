// What is different among the visits of a stack, above the list of them.
import { useMemo } from "react";
import type { Group, Visit } from "@/model/fold";
import { duration } from "@/model/time";
import { varianceOf } from "@/model/variance";
import { useRunPage, useSeen } from "../context";

export function Differs({ visits, group }: { visits: readonly Visit[]; group: Group | undefined }) {
  const { select } = useRunPage();
  const { state, turn } = useSeen();
  const found = useMemo(() => varianceOf(visits, group?.items ?? null, state.at), [visits.length, group, turn >> 3]);
  if (visits.length < 2) return null;
  return (
    <section className="run-differs" aria-label="What differs">
      <dl className="kv">
        {found.distinct > 0 && <><dt>Items</dt><dd className="clip">{found.distinct === 1 ? "all the same" : `${found.distinct.toLocaleString()} distinct`}: <span className="mono">{found.items.map((one) => (one.count > 1 ? `${cut(one.text)} ×${one.count}` : cut(one.text))).join(", ")}{found.distinct > found.items.length ? ", …" : ""}</span></dd></>}
        {found.median > 0 && (
          <>
            <dt>Slow</dt>
            <dd>{found.slow.length === 0 ? `none; half took ${duration(found.median)} or less` : found.slow.map((one) => (
              <button key={one.visit} type="button" className="link mono t1" onClick={() => select({ node: null, visit: one.visit, group: null })}>{nameOf(state.visits.get(one.visit))} {duration(one.ms)} ({Math.round(one.times)}×)</button>
            ))}</dd>
          </>
        )}
        {found.stagger !== null && <><dt>Began</dt><dd>within {duration(found.stagger)} of each other</dd></>}
      </dl>
    </section>
  );
}

const cut = (text: string): string => (text.length > 24 ? `${text.slice(0, 23)}…` : text);
const nameOf = (visit: Visit | undefined): string => (visit === undefined ? "" : visit.frames.length > 0 ? `[${visit.frames.at(-1)?.[1]}]` : `visit ${visit.id}`);
