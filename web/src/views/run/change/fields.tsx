// Fields of changes: JSON with what is wrong below it, and rows of places and values.
import { useId } from "react";
import { largeOf } from "@/model/large";
import { EMPTY_ROW, readJson, type WriteRow } from "@/model/writes";
import { Button } from "@/ui/parts";

export const pretty = (value: unknown): string => JSON.stringify(value ?? null, null, 2);

export function JsonField({ label, text, onChange, hint, rows = 6 }: { label: string; text: string; onChange: (text: string) => void; hint?: string; rows?: number }) {
  const { problem } = readJson(text);
  return (
    <label className="field">
      <span className="label">{label}</span>
      <textarea className={problem === null ? "textarea mono" : "textarea mono is-invalid"} rows={rows} spellCheck={false} value={text} onChange={(event) => onChange(event.target.value)} />
      {problem !== null ? <span className="field-error" role="alert">{problem}</span> : hint !== undefined && <span className="hint">{hint}</span>}
    </label>
  );
}

interface RowsProps {
  label: string;
  rows: readonly WriteRow[];
  onChange: (rows: readonly WriteRow[]) => void;
  /** Places that are known, with what is there now. */
  known: readonly (readonly [place: string, value: unknown])[];
  placeholder: string;
  add: string;
  problem: string | null;
}

/** Choosing a known place brings the value that is there, to be edited. */
export function WriteRows({ label, rows, onChange, known, placeholder, add, problem }: RowsProps) {
  const list = useId();
  const put = (at: number, row: WriteRow | null) => onChange(rows.flatMap((one, index) => (index === at ? (row === null ? [] : [row]) : [one])));
  const place = (at: number, row: WriteRow, path: string) => {
    const there = known.find(([one]) => one === path);
    put(at, { path, text: there !== undefined && row.text.trim() === "" && largeOf(there[1]) === null ? pretty(there[1]) : row.text });
  };
  return (
    <fieldset className="run-writes">
      <legend className="label">{label}</legend>
      <datalist id={list}>{known.map(([one]) => <option key={one} value={one} />)}</datalist>
      {rows.map((row, at) => (
        <div key={at} className="run-write">
          <input className="input mono" list={list} aria-label={`Place ${at + 1}`} placeholder={placeholder} value={row.path} onChange={(event) => place(at, row, event.target.value)} />
          <textarea className="textarea mono" rows={Math.min(8, Math.max(1, row.text.split("\n").length))} spellCheck={false} aria-label={`Value ${at + 1}, as JSON`} placeholder="value, as JSON" value={row.text} onChange={(event) => put(at, { ...row, text: event.target.value })} />
          <Button kind="ghost" icon="close" aria-label={`Remove row ${at + 1}`} onClick={() => put(at, null)} />
        </div>
      ))}
      {problem !== null && <span className="field-error" role="alert">{problem}</span>}
      <div><Button kind="ghost" size="sm" icon="plus" onClick={() => onChange([...rows, EMPTY_ROW])}>{add}</Button></div>
    </fieldset>
  );
}
