// One field of the inspector: its label, its control by what the schema says, its help, and what is wrong with it.
import { Words } from "@/ui/parts";
import { useEffect, useId, useState } from "react";
import { parse, stringify } from "yaml";
import { setField } from "@/model/flow-edit";
import { inline, type Path } from "@/model/yaml-edit";
import { useEditing } from "../context";
import type { Finding } from "../load";
import type { Field as FieldGiven } from "../schema";

/** A path as problems write it. */
export const placeOf = (path: Path): string => path.map((key, at) => (typeof key === "number" ? `[${key}]` : at === 0 ? key : `.${key}`)).join("");

const written = (value: unknown): string => (value === undefined || value === null ? "" : typeof value === "string" ? value : inline(value));

interface Props {
  field: FieldGiven;
  path: Path;
  value: unknown;
  label?: string;
}

export const nameOf = (name: string): string => {
  const words = name.replace(/_ms$/, ", ms").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};

export function Field({ field, path, value, label = nameOf(field.name) }: Props) {
  const { draft, findings, fixed } = useEditing();
  const id = useId();
  const wrong = findings.find((one) => one.place === placeOf(path) || one.place?.startsWith(`${placeOf(path)}.`) === true || one.place?.startsWith(`${placeOf(path)}[`) === true);
  const set = (next: unknown) => draft.edit(`change ${path.at(-1)}`, (text) => setField(text, path, next), { merge: true });
  const preset = field.preset === undefined || field.preset === null ? "" : typeof field.preset === "string" ? field.preset : JSON.stringify(field.preset);
  const shared = { id, disabled: fixed, "aria-describedby": `${id}-help`, "aria-invalid": wrong?.error === true || undefined } as const;
  if (field.form === "flag") {
    return (
      <div className="field ed-field">
        <label className="row"><input {...shared} type="checkbox" className="check" checked={value === undefined ? field.preset === true : value === true} onChange={(event) => set(event.target.checked === (field.preset === true) ? undefined : event.target.checked)} /><span className="t2">{label}</span></label>
        <Help id={id} help={field.help} wrong={wrong} />
      </div>
    );
  }
  return (
    <div className="field ed-field">
      <label className="ed-field-label" htmlFor={id}>{label}</label>
      {field.form === "choice" && (
        <select {...shared} className="select input-sm" value={written(value)} onChange={(event) => set(event.target.value)}>
          <option value="">{preset === "" ? "–" : `${preset} (as usual)`}</option>
          {(field.choices ?? []).filter((one) => one !== preset || value === one).map((one) => <option key={one}>{one}</option>)}
        </select>
      )}
      {field.form === "number" && <input {...shared} className="input input-sm" inputMode="numeric" placeholder={preset} value={written(value)} onChange={(event) => set(numberOf(event.target.value))} />}
      {field.form === "long" && <textarea {...shared} className="textarea" rows={3} value={written(value)} onChange={(event) => set(event.target.value)} />}
      {field.form === "text" && <input {...shared} className="input input-sm mono" placeholder={preset} value={written(value)} onChange={(event) => set(event.target.value)} />}
      {field.form === "value" && <ValueInput shared={field.suggest.length === 0 ? shared : { ...shared, list: `${id}-words` }} value={value} placeholder={preset} onSet={set} />}
      {field.suggest.length > 0 && <datalist id={`${id}-words`}>{field.suggest.map((one) => <option key={one} value={one} />)}</datalist>}
      <Help id={id} help={field.help} wrong={wrong} />
    </div>
  );
}

const numberOf = (text: string): unknown => (text.trim() === "" ? undefined : /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text);

function Help({ id, help, wrong }: { id: string; help: string; wrong: Finding | undefined }) {
  return (
    <>
      <span id={`${id}-help`} className="hint"><Words text={help} /></span>
      {wrong !== undefined && <Wrong finding={wrong} />}
    </>
  );
}

/** What is wrong at a field, or might be. */
export const Wrong = ({ finding }: { finding: Finding }) => <span className={finding.error ? "field-error" : "ed-field-warning"}><span className="mono">{finding.code}</span>{" "}<Words text={finding.message} /></span>;

const WIDE = 38;

/** Any value, written as YAML, on lines of its own if it is long. What cannot be read yet is kept in the field, not in the draft. */
export function ValueInput({ shared, value, placeholder = "", onSet }: { shared: Record<string, unknown>; value: unknown; placeholder?: string; onSet: (value: unknown) => void }) {
  const [typed, setTyped] = useState<string | null>(null);
  const isLong = value !== null && typeof value === "object" && inline(value).length > WIDE;
  const given = isLong ? stringify(value, { lineWidth: 0 }).trimEnd() : written(value);
  useEffect(() => setTyped((before) => (before !== null && same(before, value) ? before : null)), [given]);
  const change = (text: string) => {
    setTyped(text);
    try {
      onSet(text.trim() === "" ? undefined : (parse(text) as unknown));
    } catch {
      // not a value yet
    }
  };
  const shownText = typed ?? given;
  if (isLong || shownText.includes("\n")) {
    const { list: _list, ...rest } = shared;
    return <textarea {...rest} className="textarea mono" rows={Math.min(14, shownText.split("\n").length)} spellCheck={false} value={shownText} onChange={(event) => change(event.target.value)} onBlur={() => setTyped(null)} />;
  }
  return <input {...shared} className="input input-sm mono" placeholder={placeholder} value={shownText} onChange={(event) => change(event.target.value)} onBlur={() => setTyped(null)} />;
}

function same(text: string, value: unknown): boolean {
  try {
    return JSON.stringify(parse(text)) === JSON.stringify(value);
  } catch {
    return true;
  }
}
