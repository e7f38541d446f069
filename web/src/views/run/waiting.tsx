// The line below the heading: one sentence for each token that waits, gathered where several wait for the same; each
// selects it, and a question can be answered from here. It is always there, so that nothing below it moves: while nothing
// waits it says what is at work, at the end how the run ended and how to go on, in the past which moment is seen.
import { useRef, useState, type ReactNode } from "react";
import { Link } from "wouter";
import { api, given } from "@/api/client";
import { useMay } from "@/api/session";
import type { components } from "@/api/schema";
import type { RunState } from "@/model/fold";
import { queuedWords, type Queued } from "@/model/queue";
import { isLive } from "@/model/fold";
import { runLook, visitLook } from "@/model/states";
import { duration, instant, soon, timeOfDay } from "@/model/time";
import { useAsk } from "@/ui/ask";
import { Button, useNow } from "@/ui/parts";
import { Glyph } from "@/ui/icon";
import { fetched } from "@/ui/fetched";
import { Later } from "@/ui/later";
import { useRunPage, useSeen } from "./context";

const WaitingMore = fetched(() => import("./waiting-more"));
const StartRun = fetched(() => import("../runs/start").then((found) => ({ default: found.StartRun })));

const LINE_MS = 5_000; // places in the line have no events of their own

type Wait = components["schemas"]["WaitView"];

export interface Sentence {
  readonly key: string;
  readonly tone: ReturnType<typeof visitLook>;
  readonly words: string;
  readonly visits: readonly number[];
  readonly title: string;
  /** The gate that can be answered. */
  readonly gate: number | null;
}

/** `quorum needs 13 more of 36`. */
function joinWords(ends: Wait["ends_by"][number] | undefined): string | null {
  const counted = /^(\d+) of (\d+) branches/.exec(ends?.words ?? "");
  return counted === null || ends?.join == null ? null : `${ends.join.replace(/^\d+:/, "")} needs ${Number(counted[2]) - Number(counted[1])} more of ${counted[2]}`;
}

function wordsOf(wait: Wait, count: number, now: number, again: boolean): string {
  const what = count > 1 ? `${count} × ${wait.node}` : wait.visit === 0 ? "the run" : wait.node;
  const ends = wait.ends_by[0];
  const title = (wait.detail as { title?: unknown } | null)?.title;
  if (wait.visit === 0 && typeof title === "string") return `${title} since ${soon(wait.since, now)}`;
  const who = ends?.by === "answer" && ends.who != null ? String(Array.isArray(ends.who) ? ends.who.join(", ") : typeof ends.who === "string" ? ends.who : JSON.stringify(ends.who)) : null;
  if (wait.for === "human") return `${typeof title === "string" && title !== "" && count === 1 ? `${title} · ` : ""}${what} ${count > 1 ? "ask" : "asks"} ${who ?? "anybody"} since ${soon(wait.since, now)}`;
  if (wait.for === "siblings" && joinWords(ends) !== null) return joinWords(ends) as string;
  if (wait.for === "siblings") return ends?.words !== undefined ? `${what}: ${ends.words}` : `${what} for siblings`;
  if (again && wait.until != null) return `${what} tries again ${instant(wait.until, now)}`;
  if (wait.until !== null && wait.until !== undefined) return `${what} until ${soon(wait.until, now)}`;
  if (wait.for === "queue") return `${what} waits in the queue${ends?.queue == null ? "" : ` ${ends.queue}`} for ${duration(now - wait.since)}`;
  return `${what}: ${ends?.words ?? wait.for}`;
}

const backsOff = (wait: Wait, state: RunState): boolean => wait.for === "timer" && (state.visits.get(wait.visit)?.error ?? null) !== null;

/** Waits of the same node for the same thing make one sentence. People first, then what is due, then the rest. */
export function sentencesOf(waits: readonly Wait[], now: number, state: RunState): Sentence[] {
  const groups = new Map<string, Wait[]>();
  for (const wait of waits) {
    const key = `${wait.node} ${wait.for}`;
    groups.set(key, [...(groups.get(key) ?? []), wait]);
  }
  const order = (wait: Wait) => (wait.visit === 0 ? -1 : wait.for === "human" ? 0 : wait.for === "queue" ? 3 : wait.for === "siblings" ? 2 : 1);
  return [...groups].sort(([, a], [, b]) => order(a[0] as Wait) - order(b[0] as Wait)).map(([key, list]) => {
    const wait = list[0] as Wait;
    return {
      key, tone: visitLook("waiting", backsOff(wait, state) ? "backoff" : wait.for), words: wordsOf(wait, list.length, now, backsOff(wait, state)), visits: list.map((one) => one.visit),
      title: wait.ends_by.map((one) => one.words).join("; or "), gate: wait.for === "human" && wait.visit !== 0 ? wait.visit : null,
    };
  });
}

const overBudget = (part: string): Sentence => ({
  key: "budget", tone: visitLook("waiting", "human"), words: `the run is over its budget (${part.replace("elapsed_ms", "time")}): somebody raises it or aborts the run`, visits: [], title: "", gate: null,
});

