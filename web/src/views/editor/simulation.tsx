// Simulation: plays the draft on a virtual clock with mocks, steps through what happened, goes on with what happens from
// outside, and saves all of it as a scenario that was seen to pass.
import { useEffect, useRef, useState } from "react";
import { stringify } from "yaml";
import { api, given } from "@/api/client";
import { expectOf, waitsOf, withStep } from "@/model/next-step";
import { clockAt, countsAt, eventWords, isStep, type SimEvent } from "@/model/playing";
import { problemOf } from "@/api/problem";
import { Button } from "@/ui/parts";
import { sampleOf } from "@/views/runs/start";
import { useEditing, useShown, type Played } from "./context";
import { download } from "./files";
import { MocksDialog, type Script } from "./mocks";
import { HappensDialog } from "./happens";
import type { Checked } from "./use-check";

interface Play {
  readonly history: readonly SimEvent[];
  readonly result: { readonly status: string | null; readonly output: unknown; readonly error: { kind?: string; message?: string } | null; readonly elapsed_ms: number; readonly ok: boolean; readonly reason: string | null };
  readonly scenario: Record<string, unknown>;
}

async function play(name: string, definition: unknown, { input, mocks, steps }: Script, expect?: Record<string, unknown>): Promise<Play> {
  const body = { definition, input, mocks, ...(steps === null ? {} : { steps }), ...(expect === undefined ? {} : { expect }) };
  return (await given(api.POST("/api/v1/workflows/{name}/simulate", { params: { path: { name } }, body: body as never }))) as unknown as Play;
}

/** What was played as a scenario, after it was played again and held. */
async function scenarioOf(name: string, definition: unknown, script: Script, { history, result }: Play): Promise<string> {
  const full = expectOf(history, result);
  const { visits: _visits, ...least } = full;
  let why: string | null = null;
  for (const expect of [full, least]) {
    const again = await play(name, definition, script, expect);
    if (again.result.ok) return stringify({ ...again.scenario, scenario: `${name} as simulated` }, { lineWidth: 0 });
    why = again.result.reason;
  }
  throw new Error(why ?? "played again, it went another way");
}

