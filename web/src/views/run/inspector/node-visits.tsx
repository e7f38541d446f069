// All visits of a node, and its fan-outs branch by branch: fifty at a time, failed ones first.
import { useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { api, given } from "@/api/client";
import type { components } from "@/api/schema";
import type { Visit } from "@/model/fold";
import { worstFirst } from "@/model/rows";
import { branchesOf, lookOf, waitWords, workedFor } from "@/model/run-look";
import { useAsk } from "@/ui/ask";
import { Button, Loading, State, Trouble } from "@/ui/parts";
import { Glyph } from "@/ui/icon";
import { useRows } from "@/ui/rows";
import { groupOffers, useActDialog } from "../acts/use-acts";
import { useRunPage, useSeen } from "../context";
import { short } from "../short";
import { Differs } from "./differs";
import { Frame } from "./inspector";

type BranchRow = components["schemas"]["BranchRow"];
const PAGE = 50;

export function NodeVisits({ node }: { node: string }) {
  const { store, selection, mayAct } = useRunPage();
  const { state, graph, cursor } = useSeen();
  const [dialog, open] = useActDialog();
  const visits = (state.nodes.get(node) ?? []).map((id) => state.visits.get(id) as Visit);
  const drawn = graph?.nodes.find((one) => one.ref === node);
  const groups = [...state.groups.values()].filter((group) => group.sites.some((site) => site.target === node) || visits.some((visit) => visit.frames.at(-1)?.[0] === group.id));
  const group = selection.group ?? groups.at(-1)?.id ?? null;
  const offers = group === null || !mayAct || cursor !== null ? [] : groupOffers(store.run, state, group);
  const [list, setList] = useState<"branches" | "visits">("branches");
  const byBranch = group !== null && list === "branches" && cursor === null;
  return (
    <Frame
      title={node} side={<span className="c2 t2">{visits.length === 0 ? "not visited" : visits.length === 1 ? "1 visit" : `${visits.length.toLocaleString()} visits`}</span>}
      head={(
        <div className="run-node-head">
          {drawn !== undefined && drawn.words !== "" && <p className="c2 t2 clip">{drawn.words}</p>}
          {drawn?.joins.map((words) => <p key={words} className="c2 t2">joins {words}</p>)}
          {group !== null && (
            <div className="seg" role="group" aria-label="List">
              <button type="button" aria-pressed={list === "branches"} onClick={() => setList("branches")}>Branches</button>
              <button type="button" aria-pressed={list === "visits"} onClick={() => setList("visits")}>Visits</button>
            </div>
          )}
          {groups.length > 1 && <GroupPick groups={groups.map((one) => one.id)} chosen={group} />}
        </div>
      )}
      foot={(
        <>
          {offers.length > 0 && <footer className="panel-foot row">{offers.map((offer) => <Button key={offer.name} kind={offer.danger ? "danger" : "plain"} onClick={() => open(offer.act)}>{offer.name}</Button>)}</footer>}
          {dialog}
        </>
      )}
    >
      <Differs visits={visits} group={group === null ? undefined : state.groups.get(group)} />
      {byBranch && group !== null ? <Branches key={`${group} ${selection.branches ?? ""}`} group={group} only={selection.branches} turn={Math.floor(state.seq / 40)} /> : <VisitList visits={visits} />}
    </Frame>
  );
}

function GroupPick({ groups, chosen }: { groups: readonly number[]; chosen: number | null }) {
  const { select } = useRunPage();
  return (
    <select className="select input-sm" aria-label="Fan-out" value={chosen ?? ""} onChange={(event) => select({ group: Number(event.target.value) })}>
      {groups.map((id, index) => <option key={id} value={id}>fan-out {index + 1} of {groups.length}</option>)}
    </select>
  );
}

export function VisitList({ visits }: { visits: readonly Visit[] }) {
  const { select } = useRunPage();
  const body = useRef<HTMLDivElement>(null);
  const sorted = useMemo(() => worstFirst(visits), [visits.length, visits.at(-1)]);
  const { total, places } = useRows(sorted.length, 44, body);
  const now = Date.now();
  return (
    <div className="run-list scroll" ref={body}>
      <div style={{ height: total, position: "relative" }}>
        {places.map(({ index, slot, top }) => {
          const visit = sorted[index] as Visit;
          const look = lookOf(visit);
          return (
            <button key={slot} type="button" className="run-list-row" style={{ transform: `translateY(${top}px)` }} onClick={() => select({ node: null, visit: visit.id, group: null })}>
              <span className="tone" data-tone={look.tone}><Glyph name={look.glyph} small /></span>
              <span className="run-two"><span className="clip mono">{visit.node}{branchesOf(visit)}</span><span className="c2 t1 clip">{visit.error?.message ?? (visit.status === "waiting" ? waitWords(visit, now) : look.word)}</span></span>
              <span className="push c2 t1">{workedFor(visit, now)}</span>
            </button>
          );
        })}
      </div>
      {sorted.length === 0 && <div className="empty">No token has come here.</div>}
    </div>
  );
}

const TONE = { arrived: "done", ended: "stop", failed: "fail", live: "active", pending: "idle" } as const;
const WORD = { arrived: "arrived", ended: "ended", failed: "failed", live: "under way", pending: "has not begun" } as const;

/** Pages of branches; what is shown stays while it is asked again. */
function Branches({ group, only, turn }: { group: number; only: string | null; turn: number }) {
  const { store, select } = useRunPage();
  const [pages, setPages] = useState(1);
  const asked = useAsk(`${store.run} ${group} ${pages} ${only ?? ""}`, () => readBranches(store.run, group, pages, only));
  const kept = useRef<{ branches: BranchRow[]; next: string | null; total: number } | undefined>(undefined);
  kept.current = asked.data ?? kept.current;
  const lastTurn = useRef(turn);
  if (lastTurn.current !== turn && !asked.busy) {
    lastTurn.current = turn;
    queueMicrotask(asked.again);
  }
  if (asked.error !== undefined && kept.current === undefined) return <div className="panel-body"><Trouble error={asked.error} onRetry={asked.again} /></div>;
  if (kept.current === undefined) return <Loading what="branches" />;
  const { branches, next, total } = kept.current;
  return (
    <div className="run-list scroll">
      <div className="row run-only" role="group" aria-label="Which branches">
        {([[null, "All"], ["arrived", "Arrived"], ["failed", "Failed"], ["missing", "Missing"]] as const).map(([which, name]) => <button key={name} type="button" className="chip" aria-pressed={only === which} onClick={() => select({ group, branches: which })}><span className="chip-key">{name}</span></button>)}
      </div>
      {branches.length === 0 && <div className="empty">No branch {only === "missing" ? "is missing" : only === "failed" ? "has failed" : "has arrived"}.</div>}
      {branches.map((branch) => (
        <button key={branch.branch} type="button" className="run-list-row is-flow" disabled={branch.visits.length === 0} onClick={() => select({ node: null, visit: branch.visits.at(-1) ?? null, group: null })}>
          <State look={{ tone: TONE[branch.status], glyph: TONE[branch.status], word: "" }} />
          <span className="run-two"><span className="clip mono">[{branch.branch}] {branch.item === null ? "" : short(branch.item)}</span><span className="c2 t1 clip">{branch.error?.message ?? `${WORD[branch.status]}${branch.node === null ? "" : ` at ${branch.node}`}`}</span></span>
        </button>
      ))}
      {next !== null && <div className="row run-more"><Button size="sm" onClick={() => setPages((count) => count + 1)}>50 more</Button><span className="c2 t1">{branches.length.toLocaleString()} of {total.toLocaleString()}, failed first</span></div>}
    </div>
  );
}

const MISSING = new Set(["live", "pending"]);
const READ_MAX = 40; // pages that are read to find branches of one kind

async function readBranches(run: string, group: number, pages: number, only: string | null): Promise<{ branches: BranchRow[]; next: string | null; total: number }> {
  const branches: BranchRow[] = [];
  let [cursor, total]: [string | null, number] = [null, 0];
  for (let page = 0; only === null ? page < pages : branches.length < pages * PAGE && page < READ_MAX; page++) {
    const query: { limit: number; cursor?: string } = cursor === null ? { limit: PAGE } : { limit: PAGE, cursor };
    const found = await given(api.GET("/api/v1/runs/{run}/groups/{group}", { params: { path: { run, group: String(group) }, query } }));
    branches.push(...found.branches.filter(({ status }) => only === null || (only === "missing" ? MISSING.has(status) : status === only)));
    [cursor, total] = [found.next, found.total];
    if (cursor === null) break;
  }
  return { branches, next: cursor, total };
}

export const ChildLink = ({ run }: { run: string }) => <Link className="link" href={`/runs/${encodeURIComponent(run)}`}>{run}</Link>;
