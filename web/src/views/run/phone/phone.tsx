// The run on a phone: one view at a time by tabs; the graph as a list of ranks; a visit opens as a sheet from below.
import "../phone.css";
import { Dialog } from "@base-ui/react/dialog";
import { useEffect, useMemo } from "react";
import { Link } from "wouter";
import { ranksOf } from "@/model/layout";
import { runLook } from "@/model/states";
import { instant, timeOfDay } from "@/model/time";
import { Badge, Button } from "@/ui/parts";
import { Icon } from "@/ui/icon";
import { useActDialog, useRunOffers } from "../acts/use-acts";
import { useRunPage, useSeen } from "../context";
import { FailureCard } from "../failure";
import { useSummaries, type Summaries } from "../graph/summaries";
import { sizesOf } from "../graph/use-layout";
import { LiveChip, titleOf } from "../header";
import { History } from "../history/history";
import { Inspector } from "../inspector/inspector";
import { Slider } from "../slider";
import { Timeline } from "../timeline/timeline";
import { Waiting } from "../waiting";
import { PhoneStep } from "./step";

const TABS: [name: string, icon: string, label: string][] = [["graph", "editor", "Graph"], ["timeline", "runs", "Time"], ["history", "clock", "History"], ["acts", "play", "Actions"]];

export function PhoneRun({ view, onView }: { view: string; onView: (view: string) => void }) {
  const { store, selection, select } = useRunPage();
  const seen = useSeen();
  const summaries = useSummaries();
  const named = new URLSearchParams(location.search).get("view");
  const shown = TABS.some(([name]) => name === view) && named !== null ? view : "graph";
  const isOpen = selection.node !== null || selection.visit !== null;
  const { detail, state } = seen;
  useEffect(() => {
    document.title = `${titleOf(detail, "Run", seen.canvas)} · Treadle`;
  }, [detail]);
  return (
    <div className="page run-phone">
      <header className="run-p-top">
        <Link className="run-p-icon" href="/runs" aria-label="Back to the runs"><Icon name="left" size={20} /></Link>
        <div className="grow">
          <h1 className="clip">{titleOf(detail, store.run, seen.canvas)}</h1>
          <p className="clip">{detail === null ? "" : `${detail.workflow} v${detail.version} · `}<span className="mono">{store.run.slice(-8)}</span></p>
        </div>
        {state.seq > 0 && <Badge look={runLook(seen.cursor === null ? (detail?.status ?? state.status) : state.status)} />}
      </header>
      <Waiting />
      <main className="run-p-main scroll">
        {shown === "graph" && <><FailureCard /><Ranks summaries={summaries} /></>}
        {shown === "timeline" && <div className="run-p-tl"><Timeline filter="" /></div>}
        {shown === "history" && <History filter="" />}
        {shown === "acts" && <Actions />}
      </main>
      <Slider compact />
      <section className="run-p-read" aria-label="Moment"><b>{timeOfDay(seen.cursor === null && state.ended === null ? Date.now() : state.at)}</b><span className="c2">seq {(seen.cursor ?? seen.folding.length).toLocaleString()} of {seen.head.toLocaleString()}</span><LiveChip /></section>
      <nav aria-label="Views of the run"><div className="run-p-tabs" role="tablist" aria-label="Views">
        {TABS.map(([name, icon, label]) => (
          <button key={name} type="button" role="tab" aria-selected={shown === name} onClick={() => onView(name)}><Icon name={icon} size={20} />{label}</button>
        ))}
      </div></nav>
      <Dialog.Root open={isOpen} onOpenChange={(open) => open || select({ node: null, visit: null, group: null })}>
        <Dialog.Portal>
          <Dialog.Backdrop className="run-scrim" />
          <Dialog.Popup className="run-sheet" aria-label="Token"><span className="run-p-hold" aria-hidden="true" />{isOpen && <Inspector />}</Dialog.Popup>
        </Dialog.Portal>
      </Dialog.Root>
    </div>
  );
}

/** The nodes by rank; what a failure or a way not taken leads to stands indented. */
function Ranks({ summaries }: { summaries: Summaries }) {
  const { graph, state } = useSeen();
  const { select, store } = useRunPage();
  const ranks = useMemo(() => {
    if (graph === null) return [];
    const found = ranksOf(sizesOf(graph), graph.transitions);
    const rows = new Map<number, string[]>();
    for (const node of graph.nodes) rows.set(found.get(node.ref) ?? 0, [...(rows.get(found.get(node.ref) ?? 0) ?? []), node.ref]);
    return [...rows].sort(([a], [b]) => a - b).map(([, refs]) => refs);
  }, [graph]);
  if (graph === null) return null;
  const isAside = (ref: string, refs: readonly string[]): boolean => {
    const into = graph.transitions.filter((edge) => edge.target === ref);
    if (into.length > 0 && into.every((edge) => edge.on === "failure")) return true;
    return !state.nodes.has(ref) && refs.some((other) => other !== ref && state.nodes.has(other));
  };
  const last = ranks.length - 1;
  return (
    <ol className="run-p-list">
      {ranks.map((refs, rank) => [...refs].sort((a, b) => Number(isAside(b, refs)) - Number(isAside(a, refs))).map((ref, index) => {
        const into = graph.transitions.filter((edge) => edge.target === ref);
        const aside = isAside(ref, refs);
        return <PhoneStep key={ref} node={ref} summaries={summaries} aside={aside} byFailure={into.length > 0 && into.every((edge) => edge.on === "failure")} last={rank === last && index === refs.length - 1}
          onOpen={() => { const visits = store.get().state.nodes.get(ref) ?? []; select(visits.length === 1 ? { node: null, visit: visits[0] as number } : { node: ref, visit: null }); }} />;
      }))}
    </ol>
  );
}

function Actions() {
  const { mayAct } = useRunPage();
  const { cursor, detail } = useSeen();
  const offers = useRunOffers();
  const [dialog, open] = useActDialog();
  return (
    <div className="run-p-acts">
      {offers.map((offer) => <Button key={offer.name} size="lg" icon={offer.icon} kind={offer.danger ? "danger" : "plain"} onClick={() => open(offer.act)}>{offer.name}</Button>)}
      {offers.length === 0 && <p className="c2">{cursor !== null ? "You see the past; to act, go back to now." : mayAct ? "Nothing to do: the run is over." : "You may look, not act."}</p>}
      {detail !== null && <dl className="kv"><dt>Workflow</dt><dd>{detail.workflow} v{detail.version}</dd><dt>Started</dt><dd>{instant(detail.started)}</dd>{detail.key !== null && <><dt>Key</dt><dd className="mono">{detail.key}</dd></>}{detail.tags.length > 0 && <><dt>Tags</dt><dd>{detail.tags.join(", ")}</dd></>}</dl>}
      {dialog}
    </div>
  );
}
