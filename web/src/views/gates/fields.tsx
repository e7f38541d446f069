// The fields of a form on the page. They hold nothing: entries come in, changes go out, and what is wrong stands beside.
import { useId, type ReactNode } from "react";
import type { Entries, Field } from "@/model/form";
import { Icon } from "@/ui/icon";
import { FileButton } from "./files";

export interface FormState {
  readonly entries: Entries;
  readonly wrong: ReadonlyMap<string, string>;
  readonly set: (name: string, value: string | readonly string[]) => void;
  /** Keeps a file and gives its name; null: files cannot be taken here. */
  readonly keep: ((field: Field, file: File) => Promise<string>) | null;
  readonly disabled: boolean;
  /** The field whose choices have the keys 1 to 9. */
  readonly keyed: string | null;
}

export function Fields({ fields, state }: { fields: readonly Field[]; state: FormState }) {
  return (
    <>
      {fields.filter((field) => field.widget !== "hidden").map((field) =>
        field.widget === "group" ? (
          <fieldset key={field.name} className="gates-group">
            <legend className="label">{field.label}</legend>
            {field.help !== null && <span className="hint">{field.help}</span>}
            <Fields fields={field.fields} state={state} />
          </fieldset>
        ) : (
          <One key={field.name} field={field} state={state} />
        ),
      )}
    </>
  );
}

const textIn = (entries: Entries, name: string): string => {
  const entry = Object.hasOwn(entries, name) ? entries[name] : undefined;
  return typeof entry === "string" ? entry : (entry?.[0] ?? "");
};
const textsIn = (entries: Entries, name: string): readonly string[] => {
  const entry = Object.hasOwn(entries, name) ? entries[name] : undefined;
  return typeof entry === "string" ? [entry] : (entry ?? []);
};

function One({ field, state }: { field: Field; state: FormState }) {
  const id = useId();
  const wrong = state.wrong.get(field.name);
  const notes = [field.help === null ? "" : `${id}-help`, wrong === undefined ? "" : `${id}-wrong`].filter(Boolean).join(" ");
  const marks = { id, "aria-invalid": wrong !== undefined || undefined, "aria-describedby": notes || undefined, "aria-required": field.required || undefined, disabled: state.disabled } as const;
  const under = (
    <>
      {field.help !== null && <span className="hint" id={`${id}-help`}>{field.help}</span>}
      {wrong !== undefined && <span className="field-error" id={`${id}-wrong`} role="alert">{wrong}</span>}
    </>
  );
  const label = <>{field.label}{!field.required && field.path.length > 0 && <span className="c2"> optional</span>}</>;
  if (field.widget === "checkbox") {
    return (
      <div className="field">
        <label className="row t2"><input className="check" type="checkbox" {...marks} checked={textIn(state.entries, field.name) === "true"} onChange={(event) => state.set(field.name, String(event.target.checked))} />{field.label}</label>
        {under}
      </div>
    );
  }
  if (field.widget === "radio" || field.widget === "checkboxes") {
    return (
      <fieldset className="field gates-choices" aria-describedby={notes || undefined} data-field={field.name}>
        <legend className="label">{label}</legend>
        <Options field={field} state={state} id={id} isWrong={wrong !== undefined} />
        {under}
      </fieldset>
    );
  }
  return (
    <div className="field">
      <label className="label" htmlFor={id}>{label}</label>
      {control(field, state, marks, wrong !== undefined)}
      {under}
    </div>
  );
}

function Options({ field, state, id, isWrong }: { field: Field; state: FormState; id: string; isWrong: boolean }) {
  const several = field.widget === "checkboxes";
  const chosen = textsIn(state.entries, field.name);
  const choose = (text: string, on: boolean) => state.set(field.name, several ? (on ? [...chosen, text] : chosen.filter((one) => one !== text)) : text);
  return (
    <div className={isWrong ? "gates-options is-invalid" : "gates-options"}>
      {field.choices.map((choice, at) => (
        <label key={choice.text} className="gates-option">
          <input className={several ? "check" : "radio"} type={several ? "checkbox" : "radio"} name={id} value={choice.text} checked={chosen.includes(choice.text)} disabled={state.disabled} aria-invalid={isWrong || undefined} onChange={(event) => choose(choice.text, event.target.checked)} />
          <span><b>{choice.label}</b>{choice.help !== null && <span className="c2">{choice.help}</span>}</span>
          {state.keyed === field.name && at < 9 && <span className="kbd" aria-hidden="true">{at + 1}</span>}
        </label>
      ))}
    </div>
  );
}

