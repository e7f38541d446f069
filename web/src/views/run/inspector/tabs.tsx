// The tabs of a visit: failure, in, out, scope, attempts, log, why.
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { apiBase } from "@/api/base";
import type { RunError, Visit } from "@/model/fold";
import { eventGlyph, eventWords } from "@/model/event-words";
import { people, visitName, waitWords } from "@/model/run-look";
import { clockTime, duration, instant, soon, timeOfDay } from "@/model/time";
import { Loading, Words } from "@/ui/parts";
import { Glyph } from "@/ui/icon";
import { useRunPage, useSeen } from "../context";
import { short } from "../short";
import type { VisitDetail } from "./visit-panel";
import { Value } from "./value";

export const TABS = ["Failure", "In", "Out", "Scope", "Attempts", "Log", "Why"] as const;
export type TabName = (typeof TABS)[number];

export function Tab({ name, visit, detail }: { name: TabName; visit: Visit; detail: VisitDetail | undefined }) {
  if (name === "Failure") return <FailureTab visit={visit} detail={detail} />;
  if (name === "Log") return <Log visit={visit} />;
  if (name === "Out") return <Out visit={visit} detail={detail} />;
  if (detail === undefined) return <Loading what="the visit" />;
  if (name === "In") return <><Waits visit={visit} detail={detail} /><h3 className="section-title run-h">Input</h3><Whole visit={visit} value={detail.input} name="input" /></>;
  if (name === "Scope") return <Whole visit={visit} value={detail.scope} name="scope" />;
  return name === "Attempts" ? <Attempts detail={detail} /> : <Why visit={visit} detail={detail} />;
}

/** A value of a visit, with the address of the whole. */
function Whole({ visit, value, name }: { visit: Visit; value: unknown; name: string }) {
  const { store } = useRunPage();
  return <Value value={value} name={name} whole={`${apiBase}/runs/${encodeURIComponent(store.run)}/visits/${visit.id}/values/${name}`} />;
}

function Waits({ visit, detail }: { visit: Visit; detail: VisitDetail }) {
  if (visit.status !== "waiting" || detail.waiting == null) return null;
  const title = visit.asked?.["title"];
  const asks = visit.waiting === "human";
  return (
    <div className="note" data-tone={visit.gate === "open" ? "ask" : "wait"}>
      <Glyph name={visit.gate === "open" ? "ask" : "wait"} />
      <div className="grow">
        {asks && typeof title === "string" && title !== "" && <p className="t3 b">{title}</p>}
        <p>{asks ? `Asks ${people(visit) ?? "anybody"}` : <b>Waits {waitWords(visit, Date.now())}</b>} <span className="c2">since {soon(detail.waiting.since)}</span></p>
        {detail.waiting.ends_by.length > 0 && <p className="c2 run-ends">What ends it:</p>}
        <ul>{detail.waiting.ends_by.map((one) => <li key={one.words} className="c2">– {one.words}{one.at != null ? ` (${instant(one.at)})` : ""}</li>)}</ul>
      </div>
    </div>
  );
}

function Out({ visit, detail }: { visit: Visit; detail: VisitDetail | undefined }) {
  const { folding } = useSeen();
  const ended = visit.endedSeq === null ? undefined : folding.event(visit.endedSeq);
  const known = ended?.type === "token.completed" ? ended["output"] : undefined; // of 20 MB the service takes a second to tell the visit
  const text = visit.text ?? detail?.text ?? null;
  return (
    <>
      {text !== null && text !== undefined && text !== "" && <Stream text={text} live={visit.status === "executing"} />}
      <h3 className="section-title run-h">Output</h3>
      {detail === undefined ? known === undefined ? <Loading what="the output" /> : <Whole visit={visit} value={known} name="output" /> : visit.status === "executing" && detail.output === null ? <p className="c2 t2">Not yet: it is at work.</p> : <Whole visit={visit} value={detail.output} name="output" />}
      {visit.child !== null && <p className="t2 run-h">Calls <Link className="link mono" href={`/runs/${encodeURIComponent(visit.child)}`}>{visit.child}</Link></p>}
      {(visit.worker ?? visit.queue) !== null && (
        <>
          <h3 className="section-title run-h">Where it runs</h3>
          <dl className="kv">{visit.queue !== null && <><dt>Queue</dt><dd className="mono">{visit.queue}</dd></>}{visit.worker !== null && <><dt>Worker</dt><dd className="mono clip">{visit.worker}</dd></>}</dl>
        </>
      )}
    </>
  );
}

