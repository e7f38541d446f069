// Journeys: a workflow as a map of sections, people and things that travel over it, and the journey of each over many runs.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useLocation, useParams, useSearch } from "wouter";
import { api, given } from "@/api/client";
import { useMay } from "@/api/session";
import { wayOf, type Names } from "@/model/journey-legs";
import { addressOf, countsBySection, sharesOf, standings as standingsOf, type Entity, type PlaceRef } from "@/model/journeys";
import { useAsk } from "@/ui/ask";
import { fetched } from "@/ui/fetched";
import { LiveChip } from "@/ui/live-chip";
import { Button, Loading, Page, Trouble } from "@/ui/parts";
import { useMedia } from "@/views/editor/use-wide";
import { useKeys } from "@/views/run/use-keys";
import { StartRun } from "@/views/runs/start";
import { Add } from "./add";
import { JourneysContext, type JourneysPage } from "./context";
import { CrowdList } from "./crowd";
import { useConversion, useDrawn, useFollowing, usePeople, type Hop } from "./data";
import { Empty } from "./empty";
import { Everybody } from "./everybody";
import { Find } from "./find";
import { Move } from "./move";
import { Panel } from "./panel";
import { PhoneList } from "./phone";
import { Tools } from "./tools";
import "./journeys.css";

const Graph = fetched(() => import("./graph"));
const DAY = 86_400_000;
const NONE: never[] = [];

/** The workflow to show without one in the address: where the newest record is, else the first that is deployed. */
async function firstWorkflow(): Promise<string | null> {
  const newest = await given(api.GET("/api/v1/entities", { params: { query: { limit: 20 } } }));
  const there = newest.items.flatMap((one) => one.positions)[0]?.workflow;
  if (there !== undefined) return there;
  return (await given(api.GET("/api/v1/workflows", { params: { query: { limit: 1 } } }))).items[0]?.workflow ?? null;
}

/** The selected entity and its journey, read again when one of its runs has moved. */
function useJourney(address: string | null) {
  const [type, ...id] = (address ?? "").split("/");
  const path = { type: type as string, id: id.join("/") };
  const entity = useAsk(address, () => given(api.GET("/api/v1/entities/{type}/{id}", { params: { path } })));
  const legs = useAsk(address, async () => (await given(api.GET("/api/v1/entities/{type}/{id}/journey", { params: { path, query: { limit: 200 } } }))).items);
  const again = useCallback(() => {
    entity.again();
    legs.again();
  }, [entity.again, legs.again]);
  return { entity: entity.data, legs: legs.data, error: entity.error ?? legs.error, again };
}

export default function Journeys() {
  const { workflow: named } = useParams<{ workflow?: string }>();
  const first = useAsk(named === undefined ? "first" : null, firstWorkflow);
  const workflow = named === undefined ? (first.data ?? null) : decodeURIComponent(named);
  if (named === undefined && first.error !== undefined) return <Page title="Journeys"><Trouble error={first.error} onRetry={first.again} /></Page>;
  if (named === undefined && first.data === null) return <Page title="Journeys" badge={<LiveChip />}><Empty workflow={null} onAdd={null} onStart={null} /></Page>;
  return workflow === null ? <Page title="Journeys"><Loading what="journeys" /></Page> : <Screen key={workflow} workflow={workflow} />;
}

