// The filters as sentences: `Status is not cancelled`. Each can include or exclude, and be taken away.
import { Menu } from "@base-ui/react/menu";
import { useState } from "react";
import { api, given } from "@/api/client";
import { AWAITED, inputParts, STATUSES, type Clause, type Field } from "@/model/run-filter";
import { runLook } from "@/model/states";
import { duration } from "@/model/time";
import { useAsk } from "@/ui/ask";
import { Dialog } from "@/ui/dialog";
import { Icon } from "@/ui/icon";
import { Button } from "@/ui/parts";

const NAMES: Record<Field, string> = { status: "Status", workflow: "Workflow", tag: "Tag", entity: "Entity", key: "Key", input: "Input", started: "Started", stuck: "No progress", waiting: "Waiting for", text: "Text" };
const SPANS: [ms: string, words: string][] = [["3600000", "1 hour"], ["86400000", "1 day"], ["259200000", "3 days"], ["604800000", "7 days"]];
const EXCLUDABLE = new Set<Field>(["status", "workflow", "tag", "entity", "key", "input"]);

function verb({ field, not, values }: Clause): string {
  if (field === "started") return "within";
  if (field === "stuck") return "for";
  if (field === "waiting") return values.length > 1 ? "any of" : "";
  if (field === "text") return "contains";
  if (field === "input") return not ? "has not" : "has";
  if (field === "tag" && !not) return values.length > 1 ? "are all of" : "is";
  return not ? "is not" : values.length > 1 ? "is any of" : "is";
}

function words({ field, values }: Clause): string {
  if (field === "started" || field === "stuck") return duration(Number(values[0]));
  if (field === "input") return values.map((one) => inputParts(one).filter(Boolean).join(": ")).join(", ");
  const shown = field === "status" ? values.map((one) => runLook(one).word) : field === "waiting" ? values.map((one) => AWAITED.find(([name]) => name === one)?.[1] ?? one) : [...values];
  return shown.length > 2 ? `${shown.slice(0, 2).join(", ")} +${shown.length - 2}` : shown.join(", ");
}

export function Filters({ clauses, onChange }: { clauses: readonly Clause[]; onChange: (clauses: readonly Clause[]) => void }) {
  const [editing, setEditing] = useState<{ at: number; clause: Clause } | null>(null);
  const put = (at: number, clause: Clause | null) => onChange(clauses.flatMap((one, index) => (index === at ? (clause === null ? [] : [clause]) : [one])).concat(at === clauses.length && clause !== null ? [clause] : []));
  return (
    <div className="runs-filters" role="group" aria-label="Filters">
      {clauses.map((clause, at) => (
        <span key={`${clause.field}${clause.not}`} className={clause.not ? "chip chip-not" : "chip"}>
          <span className="chip-key">{NAMES[clause.field]}</span>
          {verb(clause) !== "" && <button type="button" className="chip-op" disabled={!EXCLUDABLE.has(clause.field)} title={EXCLUDABLE.has(clause.field) ? "Include or exclude" : undefined} onClick={() => put(at, { ...clause, not: !clause.not })}>{verb(clause)}</button>}
          <button type="button" className="chip-val" onClick={() => setEditing({ at, clause })}>{words(clause)}</button>
          <button type="button" className="chip-x" aria-label={`Remove filter ${NAMES[clause.field]}`} onClick={() => put(at, null)}><Icon name="close" size={14} /></button>
        </span>
      ))}
      <Menu.Root>
        <Menu.Trigger className="chip chip-add"><span><Icon name="plus" size={14} />Filter</span></Menu.Trigger>
        <Menu.Portal>
          <Menu.Positioner sideOffset={4} align="start">
            <Menu.Popup className="menu">
              {(Object.keys(NAMES) as Field[]).filter((field) => field !== "text" && !clauses.some((one) => one.field === field && !one.not)).map((field) => (
                <Menu.Item key={field} className="menu-item" onClick={() => setEditing({ at: clauses.length, clause: { field, not: false, values: [] } })}>{NAMES[field]}</Menu.Item>
              ))}
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
      {editing !== null && <Edit clause={editing.clause} onClose={() => setEditing(null)} onDone={(clause) => { put(editing.at, clause); setEditing(null); }} />}
    </div>
  );
}

function Edit({ clause, onClose, onDone }: { clause: Clause; onClose: () => void; onDone: (clause: Clause | null) => void }) {
  const [values, setValues] = useState<readonly string[]>(clause.values);
  const done = () => onDone(values.length === 0 || (clause.field === "input" && inputParts(values[0] ?? "")[0] === "") ? null : { ...clause, values });
  return (
    <Dialog title={clause.field === "waiting" ? "Filter by what runs wait for" : `Filter by ${NAMES[clause.field].toLowerCase()}`} onClose={onClose} foot={<Button kind="primary" onClick={done}>Apply</Button>}>
      <Choices field={clause.field} values={values} onChange={setValues} />
    </Dialog>
  );
}

function Choices({ field, values, onChange }: { field: Field; values: readonly string[]; onChange: (values: readonly string[]) => void }) {
  const workflows = useAsk(field === "workflow" ? "workflows" : null, async () => (await given(api.GET("/api/v1/workflows", { params: { query: { limit: 1_000 } } }))).items.map((one) => one.workflow));
  if (field === "started" || field === "stuck") {
    return <>{SPANS.map(([ms, name]) => <label key={ms} className="row"><input type="radio" className="radio" name="span" checked={values[0] === ms} onChange={() => onChange([ms])} />{name}</label>)}</>;
  }
  if (field === "input") return <InputChoice value={values[0] ?? ""} onChange={(value) => onChange([value])} />;
  const known = field === "waiting" ? AWAITED : field === "status" ? STATUSES.map((one): [string, string] => [one, runLook(one).word]) : (workflows.data ?? []).map((one): [string, string] => [one, one]);
  if (known.length > 0) {
    const toggle = (value: string) => onChange(values.includes(value) ? values.filter((one) => one !== value) : [...values, value]);
    return <>{field === "waiting" && <p className="c2">Runs of which a visit waits for</p>}{known.map(([value, name]) => <label key={value} className="row"><input type="checkbox" className="check" checked={values.includes(value)} onChange={() => toggle(value)} />{name}</label>)}</>;
  }
  const hint = field === "entity" ? "TYPE/ID" : field === "tag" ? "Several with commas between them: all must be there" : "";
  return (
    <label className="field">
      <span className="label">{NAMES[field]}</span>
      <input className="input" autoFocus value={values.join(", ")} onChange={(event) => onChange(event.target.value.split(",").map((one) => one.trimStart()).filter((one, at, all) => one !== "" || at === all.length - 1))} />
      <span className="hint">{hint}</span>
    </label>
  );
}

/** A place in the input, and a text that the value there contains. */
function InputChoice({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [place, text] = inputParts(value);
  return (
    <>
      <label className="field"><span className="label">Place in the input</span><input className="input mono" autoFocus placeholder="customer.city" value={place} onChange={(event) => onChange(`${event.target.value.replaceAll("=", "")}=${text}`)} /></label>
      <label className="field"><span className="label">Contains</span><input className="input" value={text} onChange={(event) => onChange(`${place}=${event.target.value}`)} /><span className="hint">Left empty: every run whose input has this place.</span></label>
    </>
  );
}
