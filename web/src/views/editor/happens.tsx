// What happens next in a simulation, from outside: an answer, a signal, a callback, or time that passes.
import { useState } from "react";
import { parse, stringify } from "yaml";
import { actionOf, type Flow } from "@/model/flow";
import { kindOf, stepOf, type Kind, type Wait } from "@/model/next-step";
import { Dialog } from "@/ui/dialog";
import { Button } from "@/ui/parts";
import { sampleOf } from "@/views/runs/start";

const WORDS: Record<Kind, string> = { gate: "a person answers", signal: "a signal comes", callback: "a worker calls back", time: "time passes" };

function sample(kind: Kind, wait: Wait | undefined, flow: Flow): string {
  if (kind === "time") return "60000";
  const node = flow.nodes.find((one) => one.ref === wait?.node);
  const form = kind === "gate" && node !== undefined ? actionOf(node.value)?.action["form"] : undefined;
  return stringify(form === undefined ? {} : sampleOf(form));
}

export function HappensDialog({ waits, flow, onStep, onClose }: { waits: readonly Wait[]; flow: Flow; onStep: (step: Record<string, unknown>) => void; onClose: () => void }) {
  const [chosen, setChosen] = useState(0);
  const [kind, setKind] = useState<Kind>(() => kindOf(waits[0]));
  const [text, setText] = useState(() => sample(kindOf(waits[0]), waits[0], flow));
  const wait = waits[chosen];
  const choose = (at: number, next: Kind) => {
    setChosen(at);
    setKind(next);
    setText(sample(next, waits[at], flow));
  };
  let data: unknown;
  let wrong: string | null = null;
  try {
    data = parse(text) as unknown;
    if (kind === "time" && !(Number.isInteger(data) && Number(data) > 0)) wrong = "a whole number of milliseconds is needed";
  } catch (problem) {
    wrong = (problem as Error).message.split("\n")[0] ?? "";
  }
  return (
    <Dialog title="What happens next" onClose={onClose} foot={<Button kind="primary" icon="play" disabled={wrong !== null} onClick={() => onStep(stepOf(kind, wait, data))}>Go on</Button>}>
      <label className="field">
        <span className="label">What</span>
        <select className="select" value={kind === "time" ? "time" : String(chosen)} onChange={(event) => (event.target.value === "time" ? choose(chosen, "time") : choose(Number(event.target.value), kindOf(waits[Number(event.target.value)])))}>
          {waits.map((one, at) => (kindOf(one) === "time" ? null : <option key={at} value={at}>{WORDS[kindOf(one)]}: {one.signal ?? one.address}</option>))}
          <option value="time">{WORDS.time}</option>
        </select>
        <span className="hint">It becomes a step of the scenario.</span>
      </label>
      <label className="field">
        <span className="label">{kind === "time" ? "Milliseconds" : kind === "gate" ? "The answer, as YAML or JSON" : "Data, as YAML or JSON"}</span>
        <textarea className={wrong === null ? "textarea mono" : "textarea mono is-invalid"} rows={kind === "time" ? 1 : 4} spellCheck={false} value={text} onChange={(event) => setText(event.target.value)} />
        {wrong !== null && <span className="field-error" role="alert">{wrong}</span>}
      </label>
    </Dialog>
  );
}
