// The run page: header, waiting line, graph, timeline or history, slider, inspector; the same as one view on a phone.
import { useEffect, useMemo, useState } from "react";
import { useParams } from "wouter";
import { useMay } from "@/api/session";
import { fetched } from "@/ui/fetched";
import { Loading, Page, Trouble } from "@/ui/parts";
import { RunContext, useSeen } from "./context";
import { FailureCard } from "./failure";
import { useSummaries } from "./graph/summaries";
import { Header, titleOf } from "./header";
import { Lower } from "./lower";
import { useNeighbours } from "./neighbours";
import { Slider } from "./slider";
import { RunStore } from "./store";
import { usePageKeys } from "./page-keys";
import { useSelection } from "./use-selection";
import { Waiting } from "./waiting";
import { useWidth } from "./use-width";
import { TimeProvider } from "./use-scale";
import "./run.css";
import "./timeline.css";

const Inspector = fetched(() => import("./inspector/inspector").then((found) => ({ default: found.Inspector })));
const Graph = fetched(() => import("./graph/graph"));
const PhoneRun = fetched(() => import("./phone/phone").then((found) => ({ default: found.PhoneRun })));

export default function Run() {
  const { run = "" } = useParams<{ run: string }>();
  const id = decodeURIComponent(run);
  return <RunOf key={id} run={id} />;
}

function RunOf({ run }: { run: string }) {
  const store = useMemo(() => new RunStore(run), [run]);
  const { selection, select, query, set } = useSelection();
  const mayAct = useMay("operator");
  useEffect(() => {
    store.start();
    return () => store.stop();
  }, [store]);
  const page = useMemo(() => ({ store, selection, select, mayAct }), [store, selection, select, mayAct]);
  return (
    <RunContext.Provider value={page}>
      <Shown view={query.get("view") ?? "timeline"} onView={(view) => set({ view })} />
    </RunContext.Provider>
  );
}

function usePhone(): boolean {
  const [narrow, setNarrow] = useState(() => matchMedia("(max-width: 719px)").matches);
  useEffect(() => {
    const list = matchMedia("(max-width: 719px)");
    const change = () => setNarrow(list.matches);
    list.addEventListener("change", change);
    return () => list.removeEventListener("change", change);
  }, []);
  return narrow;
}

function Shown({ view, onView }: { view: string; onView: (view: string) => void }) {
  const seen = useSeen();
  const phone = usePhone();
  if (seen.problem !== null && seen.graph === null) {
    return <Page title="Run"><div className="lone"><Trouble error={seen.problem} onRetry={() => location.reload()} /></div></Page>;
  }
  return <TimeProvider>{phone ? <PhoneRun view={view} onView={onView} meanwhile={<Loading what="the run" />} /> : <Desk view={view} onView={onView} />}</TimeProvider>;
}

function Desk({ view, onView }: { view: string; onView: (view: string) => void }) {
  const seen = useSeen();
  const summaries = useSummaries();
  const neighbours = useNeighbours(seen.detail?.run ?? "");
  const { isOpen } = usePageKeys(neighbours);
  const [width, grip] = useWidth();
  useEffect(() => {
    if (seen.loaded) Inspector.fetch().catch(() => undefined); // the page is drawn: what is selected next shall open at once
  }, [seen.loaded]);
  useEffect(() => {
    document.title = `${titleOf(seen.detail, "Run", seen.canvas)} · Treadle`;
  }, [seen.detail, seen.canvas]);
  return (
    <div className="run-page" style={{ gridTemplateColumns: isOpen ? `minmax(0, 1fr) ${width}px` : "minmax(0, 1fr)" }}>
      <div className="page run-work">
        <Header neighbours={neighbours} />
        <Waiting />
        {seen.problem !== null && <div className="run-problem"><Trouble error={seen.problem} /></div>}
        <main className="run-main">
          <div className="run-upper">
            <FailureCard />
            <Graph summaries={summaries} meanwhile={<div className="graph run-graph"><Loading what="the graph" /></div>} />
          </div>
          <Lower view={view} onView={onView} />
          <Slider />
        </main>
      </div>
      {isOpen && <aside className="run-side" aria-label="Inspector">{grip}<Inspector meanwhile={<Loading what="the inspector" />} /></aside>}
    </div>
  );
}
