// What a simulation is given: the run's input, outcomes in place of work, and steps such as answers and signals.
import { useState } from "react";
import { parse, stringify } from "yaml";
import { Dialog } from "@/ui/dialog";
import { Button } from "@/ui/parts";

export interface Script {
  readonly input: unknown;
  readonly mocks: Record<string, unknown>;
  readonly steps: unknown[] | null;
}

const shown = (value: unknown): string => (value === null || (typeof value === "object" && Object.keys(value as object).length === 0) ? "" : stringify(value, { lineWidth: 0 }));

function read(text: string, wanted: "map" | "list" | "any"): { value: unknown; wrong: string | null } {
  try {
    const value = (parse(text) as unknown) ?? null;
    if (wanted === "map" && value !== null && (typeof value !== "object" || Array.isArray(value))) return { value: null, wrong: "addresses and their outcomes are needed: address: {output: …}" };
    if (wanted === "list" && value !== null && !Array.isArray(value)) return { value: null, wrong: "a list of steps is needed" };
    return { value, wrong: null };
  } catch (problem) {
    return { value: null, wrong: (problem as Error).message.split("\n")[0] ?? "" };
  }
}

export function MocksDialog({ script, onScript, onClose }: { script: Script; onScript: (script: Script) => void; onClose: () => void }) {
  const [input, setInput] = useState(() => shown(script.input));
  const [mocks, setMocks] = useState(() => shown(script.mocks));
  const [steps, setSteps] = useState(() => shown(script.steps ?? {}));
  const [given, outcomes, list] = [read(input, "any"), read(mocks, "map"), read(steps, "list")];
  const wrong = given.wrong ?? outcomes.wrong ?? list.wrong;
  return (
    <Dialog
      title="Input and mocks" onClose={onClose}
      foot={<Button kind="primary" icon="play" disabled={wrong !== null} onClick={() => onScript({ input: given.value ?? {}, mocks: (outcomes.value ?? {}) as Record<string, unknown>, steps: list.value as unknown[] | null })}>Play</Button>}
    >
      <Area label="Input of the run, as YAML or JSON" value={input} wrong={given.wrong} onChange={setInput} hint="" />
      <Area label="Mocks" value={mocks} wrong={outcomes.wrong} onChange={setMocks} hint={'Outcomes in place of work, such as judge: {output: {vote: aye}, after_ms: 300} or judge[2]: {error: {}}. Steps that reach outside fail unless they are mocked.'} />
      <Area label="Steps" value={steps} wrong={list.wrong} onChange={setSteps} hint="What happens from outside, in order, such as - {gate: ask, data: {approved: true}}, - advance_ms: 60000, - {signal: {name: paid}}. Empty: the run is driven to its end." />
    </Dialog>
  );
}

function Area({ label, value, wrong, hint, onChange }: { label: string; value: string; wrong: string | null; hint: string; onChange: (text: string) => void }) {
  return (
    <label className="field">
      <span className="label">{label}</span>
      <textarea className={wrong === null ? "textarea mono" : "textarea mono is-invalid"} rows={4} spellCheck={false} value={value} onChange={(event) => onChange(event.target.value)} />
      {hint !== "" && <span className="hint">{hint}</span>}
      {wrong !== null && <span className="field-error" role="alert">{wrong}</span>}
    </label>
  );
}
