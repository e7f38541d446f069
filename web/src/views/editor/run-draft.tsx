// Running a draft for real, without making it the newest version of its workflow: it runs as a workflow of its own,
// `NAME.draft`. And the list of keys.
import { useState } from "react";
import { useLocation } from "wouter";
import { parse, stringify } from "yaml";
import { api, given } from "@/api/client";
import { setIn } from "@/model/yaml-edit";
import { Dialog } from "@/ui/dialog";
import { Button, Trouble } from "@/ui/parts";
import { sampleOf } from "@/views/runs/start";
import { useShown } from "./context";
import { KEYS } from "./use-keys";

/** The name under which drafts of a workflow run. */
export const draftName = (name: string): string => `${name}.draft`;

export function RunDraft({ errors, onClose }: { errors: number; onClose: () => void }) {
  const { flow, text } = useShown();
  const [, navigate] = useLocation();
  const [input, setInput] = useState(() => stringify(flow.value["input_schema"] == null ? {} : sampleOf(flow.value["input_schema"])));
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const name = draftName(flow.name);
  let value: unknown;
  let wrong: string | null = null;
  try {
    value = parse(input) as unknown;
  } catch (problem) {
    wrong = (problem as Error).message.split("\n")[0] ?? "";
  }
  const begin = async () => {
    setBusy(true);
    setError(null);
    try {
      const sent = setIn(text, [flow.value["workflow"] === undefined && flow.value["name"] !== undefined ? "name" : "workflow"], name);
      await given(api.POST("/api/v1/workflows", { body: sent as never, bodySerializer: (body: unknown) => body as string, headers: { "Content-Type": "application/yaml" } }));
      const run = await given(api.POST("/api/v1/runs", { body: { workflow: name, input: value ?? {} } as never }));
      onClose();
      navigate(`/runs/${encodeURIComponent(run.run)}`);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Run draft" onClose={onClose}
      foot={
        <>
          {errors > 0 && <span className="field-error grow" role="alert">{errors === 1 ? "One error has" : `${errors} errors have`} to be put right first.</span>}
          <Button kind="primary" icon="play" disabled={busy || errors > 0 || wrong !== null} onClick={() => void begin()}>{busy ? "Starting…" : "Run"}</Button>
        </>
      }
    >
      {error !== null && <Trouble error={error} />}
      <p>The draft runs as <b className="mono">{name}</b>, a workflow of its own: <span className="mono">{flow.name}</span> stays as it is. It runs for real, and what it calls outside is called. To try it without that, play it in the bar below the graph.</p>
      <label className="field">
        <span className="label">Input, as YAML or JSON</span>
        <textarea className={wrong === null ? "textarea mono" : "textarea mono is-invalid"} rows={6} spellCheck={false} value={input} onChange={(event) => setInput(event.target.value)} />
        {wrong !== null && <span className="field-error" role="alert">{wrong}</span>}
      </label>
    </Dialog>
  );
}

export function KeysDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="ed-keys">
        {KEYS.map(([keys, does]) => [<dt key={keys}><span className="kbd">{keys}</span></dt>, <dd key={does}>{does}</dd>])}
      </dl>
    </Dialog>
  );
}
