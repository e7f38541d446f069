// What the screen of journeys reads: the workflow with its drawing, who is where, how many went on. Events of the stream
// say when to read again: at most once a second, and the dear question of conversion at most every ten.
import { useEffect, useMemo, useRef, useState } from "react";
import { api, given } from "@/api/client";
import { follow, type LiveEvent } from "@/api/live";
import type { components } from "@/api/schema";
import { mapOf, sectionsMoved, sectionsOf, type JourneyMap } from "@/model/journey-map";
import { CLUSTER_ABOVE, initialsOf, keyOf, placeOf, type Conversion, type Crowd, type Entity } from "@/model/journeys";
import { useAsk } from "@/ui/ask";

export type DrawnGraph = components["schemas"]["DrawnGraph"];
const PAGE = 200;
const PAGES_MAX = 5; // so many people are read whole: each may have a dot
const PLACES_AT_ONCE = 40;
const PEOPLE_MS = 1_000;
const NUMBERS_MS = 10_000;

export interface Drawn {
  readonly workflow: string;
  readonly version: number;
  readonly graph: DrawnGraph;
  readonly map: JourneyMap;
  readonly kinds: ReadonlyMap<string, string>;
}

/** A workflow as a map. Sections that people are in, but no drawing or definition names, are drawn too. */
export function useDrawn(workflow: string | null, found: readonly Crowd[]): { drawn: Drawn | undefined; error: unknown; again: () => void } {
  const asked = useAsk(workflow, async () => {
    const path = { name: workflow as string };
    const [row, graph] = await Promise.all([given(api.GET("/api/v1/workflows/{name}", { params: { path } })), given(api.GET("/api/v1/workflows/{name}/graph", { params: { path } })) as Promise<DrawnGraph>]);
    return { row, graph };
  });
  const named = found.flatMap((crowd) => (crowd.section == null ? [] : [crowd.section])).sort().join("\n");
  const drawn = useMemo(() => {
    if (asked.data === undefined) return undefined;
    const { row, graph } = asked.data;
    const refs = graph.nodes.map((node) => node.ref);
    const sections = sectionsOf(row.canvas, refs, [...sectionsMoved(row.definition), ...named.split("\n").filter(Boolean)]);
    return { workflow: row.workflow, version: row.version, graph, map: mapOf(sections, refs, graph.transitions, row.canvas), kinds: new Map(graph.nodes.map((node) => [node.ref, node.words.startsWith("signal") ? "signal" : node.kind])) };
  }, [asked.data, named]);
  return { drawn, error: asked.error, again: asked.again };
}

export interface People {
  readonly crowds: readonly Crowd[];
  readonly items: readonly Entity[];
}

/** Who is where: everybody, or of a large crowd the first page and the people at places with few. */
async function readPeople(name: string): Promise<People> {
  const read = (query: object) => given(api.GET("/api/v1/workflows/{name}/positions", { params: { path: { name }, query } }));
  const page = await read({ limit: PAGE });
  if (page.next == null) return { crowds: page.places, items: page.items };
  if (page.places.reduce((sum, crowd) => sum + crowd.count, 0) <= PAGE * PAGES_MAX) {
    const found = new Map(page.items.map((entity) => [`${entity.type}/${entity.id}`, entity]));
    for (let next: string | null | undefined = page.next; next != null; ) {
      const more: typeof page = await read({ limit: PAGE, cursor: next });
      for (const entity of more.items) found.set(`${entity.type}/${entity.id}`, entity); // who moved meanwhile may come twice
      next = more.next;
    }
    return { crowds: page.places, items: [...found.values()] };
  }
  const known = new Map<string, number>();
  for (const entity of page.items) {
    const place = placeOf(entity.positions[0] as Entity["positions"][number]);
    if (place !== null) known.set(keyOf(place), (known.get(keyOf(place)) ?? 0) + 1);
  }
  const missing = page.places.flatMap((crowd) => {
    const place = placeOf(crowd);
    return place !== null && crowd.count <= CLUSTER_ABOVE && (known.get(keyOf(place)) ?? 0) < crowd.count ? [place] : [];
  });
  const more = await Promise.all(missing.slice(0, PLACES_AT_ONCE).map(({ kind, name: place }) => read({ [kind]: place, limit: CLUSTER_ABOVE })));
  const all = new Map([...page.items, ...more.flatMap((one) => one.items)].map((entity) => [`${entity.type}/${entity.id}`, entity]));
  return { crowds: page.places, items: [...all.values()] };
}