function Screen({ workflow }: { workflow: string }) {
  const [, navigate] = useLocation();
  const query = new URLSearchParams(useSearch());
  const [selected, view, days] = [query.get("entity"), query.get("view") === "numbers" ? "numbers" as const : "people" as const, Number(query.get("days") ?? 30)];
  const change = (fields: Record<string, string | null>) => {
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(fields)) value === null ? next.delete(name) : next.set(name, value);
    navigate(`/journeys/${encodeURIComponent(workflow)}${next.size === 0 ? "" : `?${next}`}`, { replace: true });
  };
  const { people, error, again } = usePeople(workflow);
  const { drawn, error: drawnError, again: drawAgain } = useDrawn(workflow, people?.crowds ?? NONE);
  const { conversion, again: countAgain } = useConversion(workflow, days * DAY);
  const journey = useJourney(selected);
  const [moving, setMoving] = useState<{ entity: Entity; to: PlaceRef | null } | null>(null);
  const [listed, setListed] = useState<PlaceRef | null>(null);
  const [adding, setAdding] = useState(false);
  const [starting, setStarting] = useState<{ type: string; id: string } | "anybody" | null>(null);
  const mayMove = useMay("operator");
  const isNarrow = useMedia("(max-width: 719px)");
  const isWide = useMedia("(min-width: 1200px)");
  const feed = useRef<((hops: readonly Hop[]) => void) | null>(null);
  const [bold, showBold] = useBold();
  useFollowing(workflow, people, { people: again, numbers: countAgain, journey: (runs) => journey.legs?.some((leg) => leg.run !== null && runs.has(leg.run)) === true && setTimeout(journey.again, 600) }, (hops) => (matchMedia("(prefers-reduced-motion: reduce)").matches ? showBold(hops) : feed.current?.(hops)));
  const select = (address: string | null) => change({ entity: address });
  useKeys({ Escape: () => select(null), m: () => mayMove && journey.entity !== undefined && setMoving({ entity: journey.entity, to: null }) });
  const names = useMemo<Names>(() => ({ sectionOf: (of, node) => (of === workflow ? drawn?.map.sectionOf.get(node) : undefined), sectionName: (id) => drawn?.map.sections.find((one) => one.id === id)?.name ?? id }), [drawn, workflow]);
  const shared = useMemo<JourneysPage | null>(() => {
    if (drawn === undefined) return null;
    const crowds = people?.crowds ?? [];
    const edgeFrom = new Map([...drawn.graph.transitions.map((edge) => [edge.id, edge.source] as const), ...drawn.graph.nodes.map((node) => [`->${node.ref}`, node.ref] as const)]);
    return {
      drawn, standings: standingsOf(crowds, people?.items ?? [], drawn.kinds), counts: countsBySection(crowds, drawn.map.sectionOf, edgeFrom), shares: sharesOf(conversion, drawn.graph.transitions), conversion, view, selected, chosen: chosenOf(journey.entity, workflow, selected), select,
      way: wayOf(journey.legs ?? [], workflow), open: setListed, mayMove, move: (entity, to) => setMoving({ entity, to }),
    };
  }, [drawn, people, conversion, view, selected, journey.entity, journey.legs, mayMove]);
  const total = people?.crowds.reduce((sum, crowd) => sum + crowd.count, 0) ?? 0;
  const trouble = drawnError ?? error;
  return (
    <Page
      title="Journeys" className="jr" badge={<Which workflow={workflow} version={drawn?.version} />}
      actions={<><span className="jr-live"><LiveChip />{people !== undefined && <span className="c2 t1">{total.toLocaleString()} {total === 1 ? "traveller" : "travellers"}</span>}</span><Find onChoose={(entity) => select(addressOf(entity))} />{mayMove && <Button icon="plus" onClick={() => setAdding(true)}>Add</Button>}</>}
    >
      <div className={selected === null && !(isWide && total > 0) ? "jr-body" : "jr-body has-panel"}>
        <div className="jr-main">
          {trouble !== undefined && <div className="jr-trouble"><Trouble error={trouble} onRetry={() => { drawAgain(); again(); }} /></div>}
          {shared === null && trouble === undefined && <Loading what="the map" />}
          {shared !== null && (
            <JourneysContext.Provider value={shared}>
              <Tools view={view} days={days} onView={(next) => change({ view: next === "people" ? null : next })} onDays={(next) => change({ days: next === 30 ? null : String(next) })} />
              {people !== undefined && total === 0 && <Empty workflow={workflow} onAdd={mayMove ? () => setAdding(true) : null} onStart={mayMove ? () => setStarting("anybody") : null} />}
              {isNarrow ? <PhoneList /> : <Graph feed={feed} bold={bold} meanwhile={<Loading what="the map" />} />}
            </JourneysContext.Provider>
          )}
        </div>
        {selected === null && isWide && total > 0 && people !== undefined && drawn !== undefined && <Everybody items={people.items} total={total} drawn={drawn} onChoose={(entity) => select(addressOf(entity))} />}
        {selected !== null && <Panel entity={journey.entity} legs={journey.legs} error={journey.error} workflow={workflow} names={names} onClose={() => select(null)} onMove={(entity) => setMoving({ entity, to: null })} onStart={(entity) => setStarting(entity)} />}
      </div>
      {moving !== null && drawn !== undefined && <Move entity={moving.entity} to={moving.to} drawn={drawn} onClose={() => setMoving(null)} onMoved={() => { again(); countAgain(); journey.again(); }} />}
      {listed !== null && drawn !== undefined && <CrowdList place={listed} drawn={drawn} onClose={() => setListed(null)} onChoose={(entity) => { setListed(null); select(addressOf(entity)); }} />}
      {adding && <Add onClose={() => setAdding(false)} onMade={(address) => { setAdding(false); select(address); }} />}
      {starting !== null && <StartRun workflow={workflow} {...(starting === "anybody" ? { about: { type: "", id: "" } } : { about: starting })} onClose={() => setStarting(null)} />}
    </Page>
  );
}

/** The selected entity with its place in this workflow alone. */
function chosenOf(entity: Entity | undefined, workflow: string, selected: string | null): Entity | null {
  const place = entity?.positions.find((one) => one.workflow === workflow);
  return entity === undefined || place === undefined || addressOf(entity) !== selected ? null : { ...entity, positions: [place] };
}

/** Edges that are thicker for 600 ms, while motion is reduced. */
function useBold(): [ReadonlySet<string>, (hops: readonly Hop[]) => void] {
  const [bold, setBold] = useState<ReadonlySet<string>>(new Set());
  const timers = useRef(new Set<ReturnType<typeof setTimeout>>());
  useEffect(() => () => timers.current.forEach(clearTimeout), []);
  const show = useCallback((hops: readonly Hop[]) => {
    const edges = hops.map((hop) => hop.edge);
    setBold((before) => new Set([...before, ...edges]));
    timers.current.add(setTimeout(() => setBold((before) => new Set([...before].filter((edge) => !edges.includes(edge)))), 600));
  }, []);
  return [bold, show];
}

/** Which workflow is shown, and the way to another. */
function Which({ workflow, version }: { workflow: string; version: number | undefined }) {
  const [, navigate] = useLocation();
  const names = useAsk("workflows", async () => (await given(api.GET("/api/v1/workflows", { params: { query: { limit: 1_000 } } }))).items.map((one) => one.workflow));
  return (
    <>
      <select className="select input-sm jr-which" aria-label="Workflow" value={workflow} onChange={(event) => navigate(`/journeys/${encodeURIComponent(event.target.value)}`)}>
        {[...new Set([workflow, ...(names.data ?? [])])].sort().map((name) => <option key={name}>{name}</option>)}
      </select>
      {version !== undefined && <span className="tag">v{version}</span>}
    </>
  );
}
