// The right side of a gate: its form, or why there is none, what was answered, and how far a quorum is.
import { type RefObject } from "react";
import { Link } from "wouter";
import { summary, type Field } from "@/model/form";
import { quorumOf, type Asker, type GateView, type Rights } from "@/model/gates";
import { Glyph } from "@/ui/icon";
import { Button, Time } from "@/ui/parts";
import { AnswerForm, type FormActs } from "./answer";
import { draftKey, type BatchState, type Sheet } from "./batch-state";
import { useDraft } from "./drafts";
import { initials } from "./person";
import { Json, Shown } from "./shown";

interface PanelProps {
  gate: GateView;
  fields: readonly Field[];
  rights: Rights;
  person: Asker;
  batch: BatchState;
  acts: RefObject<FormActs | null>;
  onChanged: () => void;
  onNext: () => void;
  onReview: () => void;
}

export function Panel({ gate, fields, rights, person, batch, acts, onChanged, onNext, onReview }: PanelProps) {
  const own: Sheet = { key: draftKey(gate), form: gate.form, fields };
  const isSelected = batch.selected.has(gate.gate);
  const exception = batch.exceptions.get(gate.gate) ?? null;
  const mode = !isSelected ? "single" : exception !== null ? "exception" : "common";
  const sheet = mode === "common" ? (batch.common ?? own) : own;
  return (
    <aside className="gates-panel" aria-label="Your answer">
      {gate.status !== "open" && <Outcome gate={gate} fields={fields} person={person} onNext={onNext} />}
      {gate.status === "open" && gate.visit === 0 && <p className="note">The run is out of time. <Link className="link" href={`/runs/${encodeURIComponent(gate.run)}`}>Extend or abort it</Link></p>}
      {gate.status === "open" && rights.why !== null && <p className="note" data-tone="queued"><Glyph name="queued" /><span className="grow">{rights.why}</span></p>}
      {mode === "common" && <p className="note">These entries go to {batch.rows.length - batch.exceptions.size === 1 ? "one gate" : `${batch.rows.length - batch.exceptions.size} gates`}. <span className="kbd">E</span> answers this one in its own way.</p>}
      {mode === "exception" && <p className="note" data-tone="ask"><Glyph name="ask" /><span className="grow">An exception: these entries are for this gate alone.</span><button type="button" className="link" onClick={() => batch.except(gate.gate, null)}>Same as the others</button></p>}
      {gate.status === "open" && rights.answer && <AnswerForm key={sheet.key} gate={gate} sheet={sheet} mode={mode} acts={acts} onAnswered={onChanged} onRefused={onChanged} onReview={onReview} />}
      <Quorum gate={gate} fields={fields} person={person} />
    </aside>
  );
}

const WORDS: Record<string, string> = { completed: "Answered", expired: "Expired", closed: "Not asked any more" };

/** Who answered, when and what. A draft that came too late is not lost. */
function Outcome({ gate, fields, person, onNext }: { gate: GateView; fields: readonly Field[]; person: Asker; onNext: () => void }) {
  const draft = useDraft(draftKey(gate));
  const { answer } = gate;
  const by = answer?.by === person.name ? "you" : (answer?.by ?? "somebody");
  return (
    <section className="gates-outcome" aria-live="polite">
      <h3><span className="tone" data-tone={gate.status === "completed" ? "done" : "stop"}><Glyph name={gate.status === "completed" ? "done" : "stop"} /></span>{WORDS[gate.status] ?? gate.status}{answer !== null && ` by ${by}`}</h3>
      {answer !== null && <p className="c2"><Time at={answer.at} /></p>}
      {answer !== null && <div className="gates-answer">{fields.length > 0 ? <p className="b">{summary(fields, answer.data)}</p> : <Shown value={answer.data} run={gate.run} />}</div>}
      {answer?.comment != null && <p className="gates-quote">{answer.comment}</p>}
      {draft !== null && <details className="gates-json"><summary>Your entries were not sent</summary><Json value={draft.entries} /></details>}
      <div className="row">
        <Button kind="primary" onClick={onNext} autoFocus={answer?.by === person.name}>Next gate</Button>
        <Link className="btn" href={`/runs/${encodeURIComponent(gate.run)}`}>See the run go on</Link>
      </div>
    </section>
  );
}

function Quorum({ gate, fields, person }: { gate: GateView; fields: readonly Field[]; person: Asker }) {
  const quorum = quorumOf(gate.assign);
  if (quorum === null) return null;
  const hasAnswered = gate.answers.some((answer) => answer.by === person.name);
  return (
    <section className="gates-quorum" aria-label="Agreement">
      <h3>Agreement <span className="c2">{gate.answers.length} of {quorum.of} have answered; {quorum.accept} equal answers are enough</span></h3>
      <div className="gates-bar" aria-hidden="true">{Array.from({ length: Math.min(quorum.of, 40) }, (_, at) => <i key={at} className={at < gate.answers.length ? "is-in" : ""} />)}</div>
      <ul>
        {gate.answers.map((answer) => (
          <li key={`${answer.by} ${answer.at}`}>
            <span className="avatar avatar-sm">{initials(answer.by ?? "?")}</span>
            <b>{answer.by === person.name ? "You" : answer.by}</b>
            <span className="c2 clip">{summary(fields, answer.data)}</span>
            <span className="tone" data-tone="done"><Glyph name="done" /></span>
          </li>
        ))}
        {!hasAnswered && gate.status === "open" && <li><span className="avatar avatar-sm">{initials(person.name)}</span><b>You</b><span className="c2">not yet</span><span className="tone" data-tone="ask"><Glyph name="ask" /></span></li>}
      </ul>
    </section>
  );
}