export function usePeople(workflow: string | null): { people: People | undefined; error: unknown; again: () => void } {
  const asked = useAsk(workflow, () => readPeople(workflow as string));
  return { people: asked.data, error: asked.error, again: asked.again };
}

export function useConversion(workflow: string | null, ms: number): { conversion: Conversion | undefined; again: () => void } {
  const asked = useAsk(workflow === null ? null : `${workflow}:${ms}`, () => given(api.GET("/api/v1/workflows/{name}/conversion", { params: { path: { name: workflow as string }, query: { since: ms === 0 ? 0 : Date.now() - ms } } })));
  return { conversion: asked.data, again: asked.again };
}

/** Calls `act` soon after the first of many requests, and not again before the time is over. */
function useGathered(act: () => void, ms: number): () => void {
  const latest = useRef(act);
  latest.current = act;
  const [gathered] = useState(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    let last = 0;
    const ask = () => {
      timer ??= setTimeout(() => {
        timer = null;
        last = Date.now();
        latest.current();
      }, Math.max(500, last + ms - Date.now()));
    };
    return { ask, stop: () => timer !== null && clearTimeout(timer) };
  });
  useEffect(() => () => void gathered.stop(), [gathered]);
  return gathered.ask;
}

export interface Hop {
  readonly edge: string;
  readonly initials: string;
}

const MOVES = new Set(["entity.moved", "gate.opened", "gate.closed", "run.completed", "run.failed", "run.cancelled", "run.paused", "run.resumed"]);

/** Follows the stream: tells hops along edges, and asks for people and numbers again. */
export function useFollowing(workflow: string | null, people: People | undefined, again: { people: () => void; numbers: () => void; journey: (runs: ReadonlySet<string>) => void }, hop: (hops: readonly Hop[]) => void): void {
  const askPeople = useGathered(again.people, PEOPLE_MS);
  const askNumbers = useGathered(again.numbers, NUMBERS_MS);
  const latest = useRef({ people, hop, journey: again.journey });
  latest.current = { people, hop, journey: again.journey };
  useEffect(() => {
    if (workflow === null) return undefined;
    const begun = new Map<string, string>(); // runs of this workflow that began while the page was open
    const whose = (run: string): string | undefined => {
      const entity = latest.current.people?.items.find((one) => one.positions[0]?.run === run);
      return entity === undefined ? begun.get(run) : initialsOf(entity);
    };
    return follow(null, (events: readonly LiveEvent[]) => {
      const hops: Hop[] = [];
      const runs = new Set<string>();
      for (const event of events) {
        const entity = event["entity"] as { id: string; name?: string | null } | null | undefined;
        if (event.type === "run.started" && event["workflow"] === workflow && entity != null) begun.set(event.run, initialsOf({ name: entity.name ?? null, id: entity.id }));
        if (!MOVES.has(event.type)) continue;
        runs.add(event.run);
        const initials = whose(event.run);
        if (event.type === "entity.moved" && typeof event["edge"] === "string" && initials !== undefined) hops.push({ edge: event["edge"], initials });
      }
      if (runs.size === 0) return;
      askPeople();
      askNumbers();
      latest.current.journey(runs);
      if (hops.length > 0) latest.current.hop(hops);
    });
  }, [workflow, askPeople, askNumbers]);
}
