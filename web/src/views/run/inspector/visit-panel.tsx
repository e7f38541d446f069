// One visit: its state, where its time went, its data, attempts, log and why it was made; and what can be done with it.
import { useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { api, given } from "@/api/client";
import { useMay } from "@/api/session";
import type { components } from "@/api/schema";
import type { Visit } from "@/model/fold";
import { worstFirst } from "@/model/rows";
import { branchesOf, lookOf, spentOf } from "@/model/run-look";
import { clockTime, duration, instant, soon, timeOfDay } from "@/model/time";
import { LARGE } from "@/model/large";
import { useAsk } from "@/ui/ask";
import { Badge, Button, Copy, useNow } from "@/ui/parts";
import { Icon } from "@/ui/icon";
import { fetched } from "@/ui/fetched";
import { Later } from "@/ui/later";
import { forkOffer, useActDialog, visitOffers, type Offer, type Opened } from "../acts/use-acts";
import { useRunPage, useSeen } from "../context";
import { Frame } from "./inspector";
import { Tab, TABS, type TabName } from "./tabs";

export type VisitDetail = components["schemas"]["VisitDetail"];

/** The visit as the service tells it: asked again when the visit has changed, once a second at most. */
function useDetail(run: string, visit: Visit): VisitDetail | undefined {
  const asked = useAsk(`${run} ${visit.id}`, () => given(api.GET("/api/v1/runs/{run}/visits/{visit}", { params: { path: { run, visit: String(visit.id) }, query: { value_max: LARGE } } })));
  const before = useRef(visit);
  useEffect(() => {
    if (before.current === visit) return undefined;
    const timer = setTimeout(() => {
      before.current = visit;
      asked.again();
    }, before.current.id === visit.id && before.current.status === visit.status ? 1_000 : 50);
    return () => clearTimeout(timer);
  }, [visit]);
  return asked.data as VisitDetail | undefined;
}

export function VisitPanel({ visit }: { visit: Visit }) {
  const { store, mayAct, select } = useRunPage();
  const { state, cursor } = useSeen();
  const mayAnswer = useMay("approver");
  const detail = useDetail(store.run, visit);
  const [dialog, open] = useActDialog();
  const failed = visit.status === "failed" || visit.status === "timed_out" || (visit.error !== null && visit.status === "waiting");
  const [tab, setTab] = useState<TabName>(failed ? "Failure" : "Out");
  const tabs = TABS.filter((name) => name !== "Failure" || failed);
  const shown = tabs.includes(tab) ? tab : "Out";
  useEffect(() => setTab(failed ? "Failure" : visit.status === "completed" || visit.text !== null ? "Out" : "In"), [visit.id]);
  const beside = useMemo(() => worstFirst((state.nodes.get(visit.node) ?? []).map((id) => state.visits.get(id) as Visit)), [state.nodes.get(visit.node)?.length, visit.node]);
  const place = beside.findIndex((one) => one.id === visit.id);
  const go = (by: number) => select({ node: null, visit: beside[place + by]?.id ?? visit.id, group: null });
  const offers = !mayAct ? [] : cursor === null ? visitOffers(store.run, state, visit) : visit.compensation ? [] : [forkOffer(visit)];
  return (
    <Frame
      title={visit.node}
      side={<><span className="mono c2 t2 nowrap">{branchesOf(visit)}</span><Copy text={visit.path} shown="" label={`path ${visit.path}`} />{beside.length > 1 && (
        <span className="row row-4 c2 t1 nowrap run-beside">
          <Button kind="ghost" size="sm" icon="up" aria-label="Previous visit of this node" disabled={place <= 0} onClick={() => go(-1)} />
          {place + 1} of {beside.length.toLocaleString()}
          <Button kind="ghost" size="sm" icon="down" aria-label="Next visit of this node" disabled={place >= beside.length - 1} onClick={() => go(1)} />
        </span>
      )}</>}
      head={<Head visit={visit} />}
      foot={(
        <footer className="panel-foot run-panel-foot">
          {cursor !== null && <p className="c2 t1">You see the past; to act, go back to now.</p>}
          {(offers.length > 0 || visit.gate === "open") && (
            <div className="row">
              {visit.gate === "open" && mayAnswer && <Link className="btn btn-primary" href={`/gates/${encodeURIComponent(store.run)}/${visit.id}`}>Answer</Link>}
              <Offers key={visit.id} offers={offers} most={visit.gate === "open" && mayAnswer ? 1 : 2} open={open} />
            </div>
          )}
          {dialog}
        </footer>
      )}
    >
      <div className="tabs tabs-scroll run-insp-tabs" role="tablist" aria-label="Visit">
        {tabs.map((name) => (
          <button key={name} type="button" role="tab" className="tab" aria-selected={shown === name} onClick={() => setTab(name)}>
            {name}{name === "Attempts" && visit.attempts > 1 && <span className="count">{visit.attempts}</span>}
          </button>
        ))}
      </div>
      <div className="panel-body run-panel-body scroll" role="tabpanel" aria-label={shown}><Tab name={shown} visit={visit} detail={detail} /></div>
    </Frame>
  );
}

const OfferMenu = fetched(() => import("../acts/offer-menu"));

/** The first acts as buttons, what ends the visit at the right, the others in a menu. */
function Offers({ offers, most, open }: { offers: readonly Offer[]; most: number; open: (act: Opened) => void }) {
  const plain = offers.filter((offer) => !offer.danger);
  const isFork = (offer: Offer) => "change" in offer.act && offer.act.change === "fork" && plain.length > 1; // it always fits: the others come first
  const shown = plain.filter((offer) => !isFork(offer)).slice(0, most);
  const rest = plain.filter((offer) => !shown.includes(offer));
  return (
    <>
      {shown.map((offer) => <Button key={offer.name} icon={offer.icon} onClick={() => open(offer.act)}>{offer.name}</Button>)}
      {rest.length > 0 && <Later className="btn btn-icon" label="More acts" opens="menu" face={<Icon name="more" />} part={OfferMenu}>{(button) => <OfferMenu offers={rest} open={open} meanwhile={button} />}</Later>}
      {offers.filter((offer) => offer.danger).map((offer) => <Button key={offer.name} kind="danger" className="push" onClick={() => open(offer.act)}>{offer.name}</Button>)}
    </>
  );
}

function Head({ visit }: { visit: Visit }) {
  const { cursor, state } = useSeen();
  const tick = useNow(1_000);
  const now = cursor !== null ? state.at : visit.ended ?? tick;
  const spent = spentOf(visit, now);
  const wait = spent.wait + spent.held;
  const when = visit.ended !== null ? `${clockTime(visit.created)} to ${timeOfDay(visit.ended)}` : `since ${soon(visit.since)}`;
  return (
    <>
      <div className="row run-insp-state"><Badge look={lookOf(visit)} /><span className="t2 c2 clip" title={`${instant(visit.created)}${visit.ended === null ? "" : ` to ${instant(visit.ended)}`}`}>{visit.attempts > 1 ? `try ${visit.attempts} · ` : ""}{when}</span></div>
      <div className="run-split" role="img" aria-label={`Queue ${duration(spent.queue)}, wait ${duration(wait)}, run ${duration(spent.run)}`}>
        {spent.queue > 0 && <i className="q" style={{ flexGrow: spent.queue }} />}
        {wait > 0 && <i className="w" style={{ flexGrow: wait }} />}
        {spent.run > 0 && <i className="r" data-status={visit.status} style={{ flexGrow: spent.run }} />}
      </div>
      <dl className="run-split-key">
        <div><dt><i className="run-sw q" />queue</dt><dd>{duration(spent.queue)}</dd></div>
        <div><dt><i className="run-sw w" />wait</dt><dd>{duration(wait)}</dd></div>
        <div><dt><i className="run-sw r" />run</dt><dd>{duration(spent.run)}</dd></div>
        <div className="run-sum"><dt>total</dt><dd>{duration(spent.total)}</dd></div>
      </dl>
    </>
  );
}
