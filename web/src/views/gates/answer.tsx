// The form of a gate: entries kept as they are typed, checked on the spot, judged by the service.
import { useEffect, useMemo, useRef, useState, type RefObject } from "react";
import { api, given } from "@/api/client";
import { problemOf, type Problem } from "@/api/problem";
import { check, isWrong, NOTHING_WRONG, refused, type Wrong } from "@/model/form-check";
import { dataOf, entriesOf, leaves } from "@/model/form";
import type { GateView } from "@/model/gates";
import { relative } from "@/model/time";
import { Button, Trouble, useNow } from "@/ui/parts";
import type { Sheet } from "./batch-state";
import { dropDraft, keepDraft, useDraft } from "./drafts";
import { Fields, type FormState } from "./fields";
import { addFile } from "./files";

/** What keys of the page do with the form that is shown. */
export interface FormActs {
  readonly focus: () => void;
  readonly send: () => void;
  /** Takes the nth of the first choices. */
  readonly choose: (nth: number) => boolean;
}

interface AnswerFormProps {
  gate: GateView;
  sheet: Sheet;
  /** `common`: the entries go to all gates that are selected. */
  mode: "single" | "common" | "exception";
  acts: RefObject<FormActs | null>;
  onAnswered: () => void;
  onRefused: () => void;
  onReview: () => void;
}

/** The entries of a sheet, what they stand for, and what is wrong with that. */
export function useSheet(sheet: Sheet) {
  const draft = useDraft(sheet.key);
  const entries = useMemo(() => draft?.entries ?? entriesOf(sheet.fields), [draft, sheet.fields]);
  const data = useMemo(() => dataOf(sheet.fields, entries), [sheet.fields, entries]);
  const wrong = useMemo(() => check(sheet.form, sheet.fields, data), [sheet, data]);
  return { draft, entries, data, wrong };
}

export function AnswerForm({ gate, sheet, mode, acts, onAnswered, onRefused, onReview }: AnswerFormProps) {
  const { draft, entries, data, wrong } = useSheet(sheet);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [tried, setTried] = useState(false);
  const [told, setTold] = useState<Wrong>(NOTHING_WRONG);
  const [error, setError] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const comment = draft?.comment ?? "";
  const shown = useMemo(() => {
    const mine = [...wrong.fields].filter(([name, words]) => tried || (touched.has(name) && words !== "This is needed."));
    return new Map([...mine, ...told.fields]);
  }, [wrong, told, touched, tried]);

  const set: FormState["set"] = (name, value) => {
    keepDraft(sheet.key, { entries: { ...entries, [name]: value }, comment });
    setTouched((before) => new Set(before).add(name));
    setTold((before) => (before.fields.has(name) ? { ...before, fields: new Map([...before.fields].filter(([one]) => one !== name)), rest: [] } : before));
  };
  const send = async () => {
    if (mode !== "single") return onReview();
    setTried(true);
    if (busy) return;
    if (isWrong(wrong) && wrong.sure) return void requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
    setBusy(true);
    setError(null);
    try {
      const body = { data, ...(comment.trim() === "" ? {} : { comment: comment.trim() }) };
      await given(api.POST("/api/v1/gates/{run}/{visit}/answer", { params: { path: { run: gate.run, visit: String(gate.visit) } }, body } as never));
      dropDraft(sheet.key);
      onAnswered();
    } catch (caught) {
      const problem = problemOf(caught);
      const lines = problem.status === 422 ? (problem.document.problems ?? []) : [];
      setTold(refused(sheet.fields, lines));
      if (lines.length === 0) setError(problem);
      if (problem.status === 409 || problem.status === 404) onRefused();
      requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
    } finally {
      setBusy(false);
    }
  };
  const radios = leaves(sheet.fields).find((field) => field.widget === "radio" && field.choices.length > 1);
  const handle: FormActs = {
    focus: () => focusFirst(form.current),
    send: () => void send(),
    choose: (nth) => {
      const choice = radios?.choices[nth];
      if (choice !== undefined) set(radios!.name, choice.text);
      return choice !== undefined;
    },
  };
  useEffect(() => {
    acts.current = handle;
    return () => {
      acts.current = null;
    };
  });
  const keep = mode === "common" ? null : (field: { path: readonly string[] }, file: File) => addFile(gate.run, gate.visit, field.path.join("."), file);
  const state: FormState = { entries, wrong: shown, set, keep, disabled: busy, keyed: radios?.name ?? null };
  const rest = [...(tried ? wrong.rest : []), ...told.rest];
  return (
    <form ref={form} className="gates-fields" aria-label="Answer" noValidate onSubmit={(event) => { event.preventDefault(); void send(); }}>
      {sheet.fields.length === 0 && mode === "single" && <p className="c2">It asks for no data. Answering lets the run go on.</p>}
      <Fields fields={sheet.fields} state={state} />
      {mode === "single" && (
        <label className="field">
          <span className="label">Comment<span className="c2"> optional, kept with the answer</span></span>
          <textarea className="textarea" rows={2} value={comment} disabled={busy} onChange={(event) => keepDraft(sheet.key, { entries, comment: event.target.value })} />
        </label>
      )}
      {rest.length > 0 && <div className="note" data-tone="fail" role="alert"><ul>{rest.map((line) => <li key={line}>{line}</li>)}</ul></div>}
      {error !== null && <Trouble error={error} />}
      {mode === "single" && (
        <div className="gates-send">
          <Button kind="primary" size="lg" type="submit" disabled={busy}>{busy ? "Sending…" : "Answer"}</Button>
          <Kept at={draft?.at ?? null} />
          <span className="push kbd" aria-hidden="true">Ctrl ↵</span>
        </div>
      )}
      {mode !== "single" && <Kept at={draft?.at ?? null} />}
    </form>
  );
}

/** The first field; of choices the one that is taken, so that arrows go on from there. */
function focusFirst(form: HTMLFormElement | null): void {
  const first = form?.querySelector<HTMLElement>("input:not([type=file]), select, textarea, button[type=submit]");
  const taken = first instanceof HTMLInputElement && first.type === "radio" ? form?.querySelector<HTMLElement>(`input[name="${CSS.escape(first.name)}"]:checked`) : null;
  (taken ?? first)?.focus();
}

function Kept({ at }: { at: number | null }) {
  const now = useNow(5_000);
  if (at === null) return null;
  return <span className="hint">Draft kept {now - at < 5_000 ? "just now" : relative(at, now)}</span>;
}