export function Waiting() {
  const { select } = useRunPage();
  const { detail, cursor, state } = useSeen();
  const now = useNow(5_000);
  if (detail !== null && cursor === null && detail.status === "queued") return <InLine workflow={detail.workflow} />;
  const spent = detail?.budget?.exceeded ?? null;
  if (detail === null) return <section className="run-waiting" aria-label="Waiting" />;
  if (cursor !== null) return <Replayed />;
  if (state.ended !== null) return <Ended />;
  if (detail.waiting.length === 0 && spent === null) return <AtWork />;
  const sentences = [...(spent === null || detail.waiting.some((wait) => wait.visit === 0) ? [] : [overBudget(spent)]), ...sentencesOf(detail.waiting, now, state)];
  const shown = sentences.slice(0, 3);
  const rest = sentences.slice(3);
  const more = `+${rest.length + detail.waiting_more}`;
  const choose = (sentence: Sentence) => {
    const visit = sentence.visits[0] ?? 0;
    if (visit !== 0) select({ node: null, visit, group: null });
  };
  return (
    <section className="run-waiting" aria-label="Waiting">
      <b>Waiting</b>
      {shown.map((one) => <Item key={one.key} sentence={one} onChoose={() => choose(one)} />)}
      {(rest.length > 0 || detail.waiting_more > 0) && (
        <Later className="link t2" opens="dialog" face={more} part={WaitingMore}>
          {(button) => <WaitingMore face={more} hidden={detail.waiting_more} meanwhile={button}>{rest.map((one) => <Item key={one.key} sentence={one} onChoose={() => choose(one)} />)}</WaitingMore>}
        </Later>
      )}
    </section>
  );
}

/** Why a queued run has not started, and its place in the line. */
function InLine({ workflow }: { workflow: string }) {
  const { store } = useRunPage();
  const now = useNow(1_000);
  const asked = useAsk(`${workflow} ${Math.floor(now / LINE_MS)}`, () => given(api.GET("/api/v1/workflows/{name}/queue", { params: { path: { name: workflow }, query: { limit: 1_000 } } })));
  const kept = useRef<Queued | undefined>(undefined);
  kept.current = asked.data === undefined ? kept.current : (asked.data.items.find((one) => one.run === store.run) as Queued | undefined);
  return (
    <section className="run-waiting" aria-label="Waiting" data-tone="queued">
      <b>Queued</b>
      <span className="row row-4"><span className="tone"><Glyph name="queued" small /></span><span className="clip">{kept.current === undefined ? "it waits for its start" : queuedWords(kept.current, now)}</span></span>
      {kept.current !== undefined && <span className="c2">since {soon(kept.current.since, now)}{kept.current.priority === 0 ? "" : ` · priority ${kept.current.priority}`}</span>}
    </section>
  );
}

function Item({ sentence, onChoose }: { sentence: Sentence; onChoose: () => void }) {
  const { store } = useRunPage();
  const mayAnswer = useMay("approver");
  return (
    <span className="run-wait-item">
      <button type="button" className="run-wait" data-tone={sentence.tone.tone} onClick={onChoose} title={sentence.title}>
        <span className="tone"><Glyph name={sentence.tone.glyph} small /></span>
        <span className="clip">{sentence.words}</span>
      </button>
      {sentence.gate !== null && mayAnswer && <Link className="btn btn-sm btn-primary" href={`/gates/${encodeURIComponent(store.run)}/${sentence.gate}`}>Answer</Link>}
    </span>
  );
}

function Said({ name, tone, glyph, children }: { name: string; tone: string; glyph: Parameters<typeof Glyph>[0]["name"]; children: ReactNode }) {
  return (
    <section className="run-waiting" aria-label={name}>
      <span className="run-wait" data-tone={tone}><span className="tone"><Glyph name={glyph} small /></span></span>
      {children}
    </section>
  );
}

/** Nothing waits: what is done right now. */
function AtWork() {
  const { state } = useSeen();
  const nodes = new Map<string, number>();
  for (const visit of state.visits.values()) if (isLive(visit) && !visit.held) nodes.set(visit.node, (nodes.get(visit.node) ?? 0) + 1);
  const words = [...nodes].slice(0, 3).map(([node, count]) => (count > 1 ? `${count} × ${node}` : node)).join(", ");
  const look = runLook(state.status);
  return <Said name="At work" tone={look.tone} glyph={look.glyph}><span className="clip">{words === "" ? "Nothing waits" : `At work: ${words}${nodes.size > 3 ? ` and ${nodes.size - 3} more` : ""}`}</span></Said>;
}

/** The run is over: how, and what one may want to do next. */
function Ended() {
  const { detail, state } = useSeen();
  const mayStart = useMay("operator");
  const mayEdit = useMay("author");
  const [starting, setStarting] = useState(false);
  const look = runLook(detail?.status ?? state.status);
  if (detail === null) return null;
  return (
    <Said name="Ended" tone={look.tone} glyph={look.glyph}>
      <span className="clip"><b>{look.word[0]?.toUpperCase()}{look.word.slice(1)}</b> after {duration((state.ended ?? state.at) - state.started)}, at {soon(state.ended ?? state.at)}</span>
      <span className="push">
        {mayStart && <Button size="sm" icon="play" onClick={() => setStarting(true)}>Run again…</Button>}
        <Link className="btn btn-sm" href={`/workflows/${encodeURIComponent(detail.workflow)}`}>{mayEdit ? "Edit the workflow" : "See the workflow"}</Link>
      </span>
      {starting && <StartRun workflow={detail.workflow} {...(detail.shortened ? {} : { input: detail.input })} onClose={() => setStarting(false)} />}
    </Said>
  );
}

function Replayed() {
  const { store } = useRunPage();
  const { state, head } = useSeen();
  return <Said name="The past" tone="active" glyph="active"><span className="clip">The run as it was at {timeOfDay(state.at)}, after event {state.seq.toLocaleString()} of {head.toLocaleString()}</span><Button size="sm" className="push" onClick={() => store.seek(null)}>Back to now</Button></Said>;
}
