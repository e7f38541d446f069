// Acts on many runs: first what would happen to each, in numbers, then one result after the other, and a way to stop.
import { useEffect, useRef, useState } from "react";
import { api, given } from "@/api/client";
import { problemOf } from "@/api/problem";
import type { components } from "@/api/schema";
import type { RunItem } from "@/model/run-filter";
import { nameOf } from "@/model/run-title";
import { Dialog } from "@/ui/dialog";
import { fetched } from "@/ui/fetched";
import { Icon } from "@/ui/icon";
import { Button, Trouble } from "@/ui/parts";

import type { Moved } from "../migrate/migrate";

const MigrateDialog = fetched(() => import("../migrate/migrate").then((found) => ({ default: found.MigrateDialog })));

type Act = "retry" | "pause" | "resume" | "cancel";
const WORDS: Record<Act, string> = { retry: "Retry", pause: "Pause", resume: "Resume", cancel: "Cancel" };
const STEP = 25; // runs of one request: progress is seen, and stopping takes effect soon

interface Outcome {
  readonly run: string;
  readonly ok: boolean;
  readonly why: string | null;
}

export function BulkBar({ rows, selected, onSelect }: { rows: readonly RunItem[]; selected: ReadonlySet<string>; onSelect: (selected: ReadonlySet<string>) => void }) {
  const [act, setAct] = useState<Act | null>(null);
  const [moving, setMoving] = useState<readonly Moved[] | null>(null);
  const chosen = rows.filter((row) => selected.has(row.run));
  const workflow = chosen.every((row) => row.workflow === chosen[0]?.workflow) ? chosen[0]?.workflow : undefined;
  return (
    <div className="runs-bulk float" role="toolbar" aria-label="Acts on the selected runs">
      <span><b>{selected.size}</b> selected</span>
      {selected.size < rows.length && <button type="button" className="link" onClick={() => onSelect(new Set(rows.map((row) => row.run)))}>Select all {rows.length} in view</button>}
      <span className="vr" />
      <Button icon="retry" onClick={() => setAct("retry")}>Retry…</Button>
      <Button icon="pause" onClick={() => setAct("pause")}>Pause…</Button>
      <Button icon="play" onClick={() => setAct("resume")}>Resume…</Button>
      <Button icon="diff" disabled={workflow === undefined} title={workflow === undefined ? "Versions are numbered by workflow: select runs of one" : undefined} onClick={() => setMoving(chosen.map((row) => ({ run: row.run, version: row.version, name: nameOf(row) })))}>Move to a version…</Button>
      <Button kind="danger" onClick={() => setAct("cancel")}>Cancel…</Button>
      <button type="button" className="btn btn-ghost btn-icon btn-sm" aria-label="Clear the selection" onClick={() => onSelect(new Set())}><Icon name="close" /></button>
      {act !== null && <BulkDialog act={act} runs={[...selected]} onClose={() => setAct(null)} />}
      {moving !== null && workflow !== undefined && <MigrateDialog workflow={workflow} runs={moving} onClose={() => setMoving(null)} />}
    </div>
  );
}

async function ask(act: Act, runs: readonly string[], dryRun: boolean, reason: string): Promise<Outcome[]> {
  const body = { action: act, runs: [...runs], dry_run: dryRun, ...(reason === "" ? {} : { reason }) };
  const { results } = (await given(api.POST("/api/v1/runs/batch", { body: body as never }))) as components["schemas"]["BatchResults"];
  return results.map(({ run, ok, problem }) => ({ run, ok, why: problem?.detail ?? null }));
}

function BulkDialog({ act, runs, onClose }: { act: Act; runs: readonly string[]; onClose: () => void }) {
  const [plan, setPlan] = useState<Outcome[] | null>(null);
  const [done, setDone] = useState<Outcome[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [reason, setReason] = useState("");
  const stop = useRef(false);
  useEffect(() => {
    ask(act, runs, true, "").then(setPlan, setError);
    return () => {
      stop.current = true;
    };
  }, [act, runs]);
  const begin = async () => {
    const all: Outcome[] = [];
    setDone(all);
    for (let at = 0; at < runs.length && !stop.current; at += STEP) {
      try {
        all.push(...(await ask(act, runs.slice(at, at + STEP), false, reason)));
      } catch (problem) {
        setError(problemOf(problem));
        break;
      }
      setDone([...all]);
    }
  };
  const going = plan?.filter((one) => one.ok).length ?? 0;
  const shown = done ?? plan ?? [];
  const refused = shown.filter((one) => !one.ok);
  const isOver = done !== null && (done.length === runs.length || error !== null || stop.current);
  return (
    <Dialog
      title={`${WORDS[act]} ${runs.length} ${runs.length === 1 ? "run" : "runs"}`}
      onClose={onClose}
      foot={
        done === null ? (
          <Button kind={act === "cancel" ? "danger-solid" : "primary"} disabled={plan === null || going === 0} onClick={() => void begin()}>{WORDS[act]} {going}</Button>
        ) : isOver ? (
          <Button kind="primary" onClick={onClose}>Done</Button>
        ) : (
          <Button onClick={() => { stop.current = true; }}>Stop</Button>
        )
      }
    >
      {error !== null && <Trouble error={error} />}
      {plan === null && error === null && <p role="status">Asking the service what would happen…</p>}
      {plan !== null && done === null && (
        <>
          <p><b>{going}</b> of {runs.length} will {sentence(act)}. {refused.length > 0 && `${refused.length} will not change:`}</p>
          <label className="field"><span className="label">Reason, for the history</span><input className="input" value={reason} onChange={(event) => setReason(event.target.value)} /></label>
        </>
      )}
      {done !== null && <p role="status">{done.filter((one) => one.ok).length} done, {refused.length} refused, {runs.length - done.length} left.</p>}
      {done !== null && <progress className="runs-progress" max={runs.length} value={done.length} aria-label="Progress" />}
      {refused.length > 0 && <ul className="runs-refused">{refused.slice(0, 50).map((one) => <li key={one.run}><span className="mono">{one.run.slice(-12)}</span> {one.why}</li>)}</ul>}
    </Dialog>
  );
}

function sentence(act: Act): string {
  if (act === "retry") return "try their failed steps again; side effects of those steps may repeat";
  if (act === "cancel") return "be cancelled; what is compensable is undone";
  return act === "pause" ? "stop before their next step; work in hand ends" : "go on";
}
