// Starting a run: which workflow, its input as a form where the workflow has a schema, else as JSON; a key. What was typed survives a refusal.
import { useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { api, given } from "@/api/client";
import { useAsk } from "@/ui/ask";
import { Dialog } from "@/ui/dialog";
import { fetched } from "@/ui/fetched";
import { Button, Loading, Trouble } from "@/ui/parts";
import { fieldsOf, leaves } from "@/model/form";

const InputForm = fetched(() => import("./input-form"));

/** An example of what a schema asks for, so that nobody begins with an empty page. */
export function sampleOf(schema: unknown): unknown {
  if (schema === null || typeof schema !== "object") return {};
  const { type, properties, default: preset, examples, enum: choices, items } = schema as Record<string, unknown>;
  if (preset !== undefined) return preset;
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  if (Array.isArray(choices) && choices.length > 0) return choices[0];
  if (properties !== null && typeof properties === "object") return Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, sampleOf(one)]));
  const required = (schema as { required?: unknown }).required;
  if (Array.isArray(required)) return Object.fromEntries(required.map((name) => [String(name), ""]));
  if (type === "array") return items === undefined ? [] : [sampleOf(items)];
  return type === "string" ? "" : type === "integer" || type === "number" ? 0 : type === "boolean" ? false : {};
}

/** `input`: what it begins with, else an example of what the workflow asks for. `about`: whom the run is about; an empty address is asked for. */
export function StartRun({ workflow, input: proposed, about, onClose }: { workflow?: string; input?: unknown; about?: { type: string; id: string; name?: string | null }; onClose: () => void }) {
  const [, navigate] = useLocation();
  const names = useAsk("workflows", async () => (await given(api.GET("/api/v1/workflows", { params: { query: { limit: 1_000 } } }))).items.map((one) => one.workflow));
  const [chosen, setChosen] = useState(workflow ?? "");
  const name = chosen || (names.data?.[0] ?? "");
  const definition = useAsk(name === "" ? null : name, async () => given(api.GET("/api/v1/workflows/{name}", { params: { path: { name } } })));
  const [text, setText] = useState(proposed === undefined ? "{}" : JSON.stringify(proposed, null, 2));
  const [touched, setTouched] = useState(proposed !== undefined);
  const [key, setKey] = useState("");
  const [entity, setEntity] = useState({ address: about === undefined || about.type === "" ? "" : `${about.type}/${about.id}`, name: "" });
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const schema = (definition.data as { definition?: { input_schema?: unknown } } | undefined)?.definition?.input_schema;
  const fields = useMemo(() => fieldsOf(schema), [schema]);
  const canForm = definition.data !== undefined && leaves(fields).some((field) => field.widget !== "json");
  const [asJson, setAsJson] = useState(false);
  const isForm = canForm && !asJson;
  const [isWrong, setWrong] = useState(false);
  const [tried, setTried] = useState(false);
  const form = useRef<HTMLElement>(null);
  useEffect(() => {
    if (touched || definition.data === undefined || isForm) return;
    setText(JSON.stringify(schema == null ? {} : sampleOf(schema), null, 2));
  }, [definition.data, touched]);
  let input: unknown;
  let broken: string | null = null;
  try {
    input = JSON.parse(text);
  } catch (problem) {
    broken = (problem as Error).message;
  }
  const begin = async () => {
    if (isForm && isWrong) {
      setTried(true);
      return void requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
    }
    setBusy(true);
    setError(null);
    try {
      const [type, ...id] = entity.address.trim().split("/");
      const whom = entity.address.trim() === "" ? {} : { entity: { type, id: id.join("/"), ...(entity.name === "" ? {} : { name: entity.name }) } };
      const body = { workflow: name, input, ...(key === "" ? {} : { key }), ...whom };
      const run = await given(api.POST("/api/v1/runs", { body: body as never }));
      navigate(`/runs/${encodeURIComponent(run.run)}`);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Start a run" onClose={onClose} foot={<Button kind="primary" icon="play" disabled={busy || name === "" || broken !== null} onClick={() => void begin()}>Start</Button>}>
      {error !== null && <Trouble error={error} />}
      {names.error !== undefined && <Trouble error={names.error} onRetry={names.again} />}
      {names.data?.length === 0 && <p className="hint">No workflow is deployed yet. Open one in the editor, or deploy one with <code className="mono">treadle deploy</code>.</p>}
      <label className="field">
        <span className="label">Workflow</span>
        <select className="select" value={name} onChange={(event) => { setChosen(event.target.value); setTouched(false); setTried(false); setWrong(false); }}>{(names.data ?? []).map((one) => <option key={one}>{one}</option>)}</select>
      </label>
      {isForm ? (
        <section ref={form} aria-label="Input">
          <div className="row start-head"><h3 className="section-title">Input</h3><button type="button" className="link t1 push" onClick={() => { setAsJson(true); setTouched(true); }}>As JSON</button></div>
          <InputForm key={name} schema={schema} fields={fields} input={touched ? input : undefined} tried={tried} onChange={(data, wrong) => { setText(JSON.stringify(data, null, 2)); setWrong(wrong); }} meanwhile={<Loading what="the form" />} />
        </section>
      ) : (
      <div className="field">
        <span className="row"><label className="label" htmlFor="start-input">Input, as JSON</label>{canForm && <button type="button" className="link t1 push" disabled={broken !== null} onClick={() => { setTouched(true); setAsJson(false); }}>As a form</button>}</span>
        <textarea id="start-input" className={broken === null ? "textarea mono" : "textarea mono is-invalid"} rows={8} spellCheck={false} value={text} onChange={(event) => { setText(event.target.value); setTouched(true); }} />
        {broken !== null && <span className="field-error" role="alert">{broken}</span>}
      </div>
      )}
      <label className="field">
        <span className="label">About</span>
        <input className="input" placeholder="lead/4711" readOnly={about !== undefined && about.type !== ""} value={entity.address} onChange={(event) => setEntity({ ...entity, address: event.target.value })} />
        <span className="hint">The type and id of a person or thing that travels with the run, if it is about one.</span>
      </label>
      {about?.type === "" && <label className="field"><span className="label">Name</span><input className="input" value={entity.name} onChange={(event) => setEntity({ ...entity, name: event.target.value })} /></label>}
      <label className="field">
        <span className="label">Key</span>
        <input className="input" value={key} onChange={(event) => setKey(event.target.value)} />
        <span className="hint">The same key again gives the same run. Leave it empty for a run of its own.</span>
      </label>
    </Dialog>
  );
}
