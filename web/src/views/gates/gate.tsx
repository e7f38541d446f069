// One gate: the question with what it is about, and beside it the form.
import { useEffect, useMemo, useRef, type ReactNode, type RefObject } from "react";
import { Link } from "wouter";
import { api, given } from "@/api/client";
import { follow } from "@/api/live";
import { fieldsOf } from "@/model/form";
import { isAsked, peopleOf, rightsOf, type Asker, type GateView } from "@/model/gates";
import { nameOf } from "@/model/run-title";
import { relative } from "@/model/time";
import { useAsk } from "@/ui/ask";
import { Icon } from "@/ui/icon";
import { Badge, Copy, Loading, Time, Trouble, useNow } from "@/ui/parts";
import { Prose } from "@/ui/prose";
import { Acts } from "./acts";
import type { FormActs } from "./answer";
import type { BatchState } from "./batch-state";
import { Panel } from "./panel";
import { rowTitle } from "./row-name";
import { Shown } from "./shown";
import { Talk } from "./talk";

const SETTLE_MS = 250;

/** A gate with everything, read again a moment after something happened to it. */
export function useGate(run: string | null, visit: number) {
  const asked = useAsk(run === null ? null : `${run}/${visit}`, (signal) => given(api.GET("/api/v1/gates/{run}/{visit}", { params: { path: { run: run!, visit: String(visit) } }, signal } as never)) as Promise<GateView>);
  const { again } = asked;
  useEffect(() => {
    if (run === null) return undefined;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const stop = follow(run, (events) => {
      const mine = events.some((event) => event["token"] === visit || event.type.startsWith("run."));
      if (mine && timer === null) {
        timer = setTimeout(() => {
          timer = null;
          again();
        }, SETTLE_MS);
      }
    });
    return () => {
      stop();
      if (timer !== null) clearTimeout(timer);
    };
  }, [run, visit, again]);
  return asked;
}

interface GateProps {
  gate: GateView;
  person: Asker;
  batch: BatchState;
  acts: RefObject<FormActs | null>;
  back: string;
  onChanged: () => void;
  onNext: () => void;
  onReview: () => void;
}

export function Gate({ gate, person, batch, acts, back, onChanged, onNext, onReview }: GateProps) {
  const fields = useMemo(() => fieldsOf(gate.form), [gate.form]);
  const rights = rightsOf({ ...gate, can: gate.status === "open" ? gate.can : [] }, person);
  const isChosen = batch.selected.has(gate.gate);
  const { know } = batch;
  useEffect(() => {
    if (isChosen) know(gate.form, fields);
  }, [isChosen, know, gate.form, fields]);
  const top = useRef<HTMLElement>(null);
  useEffect(() => {
    if (top.current !== null) top.current.scrollTop = 0;
  }, [gate.gate]);
  return (
    <article ref={top} className="gates-gate" aria-labelledby="gates-title">
      <header className="gates-head">
        <Link className="gates-back" href={back}><Icon name="left" /> Gates</Link>
        <div className="grow">
          <div className="row row-12 gates-title"><h2 id="gates-title">{rowTitle(gate)}</h2><Standing gate={gate} person={person} mayAnswer={rights.answer} /></div>
          <About gate={gate} />
        </div>
        <Acts gate={gate} rights={rights} onChanged={onChanged} />
      </header>
      <div className="gates-cols">
        <div className="gates-input">
          {gate.description !== null && gate.description !== "" && <section className="gates-description"><Prose text={gate.description} /></section>}
          <Shown value={gate.input} run={gate.run} />
          <Talk key={gate.gate} gate={gate} mayComment={rights.comment} onChanged={onChanged} />
        </div>
        <Panel gate={gate} fields={fields} rights={rights} person={person} batch={batch} acts={acts} onChanged={onChanged} onNext={onNext} onReview={onReview} />
      </div>
    </article>
  );
}

function Standing({ gate, person, mayAnswer }: { gate: GateView; person: Asker; mayAnswer: boolean }) {
  if (gate.status === "completed") return <Badge look={{ tone: "done", glyph: "done", word: "answered" }} />;
  if (gate.status !== "open") return <Badge look={{ tone: "stop", glyph: "stop", word: gate.status }} />;
  if (gate.claimed_by !== null) return <Badge look={{ tone: "active", glyph: "active", word: gate.claimed_by === person.name ? "claimed by you" : `claimed by ${gate.claimed_by}` }} />;
  const isMine = mayAnswer && (isAsked(gate.assign, person) || isAsked(gate.escalated, person) || peopleOf(gate.assign).length === 0);
  return <Badge look={{ tone: "ask", glyph: "ask", word: isMine ? "your turn" : "open" }} />;
}

const named = (assign: unknown): string => peopleOf(assign).map(({ kind, name }) => (kind === "group" ? `group ${name}` : name)).join(", ");

function About({ gate }: { gate: GateView }) {
  const now = useNow(30_000);
  const run = useAsk(gate.run, (signal) => given(api.GET("/api/v1/runs/{run}", { params: { path: { run: gate.run } }, signal })));
  const escalate = gate.escalate as { at?: number; to?: unknown } | null;
  const parts: ReactNode[] = [
    <Link key="run" className="link" href={`/runs/${encodeURIComponent(gate.run)}`}>{run.data === undefined ? gate.run.slice(-12) : nameOf(run.data)}</Link>,
    <span key="node"><Copy text={gate.gate} shown={`${gate.node || "run"}[${gate.visit}]`} label="the gate's id" /> of {gate.workflow}{run.data === undefined ? "" : ` v${run.data.version}`}</span>,
    <span key="asked">asked <Time at={gate.opened} as="short" /></span>,
  ];
  if (peopleOf(gate.assign).length > 0) parts.push(<span key="of">of {named(gate.assign)}</span>);
  if (gate.escalated !== null) parts.push(<span key="up">escalated to {named(gate.escalated)}</span>);
  if (gate.due !== null) parts.push(<b key="due" className={gate.due < now ? "gates-late" : "gates-when"}>{gate.due < now ? "was due" : "due"} <Time at={gate.due} as="short" />, {relative(gate.due, now)}</b>);
  if (gate.escalated === null && escalate?.at !== undefined) parts.push(<span key="then">goes to {named(escalate.to)} too <Time at={escalate.at} as="short" /></span>);
  if (gate.reminded > 0) parts.push(<span key="remind">reminded {gate.reminded === 1 ? "once" : `${gate.reminded} times`}{gate.reminders.length > 0 && <>, last <Time at={gate.reminders.at(-1)!} /></>}</span>);
  return <p className="c2 t2 gates-about">{parts.map((part, at) => <span key={at}>{part}{at < parts.length - 1 && <span aria-hidden="true">·</span>}</span>)}</p>;
}

/** The place of a gate while it is read, or when it cannot be. */
export function NoGate({ error, isBusy, isEmpty, onRetry }: { error: unknown; isBusy: boolean; isEmpty: boolean; onRetry: () => void }) {
  if (error !== undefined) return <div className="gates-none"><Trouble error={error} onRetry={onRetry} /></div>;
  if (isBusy) return <Loading what="the gate" />;
  return <div className="empty gates-none">{isEmpty ? "Nothing waits for an answer." : "Choose a gate from the list."}</div>;
}