type Marks = { id: string; disabled: boolean };
const TYPES: Partial<Record<Field["widget"], string>> = { date: "date", datetime: "datetime-local", email: "email", url: "url" };

function control(field: Field, state: FormState, marks: Marks, isWrong: boolean): ReactNode {
  const value = textIn(state.entries, field.name);
  const set = (text: string) => state.set(field.name, text);
  const classes = (name: string) => (isWrong ? `${name} is-invalid` : name);
  switch (field.widget) {
    case "textarea":
      return <textarea {...marks} className={classes("textarea")} rows={3} value={value} onChange={(event) => set(event.target.value)} />;
    case "json":
      return <textarea {...marks} className={classes("textarea mono")} rows={4} spellCheck={false} placeholder="JSON" value={value} onChange={(event) => set(event.target.value)} />;
    case "select":
      return (
        <select {...marks} className={classes("select")} value={value} onChange={(event) => set(event.target.value)}>
          <option value="">{field.required ? "Choose…" : "None"}</option>
          {field.choices.map((choice) => <option key={choice.text} value={choice.text}>{choice.label}</option>)}
        </select>
      );
    case "list":
      return <Items field={field} state={state} marks={marks} />;
    case "file":
      return <FileField field={field} state={state} value={value} id={marks.id} />;
    case "number":
      return <input {...marks} className={classes("input")} type="text" inputMode="decimal" autoComplete="off" value={value} onChange={(event) => set(event.target.value)} />;
    default:
      return <input {...marks} className={classes("input")} type={TYPES[field.widget] ?? "text"} maxLength={undefined} autoComplete="off" value={value} onChange={(event) => set(event.target.value)} />;
  }
}

function Items({ field, state, marks }: { field: Field; state: FormState; marks: Marks }) {
  const known = textsIn(state.entries, field.name);
  const items = known.length === 0 ? [""] : known;
  const change = (at: number, text: string) => state.set(field.name, items.map((one, place) => (place === at ? text : one)));
  return (
    <div className="gates-list-field">
      {items.map((text, at) => (
        <div key={at} className="row row-4">
          <input {...marks} id={at === 0 ? marks.id : undefined} className="input" inputMode={field.numbers ? "decimal" : "text"} aria-label={`${field.label}, entry ${at + 1}`} value={text} onChange={(event) => change(at, event.target.value)} />
          {items.length > 1 && <button type="button" className="btn btn-ghost btn-icon" aria-label={`Remove entry ${at + 1}`} onClick={() => state.set(field.name, items.filter((_, place) => place !== at))}><Icon name="close" /></button>}
        </div>
      ))}
      <button type="button" className="link t2" onClick={() => state.set(field.name, [...items, ""])}>Add an entry</button>
    </div>
  );
}

function FileField({ field, state, value, id }: { field: Field; state: FormState; value: string; id: string }) {
  if (state.keep === null) return <span className="hint">A file belongs to one gate: make it an exception to add one.</span>;
  const { keep } = state;
  return (
    <span className="row">
      <FileButton id={id} label={value === "" ? "Choose a file" : "Choose another"} onFiles={async ([file]) => { if (file !== undefined) state.set(field.name, await keep(field, file)); }} />
      {value !== "" && <span className="tag gates-file"><Icon name="doc" size={14} /><span className="clip">{value}</span><button type="button" className="chip-x" aria-label="Remove the file" onClick={() => state.set(field.name, "")}><Icon name="close" size={14} /></button></span>}
    </span>
  );
}
