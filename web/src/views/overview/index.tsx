// The overview: what runs, what waits for people, what is stuck, what fails most, and who does the work. Every number
// leads to the list behind it. It is read when the page opens and again at most every five seconds while events come.
import { Link } from "wouter";
import { FAILED, LIVE } from "@/model/run-filter";
import { failsMost, median } from "@/model/overview";
import { duration } from "@/model/time";
import { Glyph } from "@/ui/icon";
import { LiveChip } from "@/ui/live-chip";
import { Loading, Page, RunState, Time, Trouble } from "@/ui/parts";
import { Bars } from "./bars";
import { useOverview, type Overview } from "./reading";
import "./overview.css";

const HOUR = 3_600_000;
const statuses = (names: readonly string[]) => names.map((name) => `status=${name}`).join("&");

export default function OverviewPage() {
  const { data, error, again } = useOverview();
  return (
    <Page title="Overview" badge={<LiveChip />} className="overview scroll">
      {error !== undefined && <Trouble error={error} onRetry={again} />}
      {data === undefined ? error === undefined && <Loading what="the overview" /> : <Content data={data} />}
    </Page>
  );
}

function Content({ data }: { data: Overview }) {
  const orphans = data.queues.filter((queue) => queue.waiting > 0 && queue.workers.length + queue.outside.length === 0);
  const stuck = data.live.filter((row) => row.changed < data.at - HOUR);
  const failing = failsMost(data.recent);
  const failed = data.recent.filter((row) => (FAILED as readonly string[]).includes(row.status)).length;
  const people = data.gates.reduce((sum, gate) => sum + gate.count, 0);
  const late = data.gates.reduce((sum, gate) => sum + (gate.overdue ?? 0), 0);
  const typical = median(data.recent.flatMap((row) => (row.status === "completed" && row.ended !== null ? [row.ended - row.started] : [])));
  return (
    <>
      {data.nodes.length === 0 && <Alarm title="No engine runs.">Nothing moves until one is started: <code className="mono">treadle serve</code> or <code className="mono">treadle engine</code>.</Alarm>}
      {orphans.slice(0, 2).map((queue) => <Alarm key={queue.queue} title={`Nobody serves queue ${queue.queue}.`}>{queue.waiting} {queue.waiting === 1 ? "step waits" : "steps wait"}, the oldest for {duration(queue.oldest_ms)}. <Link className="link" href="/operate/queues">Queues</Link></Alarm>)}
      <section className="card overview-numbers" aria-label="Now">
        <Number name="Running" value={`${data.live.length}${data.liveMore ? "+" : ""}`} href={`/runs?${statuses(LIVE)}`} note={`${data.workflows} workflows`} />
        <Number name="Wait for people" glyph="ask" value={people} href="/gates" note={late > 0 ? `${late} late` : "none late"} isBad={late > 0} />
        <Number name="Stuck" glyph="wait" value={stuck.length} href={`/runs?stuck=${HOUR}`} note="no progress for an hour" />
        <Number name="Failed, 24 h" glyph="fail" value={failed} href={`/runs?${statuses(FAILED)}&started=${24 * HOUR}`} note={data.recent.length === 0 ? "nothing started" : `${((100 * failed) / data.recent.length).toFixed(1)} % of ${data.recent.length.toLocaleString()}${data.recentMore ? ", the newest" : ""}`} />
        <Number name="Median duration" value={typical === null ? "–" : duration(typical)} href="/runs?status=completed" note="of completed runs, 24 h" />
      </section>
      <div className="overview-grid">
        <Card title="Started" about={`per half hour, 24 h${data.recentMore ? ", the newest 1,000" : ""}`} wide><Bars rows={data.recent} now={data.at} /></Card>
        <Card title="Waits for people" more="/gates">
          <Rows empty="Nobody is asked anything." rows={data.gates.slice(0, 6).map((gate) => ({ key: `${gate.workflow}/${gate.node}`, href: `/gates?workflow=${encodeURIComponent(gate.workflow)}&node=${encodeURIComponent(gate.node)}`, left: <><b>{gate.node}</b> <span className="c2">{gate.workflow}</span></>, right: <>{gate.count}{(gate.overdue ?? 0) > 0 && <span className="overview-late"> {gate.overdue} late</span>}</> }))} />
        </Card>
        <Card title="Fails most" about="by workflow, 24 h" wide more={`/runs?${statuses(FAILED)}&started=${24 * HOUR}`}>
          <Rows empty="Nothing has failed." rows={failing.slice(0, 6).map((one) => ({ key: one.workflow, href: `/runs/${encodeURIComponent(one.last.run)}`, left: <><b>{one.workflow}</b> <span className="c2">v{one.version}</span> <RunState status={one.last.status} /></>, right: <><b>{one.failed}</b> of {one.ended} · <Time at={one.last.changed} as="relative" /></> }))} />
        </Card>
        <Card title="Stuck" about="no progress for an hour" more={`/runs?stuck=${HOUR}`}>
          <Rows empty="Everything moves." rows={stuck.slice(0, 6).map((row) => ({ key: row.run, href: `/runs/${encodeURIComponent(row.run)}`, left: <><b>{row.key ?? row.run.slice(-8)}</b> <span className="c2">{row.workflow}</span></>, right: <Time at={row.changed} as="relative" /> }))} />
        </Card>
        <Card title="Queues" more="/operate/queues">
          <Rows empty="No queue has work." rows={data.queues.slice(0, 6).map((queue) => ({ key: queue.queue, href: "/operate/queues", left: <b className="mono">{queue.queue}</b>, right: <>{queue.waiting} waiting · {queue.workers.length + queue.outside.length === 0 ? <span className="overview-late">nobody</span> : `${queue.workers.length + queue.outside.length} workers`}</> }))} />
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

function Card({ title, about, more, wide = false, children }: { title: string; about?: string; more?: string; wide?: boolean; children: React.ReactNode }) {
  return (
    <section className={wide ? "card overview-card overview-wide" : "card overview-card"} aria-label={title}>
      <header className="row"><h2 className="t3 b">{title}</h2>{about !== undefined && <span className="t1 c2">{about}</span>}{more !== undefined && <Link className="link t1 push" href={more} aria-label={`All of ${title}`}>All</Link>}</header>
      {children}
    </section>
  );
}

function Rows({ rows, empty }: { rows: { key: string; href: string; left: React.ReactNode; right: React.ReactNode }[]; empty: string }) {
  if (rows.length === 0) return <p className="overview-none">{empty}</p>;
  return <ul>{rows.map((row) => <li key={row.key}><Link className="overview-row" href={row.href}><span className="clip">{row.left}</span><span className="push nowrap">{row.right}</span></Link></li>)}</ul>;
}
