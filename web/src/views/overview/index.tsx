// The overview: what runs, what waits for people, what is stuck, what fails most, and who does the work. Every number
// leads to the list behind it. It is read when the page opens and again at most every five seconds while events come.
import { useState } from "react";
import { Link } from "wouter";
import { FAILED, LIVE } from "@/model/run-filter";
import { failsMost, median, type Failing } from "@/model/overview";
import { duration } from "@/model/time";
import { Glyph } from "@/ui/icon";
import { LiveChip } from "@/ui/live-chip";
import { Loading, Page, Time, Trouble, Words } from "@/ui/parts";
import { useAsk } from "@/ui/ask";
import { api, given } from "@/api/client";
import { nameOf } from "@/model/run-title";
import { FirstMinute } from "../runs/first";
import { Bars, Durations } from "./bars";
import { useOverview, type Overview } from "./reading";
import "./overview.css";

const HOUR = 3_600_000;
const SPANS: readonly (readonly [ms: number, name: string, short: string])[] = [[HOUR, "Last hour", "1 h"], [6 * HOUR, "Last 6 hours", "6 h"], [24 * HOUR, "Last 24 hours", "24 h"]];
const statuses = (names: readonly string[]) => names.map((name) => `status=${name}`).join("&");

export default function OverviewPage() {
  const { data, error, again } = useOverview();
  const [chosen, setChosen] = useState<number | null>(null);
  const isEmpty = data !== undefined && data.workflows === 0 && data.live.length === 0 && data.recent.length === 0;
  const oldest = data?.recent.at(-1)?.started;
  const span = chosen ?? SPANS.find(([ms]) => data !== undefined && oldest !== undefined && !data.recentMore && oldest >= data.at - ms)?.[0] ?? 24 * HOUR; // the shortest that shows all
  return (
    <Page
      title="Overview" badge={<LiveChip />} className="overview scroll"
      actions={data !== undefined && !isEmpty && <select className="select overview-span" aria-label="Time" value={span} onChange={(event) => setChosen(+event.target.value)}>{SPANS.map(([ms, name]) => <option key={ms} value={ms}>{name}</option>)}</select>}
    >
      {error !== undefined && <Trouble error={error} onRetry={again} />}
      {data === undefined ? error === undefined && <Loading what="the overview" /> : isEmpty ? <FirstMinute title="Welcome to Treadle" /> : <Content data={data} span={span} />}
    </Page>
  );
}

function Content({ data, span }: { data: Overview; span: number }) {
  const within = SPANS.find(([ms]) => ms === span)?.[2] ?? "";
  const recent = data.recent.filter((row) => row.started >= data.at - span);
  const orphans = data.queues.filter((queue) => queue.waiting > 0 && queue.workers.length + queue.outside.length === 0);
  const stuck = data.live.filter((row) => row.changed < data.at - HOUR);
  const failing = failsMost(recent);
  const failed = recent.filter((row) => (FAILED as readonly string[]).includes(row.status)).length;
  const people = data.gates.reduce((sum, gate) => sum + gate.count, 0);
  const late = data.gates.reduce((sum, gate) => sum + (gate.overdue ?? 0), 0);
  const gates = [...data.gates].sort((a, b) => (b.overdue ?? 0) - (a.overdue ?? 0) || b.count - a.count); // late ones first, then the most
  const typical = median(recent.flatMap((row) => (row.status === "completed" && row.ended !== null ? [row.ended - row.started] : [])));
  return (
    <>
      {data.nodes.length === 0 && <Alarm title="No engine runs.">Nothing moves until one is started: <code className="mono">treadle serve</code> or <code className="mono">treadle engine</code>.</Alarm>}
      {orphans.slice(0, 2).map((queue) => <Alarm key={queue.queue} title={`Nobody serves queue ${queue.queue}.`}>{queue.waiting} {queue.waiting === 1 ? "step waits" : "steps wait"}, the oldest for {duration(queue.oldest_ms)}. <Link className="link" href="/operate/queues">Queues</Link></Alarm>)}
      <section className="card overview-numbers" aria-label="Now">
        <Number name="Running" value={`${data.live.length}${data.liveMore ? "+" : ""}`} href={`/runs?${statuses(LIVE)}`} note={`${data.workflows} ${data.workflows === 1 ? "workflow" : "workflows"}`} />
        <Number name="Wait for people" glyph="ask" value={people} href="/gates" note={late > 0 ? `${late} late` : "none late"} isBad={late > 0} />
        <Number name="Stuck" glyph="wait" value={stuck.length} href={`/runs?stuck=${HOUR}`} note="no progress for an hour" />
        <Number name={`Failed, ${within}`} glyph="fail" value={failed} href={`/runs?${statuses(FAILED)}&started=${span}`} note={recent.length === 0 ? "nothing started" : `${((100 * failed) / recent.length).toFixed(1)} % of ${recent.length.toLocaleString()}${data.recentMore ? ", the newest" : ""}`} />
        <Number name="Median duration" value={typical === null ? "–" : duration(typical)} href="/runs?status=completed" note={`of completed runs, ${within}`} />
      </section>
      <div className="overview-grid">
        <Card title="Throughput" about={`runs started per ${duration(span / 48)}${data.recentMore ? ", the newest 1,000" : ""}`} half><Bars rows={recent} now={data.at} span={span} /></Card>
        <Card title="Duration" about="of completed runs: half, and 95 of 100" half><Durations rows={data.recent} now={data.at} span={span} /></Card>
        <Card title="Waits for people" more="/gates" half>
          <Rows empty="Nobody is asked anything." rows={gates.slice(0, 6).map((gate) => ({ key: `${gate.workflow}/${gate.node}`, href: `/gates?workflow=${encodeURIComponent(gate.workflow)}&node=${encodeURIComponent(gate.node)}`, left: <><b>{gate.node}</b> <span className="c2">{gate.workflow}</span></>, right: <>{gate.count}{(gate.overdue ?? 0) > 0 && <span className="overview-late"> {gate.overdue} late</span>}</> }))} />
        </Card>
        <Card title="Fails most" about={`by workflow, ${within}`} wide more={`/runs?${statuses(FAILED)}&started=${span}`}>
          <Rows empty="Nothing has failed." rows={failing.slice(0, 6).map((one) => ({ key: one.workflow, href: `/runs/${encodeURIComponent(one.last.run)}`, left: <Failed one={one} />, right: <><b>{one.failed}</b> of {one.ended} · <Time at={one.last.changed} as="relative" /></> }))} />
        </Card>
        <Card title="Stuck" about="no progress for an hour" more={`/runs?stuck=${HOUR}`}>
          <Rows empty="Everything moves." rows={stuck.slice(0, 6).map((row) => ({ key: row.run, href: `/runs/${encodeURIComponent(row.run)}`, left: <><b>{nameOf(row)}</b> <span className="c2">{row.workflow}</span></>, right: <Time at={row.changed} as="relative" /> }))} />
        </Card>
        <Card title="Queues" more="/operate/queues">
          <Rows empty="No queue has work." rows={data.queues.slice(0, 6).map((queue) => ({ key: queue.queue, href: "/operate/queues", left: <b className="mono">{queue.queue}</b>, right: <>{queue.waiting} waiting · {queue.workers.length + queue.outside.length === 0 ? <span className="overview-late">nobody</span> : workersIn(queue.workers.length + queue.outside.length)}</> }))} />
        </Card>
        <Card title="Nodes and shards" more="/operate/nodes">
          <Rows empty="No node." rows={data.nodes.slice(0, 6).map((node) => ({ key: node.owner, href: "/operate/nodes", left: <b>{node.node}</b>, right: <>{node.shards.length} {node.shards.length === 1 ? "shard" : "shards"} · {node.timers_due} timers due</> }))} />
        </Card>
        <Card title="Schedules" more="/operate/schedules">
          <Rows empty="Nothing is scheduled." rows={data.schedules.slice(0, 6).map((one) => ({ key: one.name, href: "/operate/schedules", left: <b>{one.name}</b>, right: one.paused ? "paused" : one.next === null ? "–" : <Time at={one.next} as="relative" /> }))} />
        </Card>
        <Card title="Dead letters" more="/operate/dead-letters">
          <Rows empty="Nothing was left undelivered." rows={data.letters.slice(0, 6).map((one) => ({ key: String(one.id), href: "/operate/dead-letters", left: <><b>{one.what ?? "effect"}</b> <span className="c2">{one.reason}</span></>, right: "" }))} />
        </Card>
      </div>
    </>
  );
}