/** Text as it comes. It follows the end until somebody scrolls up. */
function Stream({ text, live }: { text: string; live: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const [following, setFollowing] = useState(true);
  const spoken = live ? text.slice(0, Math.max(0, text.lastIndexOf(". ") + 1)) : text;
  useEffect(() => {
    if (following && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [text, following]);
  return (
    <>
      <div className="row"><h3 className="section-title">Model text</h3>{live && <span className="push t1 c2 row row-4"><span className="run-pulse" />streaming</span>}</div>
      <div className="run-stream scroll" ref={box} tabIndex={0} onScroll={(event) => setFollowing(event.currentTarget.scrollHeight - event.currentTarget.scrollTop - event.currentTarget.clientHeight < 24)}>
        {text}
        {live && <span className="run-caret" />}
      </div>
      <span className="sr" aria-live="polite">{spoken.slice(-400)}</span>
      <div className="row run-stream-foot t1 c2"><span>{text.length.toLocaleString()} characters</span>{live && !following && <button type="button" className="link t1 push" onClick={() => setFollowing(true)}>Follow</button>}</div>
    </>
  );
}

function Attempts({ detail }: { detail: VisitDetail }) {
  if (detail.attempted.length === 0) return <p className="c2 t2">It has not begun.</p>;
  return (
    <table className="run-tries">
      <tbody>
        {detail.attempted.map((one) => (
          <tr key={one.attempt}>
            <td>{one.attempt}</td>
            <td title={one.started === null ? undefined : instant(one.started)}>{one.started === null ? "in the queue" : clockTime(one.started)}</td>
            <td className="num">{duration(one.run_ms)}</td>
            <td data-tone={one.outcome === "completed" ? "done" : one.outcome === null ? "active" : "fail"}><span className="tone row row-4"><Glyph name={one.outcome === "completed" ? "done" : one.outcome === null ? "active" : "fail"} small />{one.error?.kind ?? one.outcome ?? "at work"}</span></td>
            <td className="c2 run-then" title={one.worker ?? undefined}>{one.next != null && one.ended != null ? `then ${duration(one.next - one.ended)}` : one.worker ?? ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function FailureTab({ visit, detail }: { visit: Visit; detail: VisitDetail | undefined }) {
  const { state, folding } = useSeen();
  const { select } = useRunPage();
  const error = visit.error as RunError;
  const event = visit.endedSeq === null ? undefined : folding.events[visit.endedSeq - 1];
  const traceback = (event?.["error"] as RunError | undefined)?.traceback;
  const same = [...state.visits.values()].filter((one) => one.id !== visit.id && one.error !== null && one.error.kind === error?.kind && one.error.message === error.message && one.node === visit.node);
  if (error === null) return null;
  return (
    <>
      <h3 className="section-title">Error</h3>
      <div className="note run-h8" data-tone="fail"><Glyph name="fail" /><div><div className="run-pre b"><Words text={error.message} /></div><div className="mono t1">{error.kind}</div></div></div>
      <dl className="run-err-kv t1"><div><dt>tries</dt><dd className="mono">{error.attempts ?? visit.attempts}</dd></div><div><dt>retryable</dt><dd className="mono">{error.retryable === true ? "yes" : "no"}</dd></div></dl>
      <ToEditor node={visit.node} />
      <h3 className="section-title run-h">Tries</h3>
      {detail === undefined ? <Loading what="the tries" /> : <Attempts detail={detail} />}
      {traceback != null && <><h3 className="section-title run-h">Traceback</h3><pre className="code run-trace" tabIndex={0}>{traceback}</pre></>}
      {detail?.why.values != null && <><h3 className="section-title run-h">Read before it failed</h3><Reads values={detail.why.values} /></>}
      {detail !== undefined && <><h3 className="section-title run-h">Input</h3><Whole visit={visit} value={detail.input} name="input" /></>}
      {same.length > 0 && <p className="t2 run-h"><button type="button" className="link" onClick={() => select({ node: null, visit: same[0]?.id ?? visit.id, group: null })}>{same.length === 1 ? "1 other visit" : `${same.length} other visits`} with this error</button></p>}
    </>
  );
}

/** The place in the definition where a step is put right. */
function ToEditor({ node }: { node: string }) {
  const { detail } = useSeen();
  return detail === null ? null : <p className="t2 run-h8"><Link className="link" href={`/workflows/${encodeURIComponent(detail.workflow)}?node=${encodeURIComponent(node)}`}>Open {node} in the editor</Link></p>;
}

function Reads({ values }: { values: Record<string, unknown> }) {
  return <ul className="run-reads">{Object.entries(values).map(([path, value]) => <li key={path}><span className="mono clip">{path}</span><span className="push c2 mono clip">{short(value)}</span></li>)}</ul>;
}

function Log({ visit }: { visit: Visit }) {
  const { folding, cursor, turn } = useSeen();
  void turn;
  const upTo = cursor ?? folding.length;
  const events = folding.events.filter((event) => event.seq <= upTo && event["token"] === visit.id && event.type !== "token.progress" || (event["token"] === visit.id && event.seq <= upTo && event["name"] !== "llm.partial"));
  return (
    <ol className="run-log">
      {events.slice(-300).map((event) => {
        const glyph = eventGlyph(event.type);
        return <li key={event.seq}><span className="c2" title={instant(event.at)}>{timeOfDay(event.at)}</span><span className="row row-4"><span className="tone" data-tone={glyph === "pause" ? "stop" : glyph === "timeout" ? "fail" : glyph}><Glyph name={glyph} small /></span><span className="mono">{event.type}</span></span><span className="c2 run-pre">{eventWords(event)}</span></li>;
      })}
    </ol>
  );
}

function Why({ visit, detail }: { visit: Visit; detail: VisitDetail }) {
  const { select } = useRunPage();
  const { state } = useSeen();
  const origin = detail.why.origin == null ? undefined : state.visits.get(detail.why.origin);
  return (
    <>
      <p className="t3">{detail.why.words}</p>
      <dl className="kv run-h">
        {detail.why.transition != null && <><dt>Transition</dt><dd className="mono">{detail.why.transition}</dd></>}
        {detail.why.condition != null && <><dt>Condition</dt><dd className="mono">{detail.why.condition}</dd></>}
        {origin !== undefined && <><dt>From</dt><dd><button type="button" className="link mono" onClick={() => select({ node: null, visit: origin.id, group: null })}>{visitName(origin)}</button></dd></>}
        <dt>Made</dt><dd>{instant(visit.created)}, event {visit.createdSeq}</dd>
        {detail.branches.length > 0 && <><dt>Branches</dt><dd className="mono">{detail.branches.map(([group, branch]) => `group ${group}, branch ${branch}`).join("; ")}</dd></>}
      </dl>
      {detail.why.values != null && <><h3 className="section-title run-h">Values that the condition read</h3><Reads values={detail.why.values} /></>}
      <Waits visit={visit} detail={detail} />
      <ToEditor node={visit.node} />
    </>
  );
}
