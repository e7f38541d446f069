// Rows of the timeline: of a node with all its visits, and of one visit.
import { memo } from "react";
import type { Group, Span, Visit } from "@/model/fold";
import { densityOf, type Row } from "@/model/rows";
import { branchesOf, lookOf, workedFor } from "@/model/run-look";
import { visitLook, WORST } from "@/model/states";
import { isAtWork } from "@/model/summary";
import { duration } from "@/model/time";
import type { TimeScale } from "@/model/timescale";
import { Glyph, Icon } from "@/ui/icon";
import type { Selection } from "../context";
import { useTime } from "../use-scale";

const MANY = 12;

type NodeRowGiven = Extract<Row, { kind: "node" }>;

type Select = (next: Partial<Selection>) => void;

const isSame = (one: { row: NodeRowGiven; selected: boolean }, other: { row: NodeRowGiven; selected: boolean }): boolean =>
  one.selected === other.selected && one.row.ref === other.row.ref && one.row.open === other.row.open && one.row.visits.length === other.row.visits.length && one.row.groups.length === other.row.groups.length
  && one.row.visits.every((visit, index) => visit === other.row.visits[index]) && one.row.groups.every((group, index) => group === other.row.groups[index]);

export const NodeRow = memo(function NodeRow({ row, selected, onFlip, select }: { row: NodeRowGiven; selected: boolean; onFlip: (ref: string) => void; select: Select }) {
  const only = row.visits.length === 1 ? (row.visits[0]?.id ?? null) : null;
  const onSelect = () => select({ node: only === null ? row.ref : null, visit: only, group: null });
  const { scale, now } = useTime();
  const { visits, groups } = row;
  const looks = visits.map((visit) => (isAtWork(visit) ? lookOf(visit) : visitLook("completed")));
  const open = groups.some((group) => group.sites.some((site) => site.target === row.ref && site.status === "open"));
  const worst = WORST.find((tone) => looks.some((look) => look.tone === tone)) ?? (open ? "wait" : groups.some((group) => group.sites.some((site) => site.target === row.ref && site.status === "failed")) ? "fail" : "idle");
  const tone = looks.some((look) => look.tone === "active") ? "active" : worst;
  return (
    <div className={`run-tl-row ${selected ? "is-selected" : ""}`}>
      <div className="run-tl-label" data-tone={tone}>
        {visits.length > 1 ? (
          <button type="button" className="run-tw" aria-expanded={row.open} aria-label={`${row.open ? "Close" : "Open"} ${row.ref}`} onClick={() => onFlip(row.ref)}><Icon name={row.open ? "down" : "right"} size={14} /></button>
        ) : <span className="run-tw" />}
        <button type="button" className="run-tl-name" onClick={onSelect} aria-pressed={selected}>
          <span className="tone"><Glyph name={tone} small /></span>
          <span className="clip">{row.ref}</span>
          {visits.length > 1 && <span className="run-times">×{visits.length.toLocaleString()}</span>}
        </button>
        <span className="push c2 t1">{sideOf(row, now)}</span>
      </div>
      <div className="run-tl-chart" onClick={onSelect}>
        {groups.map((group) => <Meeting key={group.id} group={group} target={row.ref} scale={scale} now={now} />)}
        {visits.length > MANY ? <Density visits={visits} scale={scale} now={now} /> : visits.map((visit) => <Bars key={visit.id} visit={visit} scale={scale} now={now} />)}
      </div>
    </div>
  );
}, isSame);

function sideOf({ visits, groups }: NodeRowGiven, now: number): string {
  const gates = visits.filter((visit) => visit.gate === "open").length;
  if (gates > 0) return `${gates} open`;
  if (visits.length === 0) return groups.length > 1 ? `${groups.length} groups` : "";
  const over = visits.filter((visit) => visit.ended !== null || visit.held).length;
  if (visits.length > MANY) return `${Math.floor((100 * over) / visits.length)} %`;
  return visits.length === 1 ? workedFor(visits[0] as Visit, now) : "";
}

