// What the marks mean: only those states that somebody is in, so that the line stays short.
import { useMemo } from "react";
import { nameOf, stateLook, type Standing } from "@/model/journeys";
import type { Look } from "@/model/states";
import { useJourneys } from "./context";

function looksOf(standings: readonly Standing[], kinds: ReadonlyMap<string, string>): Look[] {
  const found = new Map<string, Look>();
  for (const { place, look, people } of standings) {
    const all = people?.map((entity) => stateLook(entity.positions[0]?.state ?? null, place.kind === "node" ? kinds.get(place.name) : undefined)) ?? [look];
    for (const one of all) found.set(one.word, one);
  }
  return [...found.values()];
}

export function Legend() {
  const { standings, drawn, view, selected, chosen } = useJourneys();
  const looks = useMemo(() => looksOf(standings, drawn.kinds), [standings, drawn]);
  return (
    <div className="jr-legend" role="note" aria-label="Legend">
      {view === "people" && looks.map((one) => <span key={one.word} data-tone={one.tone}><i className="jr-ent jr-lg" />{one.word}</span>)}
      {view === "people" && standings.some((one) => one.people === null) && <span><i className="jr-ent jr-many jr-lg">12</i>more than five</span>}
      {selected !== null && <span className="jr-lg-way"><i />way of {chosen === null ? selected : nameOf(chosen)}</span>}
      {view === "numbers" && <span>On a way: how many went over it. At a node: how many came in and went on, and how long half of them stayed at most.</span>}
    </div>
  );
}