const workersIn = (count: number): string => (count === 1 ? "1 worker" : `${count} workers`);

function Alarm({ title, children }: { title: string; children: React.ReactNode }) {
  return <div className="note" data-tone="fail" role="alert"><Glyph name="fail" /><div><b>{title}</b> {children}</div></div>;
}

function Number({ name, value, href, note, glyph, isBad = false }: { name: string; value: number | string; href: string; note: string; glyph?: "ask" | "wait" | "fail"; isBad?: boolean }) {
  return (
    <Link className="overview-number" href={href}>
      <span className="overview-name" data-tone={glyph}>{glyph !== undefined && <span className="tone"><Glyph name={glyph} small /></span>}{name}</span>
      <span className="t6 b">{typeof value === "number" ? value.toLocaleString() : value}</span>
      <span className={isBad ? "t1 overview-late" : "t1 c2"}>{note}</span>
    </Link>
  );
}

/** A workflow that fails, with the error of its newest failed run. */
function Failed({ one }: { one: Failing }) {
  const { data } = useAsk(`failed ${one.last.run}`, () => given(api.GET("/api/v1/runs/{run}", { params: { path: { run: one.last.run }, query: { value_max: 1_000 } } })));
  const error = data?.error as { node?: string | null; message?: string } | null | undefined;
  return <><b>{one.workflow}</b> <span className="c2">v{one.version}</span> {error != null && <span className="overview-why">{error.node != null && error.node !== "" && <><b className="mono">{error.node}</b> </>}<Words text={error.message ?? ""} /></span>}</>;
}

function Card({ title, about, more, wide = false, half = false, children }: { title: string; about?: string; more?: string; wide?: boolean; half?: boolean; children: React.ReactNode }) {
  return (
    <section className={wide ? "card overview-card overview-wide" : half ? "card overview-card overview-half" : "card overview-card"} aria-label={title}>
      <header className="row"><h2 className="t3 b">{title}</h2>{about !== undefined && <span className="t1 c2">{about}</span>}{more !== undefined && <Link className="link t1 push" href={more} aria-label={`All of ${title}`}>All</Link>}</header>
      {children}
    </section>
  );
}

function Rows({ rows, empty }: { rows: { key: string; href: string; left: React.ReactNode; right: React.ReactNode }[]; empty: string }) {
  if (rows.length === 0) return <p className="overview-none">{empty}</p>;
  return <ul>{rows.map((row) => <li key={row.key}><Link className="overview-row" href={row.href}><span className="clip">{row.left}</span><span className="push nowrap">{row.right}</span></Link></li>)}</ul>;
}