export function Simulation({ checked, onPlayed }: { checked: Checked; onPlayed: (played: ReadonlyMap<string, Played>) => void }) {
  const { draft } = useEditing();
  const { flow, text } = useShown();
  const [played, setPlayed] = useState<Play | null>(null);
  const [at, setAt] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [script, setScript] = useState<Script | null>(null);
  const [dialog, setDialog] = useState<"mocks" | "happens" | null>(null);
  const wrong = checked.findings.some((one) => one.error);
  const scenario: Script = script ?? { input: flow.value["input_schema"] == null ? {} : sampleOf(flow.value["input_schema"]), mocks: {}, steps: null };
  const run = async (with_: Script = scenario) => {
    setBusy(true);
    setError(null);
    try {
      const answer = await play(flow.name, draft.get().flow.value, with_);
      setPlayed(answer);
      setAt(answer.history.length);
      if (!answer.result.ok) setError(answer.result.reason);
    } catch (problem) {
      setPlayed(null);
      setError(problemOf(problem).message);
    } finally {
      setBusy(false);
    }
  };
  const wasPlayed = useRef(false);
  useEffect(() => {
    // An edit makes what was played untrue: it is played again with the same mocks as soon as the draft is sound.
    wasPlayed.current ||= played !== null;
    setPlayed(null);
  }, [text]);
  useEffect(() => {
    if (!wasPlayed.current || checked.of !== text || wrong) return;
    wasPlayed.current = false;
    void run();
  }, [checked.of, text, wrong]);
  useEffect(() => onPlayed(played === null ? new Map() : countsAt(played.history, at)), [played, at]);
  const history = played?.history ?? [];
  const step = (by: 1 | -1) => {
    let next = at + by;
    while (next > 0 && next < history.length && !isStep(history[next - 1] as SimEvent)) next += by;
    setAt(Math.min(history.length, Math.max(1, next)));
  };
  useStepKey(() => (played === null || at >= history.length ? busy || wrong || void run() : step(1)));
  const waits = played?.result.status === "running" ? waitsOf(history) : [];
  const goOn = (added: Record<string, unknown>) => {
    const next = { ...scenario, steps: withStep(scenario.steps, played?.result.elapsed_ms ?? 0, added) };
    setScript(next);
    setDialog(null);
    void run(next);
  };
  const save = async () => {
    if (played === null) return;
    setBusy(true);
    try {
      download(`${flow.name.replaceAll("/", "-")}.scenario.yaml`, await scenarioOf(flow.name, flow.value, scenario, played), "application/yaml");
    } catch (problem) {
      setError(problemOf(problem).message);
    } finally {
      setBusy(false);
    }
  };
  const mocked = Object.keys(scenario.mocks).length;
  return (
    <section className="ed-sim" aria-label="Simulation">
      <b>Simulate</b>
      <span className="ed-tool-group float">
        <Button kind="ghost" size="sm" icon="play" disabled={busy || wrong || flow.nodes.length === 0} onClick={() => void run()}>{busy ? "Playing…" : played === null ? "Play" : "Again"}</Button>
        <Button kind="ghost" size="sm" icon="restart" aria-label="To the start" disabled={played === null} onClick={() => setAt(1)} />
        <Button kind="ghost" size="sm" icon="stepb" aria-label="Step back" disabled={played === null || at <= 1} onClick={() => step(-1)} />
        <Button kind="ghost" size="sm" icon="step" aria-label="Step" title="Step (.)" disabled={played === null || at >= history.length} onClick={() => step(1)} />
        <Button kind="ghost" size="sm" icon="ff" aria-label="To the end" disabled={played === null} onClick={() => setAt(history.length)} />
      </span>
      {played !== null && <span className="ed-clock mono">{clockAt(history, at)}</span>}
      {played !== null && <span className="c2 nowrap">virtual · {at} of {history.length}</span>}
      <span className="ed-sim-words clip grow" role="status">{error !== null ? <span className="field-error">{error}</span> : said(played, at, wrong)}</span>
      {waits.length > 0 && <Button size="sm" kind="primary" icon="signal" disabled={busy} onClick={() => setDialog("happens")}>{waits[0]!.reason === "human" ? `Answer ${waits[0]!.address}…` : waits[0]!.reason === "signal" ? "Send signal…" : "Go on…"}</Button>}
      <Button size="sm" icon="mock" onClick={() => setDialog("mocks")}>Input and mocks {mocked > 0 && <span className="count">{mocked}</span>}</Button>
      <Button size="sm" icon="export" disabled={played === null || busy} onClick={() => void save()}>Save as scenario</Button>
      {dialog === "mocks" && <MocksDialog script={scenario} onClose={() => setDialog(null)} onScript={(next) => { setScript(next); setDialog(null); void run(next); }} />}
      {dialog === "happens" && <HappensDialog waits={waits} flow={flow} onClose={() => setDialog(null)} onStep={goOn} />}
    </section>
  );
}

/** What a visit waits for, by the reason in its history. */
const WAITS: Record<string, string> = { human: "a person", timer: "its time", external: "a callback", siblings: "its siblings", subworkflow: "another run", trigger: "its trigger", retry: "its next try", queue: "a worker", mutex: "its turn" };

function said(played: Play | null, at: number, wrong: boolean) {
  if (played === null) return <span className="c2">{wrong ? "What is wrong has to be put right first." : "Plays this draft on a virtual clock. Nothing is stored, nothing goes outside."}</span>;
  const { history, result } = played;
  const event = history[at - 1];
  if (event === undefined) return "Not begun";
  if (at < history.length) return eventWords(event, history);
  if (result.status === "running") return `Waits: ${waitsOf(history).slice(0, 3).map((wait) => `${wait.address} for ${wait.signal === null ? (WAITS[wait.reason] ?? wait.reason) : `signal ${wait.signal}`}`).join(", ")}`;
  return `Ended: ${result.status}${result.error?.message === undefined ? "" : `, ${result.error.message}`}${result.output === undefined || result.output === null ? "" : `, ${JSON.stringify(result.output)}`}`;
}

/** The full stop plays, and then steps. */
function useStepKey(act: () => void): void {
  const newest = useRef(act);
  newest.current = act;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key !== "." || event.ctrlKey || event.metaKey || event.altKey || target.isContentEditable || target.closest("input, textarea, select, [role=dialog]") !== null) return;
      event.preventDefault();
      newest.current();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
