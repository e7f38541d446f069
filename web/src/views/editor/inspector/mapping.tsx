// A mapping: target ← source, row by row. A row that has no target yet is not in the text.
import { useState } from "react";
import { deleteIn, renameKey, setIn, type Path } from "@/model/yaml-edit";
import { Button } from "@/ui/parts";
import { useEditing } from "../context";
import { placeOf, ValueInput, Wrong } from "./field";

export function Mapping({ title, help, path, value }: { title: string; help: string; path: Path; value: unknown }) {
  const { draft, fixed, findings } = useEditing();
  const [adding, setAdding] = useState(false);
  const isMap = value === undefined || value === null || (typeof value === "object" && !Array.isArray(value));
  const rows = isMap ? Object.entries((value ?? {}) as Record<string, unknown>) : [];
  const edit = (change: (text: string) => string) => draft.edit(`change ${title.toLowerCase()}`, change, { merge: true });
  const wrong = findings.filter((one) => one.place?.startsWith(placeOf(path)) === true);
  return (
    <section>
      <h3>{title}<span className="ed-h-help">{help}</span>{!fixed && isMap && <Button kind="ghost" size="sm" icon="plus" className="push ed-add" aria-label={`Add to ${title.toLowerCase()}`} onClick={() => setAdding(true)} />}</h3>
      {!isMap && <p className="hint mono">{String(value)}</p>}
      {rows.map(([key, source], at) => (
        <div className="ed-map" key={at}>
          <KeyInput name={key} fixed={fixed} label={`${title}: target`} onName={(next) => edit((text) => (next === "" ? deleteIn(text, [...path, key]) : renameKey(text, [...path, key], next)))} />
          <span className="c3" aria-hidden="true">←</span>
          <ValueInput shared={{ "aria-label": `${title}: source of ${key}`, disabled: fixed }} value={source} onSet={(next) => next !== undefined && edit((text) => setIn(text, [...path, key], next))} />
          {!fixed && <Button kind="ghost" size="sm" icon="close" className="ed-add" aria-label={`Remove ${key}`} onClick={() => edit((text) => deleteIn(text, [...path, key]))} />}
        </div>
      ))}
      {adding && (
        <div className="ed-map">
          <KeyInput name="" fixed={false} label={`${title}: new target`} focus onName={(next) => { if (next !== "") edit((text) => setIn(text, [...path, next], "$.input")); setAdding(false); }} />
          <span className="c3" aria-hidden="true">←</span>
          <span className="hint">its source comes next</span>
        </div>
      )}
      {wrong.map((one, at) => <Wrong key={at} finding={one} />)}
      {rows.length === 0 && !adding && isMap && <p className="hint">Nothing yet.</p>}
    </section>
  );
}

/** A key changes when it is left, or by Enter: half a name is no name. */
export function KeyInput({ name, fixed, label, onName, focus = false }: { name: string; fixed: boolean; label: string; onName: (name: string) => void; focus?: boolean }) {
  const [typed, setTyped] = useState<string | null>(null);
  const leave = () => {
    if (typed !== null && typed !== name) onName(typed.trim());
    else if (name === "") onName("");
    setTyped(null);
  };
  return <input className="input input-sm mono" aria-label={label} disabled={fixed} autoFocus={focus} value={typed ?? name} onChange={(event) => setTyped(event.target.value)} onBlur={leave} onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()} />;
}