/** A join waits from the opening of its group until it is decided. */
function Meeting({ group, target, scale, now }: { group: Group; target: string; scale: TimeScale; now: number }) {
  const site = group.sites.find((one) => one.target === target);
  if (site === undefined) return null;
  const [from, to] = [scale.x(group.openedAt), scale.x(site.decided?.at ?? now)];
  const tone = site.status === "fired" ? "done" : site.status === "open" ? "wait" : "fail";
  return (
    <>
      <i className={`run-bar wait ${site.status === "open" ? "open" : ""}`} style={{ left: from, width: Math.max(2, to - from) }} title={`waits for branches, ${duration((site.decided?.at ?? now) - group.openedAt)}`} />
      {site.decided !== null && <span className="run-mark" data-tone={tone} style={{ left: to }}><Glyph name={tone} small /></span>}
    </>
  );
}

export const VisitRow = memo(function VisitRow({ visit, sub, selected, select }: { visit: Visit; sub?: boolean; selected: boolean; select: Select }) {
  const onSelect = () => select({ node: null, visit: visit.id, group: null });
  const { scale, now } = useTime();
  const look = lookOf(visit);
  const name = branchesOf(visit) || `visit ${visit.id}`;
  return (
    <div className={`run-tl-row ${selected ? "is-selected" : ""}`}>
      <div className={`run-tl-label ${sub ? "sub" : ""}`} data-tone={look.tone}>
        <span className="run-tw" />
        <button type="button" className="run-tl-name" onClick={onSelect} aria-pressed={selected} aria-label={`${visit.path}, ${look.word}`}>
          <span className="tone"><Glyph name={look.glyph} small /></span>
          <span className="clip">{sub ? name : visit.node}</span>
        </button>
        <span className="push c2 t1">{visit.attempts > 1 ? `${visit.attempts} tries` : ""}</span>
      </div>
      <div className="run-tl-chart" onClick={onSelect}><Bars visit={visit} scale={scale} now={now} /></div>
    </div>
  );
});

function classOf(span: Span, index: number, visit: Visit): string {
  const last = index === visit.spans.length - 1;
  if (span.kind === "queue") return "queue";
  if (span.kind === "held") return "held";
  if (span.kind === "wait") return span.reason === "human" ? "ask" : span.reason === "timer" && visit.spans[index - 1]?.outcome === "fail" ? "backoff" : "wait";
  if (span.to === null) return "active open";
  return span.outcome === "fail" || (last && visit.status === "failed") ? "fail" : span.outcome === "stop" ? "stop" : "done";
}

const KINDS = { queue: "in the queue", wait: "waits", run: "at work", held: "stands at a join" } as const;

export function Bars({ visit, scale, now }: { visit: Visit; scale: TimeScale; now: number }) {
  return (
    <>
      {visit.spans.map((span, index) => {
        const [from, to] = [scale.x(span.from), scale.x(span.to ?? now)];
        const text = `${KINDS[span.kind]} ${duration((span.to ?? now) - span.from)}${span.attempt > 1 ? `, try ${span.attempt}` : ""}${span.error === undefined ? "" : `: ${span.error}`}`;
        return <i key={index} className={`run-bar ${classOf(span, index, visit)}`} style={{ left: from, width: Math.max(span.kind === "run" ? 2 : 0.5, to - from) }} title={text} />;
      })}
      {visit.until !== null && visit.until > now && <i className="run-bar future" style={{ left: scale.x(now), width: Math.max(2, Math.min(scale.x(visit.until), scale.width) - scale.x(now)) }} />}
    </>
  );
}

function Density({ visits, scale, now }: { visits: readonly Visit[]; scale: TimeScale; now: number }) {
  const buckets = Math.max(20, Math.floor(scale.width / 4));
  const { counts, fails } = densityOf(visits, buckets, scale.x, scale.width, now);
  const most = Math.max(1, ...counts);
  const step = scale.width / buckets;
  const path = counts.reduce((made, count, index) => (count === counts[index - 1] ? made : `${made}H${Math.round(index * step)}V${Math.round(18 - (16 * count) / most)}`), "M0 18");
  return (
    <svg className="run-density" width={scale.width} height="18" aria-hidden="true">
      <path className="area" d={`${path}H${scale.width}V18Z`} />
      {fails.map((bucket) => <path key={bucket} className="fails" d={`M${Math.round((bucket + 0.5) * step)} 0V18`} />)}
    </svg>
  );
}
