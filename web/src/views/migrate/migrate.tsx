// Moving runs to another version of their workflow: a plan that says everything in the way of each run, a mapping for
// nodes that have another name, then one result for each run.
import { useEffect, useState } from "react";
import { api, given } from "@/api/client";
import type { components } from "@/api/schema";
import { goneNodes, inTheWay, obstaclesOf, type MigrationResult } from "@/model/migration-plan";
import { useAsk } from "@/ui/ask";
import { Dialog } from "@/ui/dialog";
import { Glyph } from "@/ui/icon";
import { Button, Loading, Trouble } from "@/ui/parts";
import "./migrate.css";

export interface Moved {
  readonly run: string;
  readonly version: number;
  readonly name: string;
}

const STEP = 50; // runs of one request: progress is seen, and stopping takes effect soon

async function ask(runs: readonly string[], to: number, nodes: Record<string, string>, dryRun: boolean): Promise<MigrationResult[]> {
  const { results } = (await given(api.POST("/api/v1/migrations", { body: { runs: [...runs], to, nodes, dry_run: dryRun } as never }))) as { results: MigrationResult[] };
  return results;
}

async function nodesOf(workflow: string, version: number): Promise<string[]> {
  const graph = (await given(api.GET("/api/v1/workflows/{name}/graph", { params: { path: { name: workflow }, query: { version } } }))) as components["schemas"]["DrawnGraph"];
  return graph.nodes.map((node) => node.ref);
}

export function MigrateDialog({ workflow, runs: given_, onClose }: { workflow: string; runs: readonly Moved[]; onClose: () => void }) {
  const [runs] = useState(given_); // as they were when it was opened: what is done here changes them
  const versions = useAsk(workflow, async () => (await given(api.GET("/api/v1/workflows/{name}/versions", { params: { path: { name: workflow } } }))).items.map((one) => one.version));
  const [chosen, setChosen] = useState<number | null>(null);
  const [nodes, setNodes] = useState<Record<string, string>>({});
  const [plan, setPlan] = useState<MigrationResult[] | null>(null);
  const [done, setDone] = useState<MigrationResult[] | null>(null);
  const [stopped, setStopped] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const had = [...new Set(runs.map((one) => one.version))];
  const offered = (versions.data ?? []).filter((one) => had.length > 1 || one !== had[0]);
  const to = chosen ?? offered[0] ?? null;
  const graphs = useAsk(to === null ? null : `${workflow} ${to} ${had.join()}`, async () => ({ old: (await Promise.all(had.map((one) => nodesOf(workflow, one)))).flat(), now: await nodesOf(workflow, to as number) }));
  const mapping = JSON.stringify(nodes);
  useEffect(() => {
    if (to === null) return undefined;
    let over = false;
    setPlan(null);
    setError(null);
    ask(runs.map((one) => one.run), to, JSON.parse(mapping) as Record<string, string>, true).then((found) => over || setPlan(found), (problem: unknown) => over || setError(problem));
    return () => {
      over = true;
    };
  }, [runs, to, mapping]);
  const can = (plan ?? []).filter((one) => one.ok && one.outcome === "possible").map((one) => one.run);
  const [chosenRuns, setChosenRuns] = useState<readonly string[]>([]);
  const begin = async () => {
    setChosenRuns(can);
    const all: MigrationResult[] = [];
    setDone(all);
    for (let at = 0; at < can.length && !latest.stop; at += STEP) {
      try {
        all.push(...(await ask(can.slice(at, at + STEP), to as number, nodes, false)));
      } catch (problem) {
        setError(problem);
        break;
      }
      setDone([...all]);
    }
    setStopped(true);
  };
  const [latest] = useState({ stop: false });
  const isOver = done !== null && stopped;
  const count = (number: number) => (number === 1 ? "1 run" : `${number.toLocaleString()} runs`);
  return (
    <Dialog
      title={runs.length === 1 ? `Move ${runs[0]?.name} to another version` : `Move ${count(runs.length)} to another version`} wide onClose={() => { latest.stop = true; onClose(); }}
      foot={
        done === null ? (
          <><Button onClick={onClose}>Leave it</Button><Button kind="primary" disabled={can.length === 0} onClick={() => void begin()}>{can.length === 0 || to === null ? "Move" : `Move ${count(can.length)} to v${to}`}</Button></>
        ) : isOver ? <Button kind="primary" onClick={onClose}>Done</Button> : <Button onClick={() => { latest.stop = true; }}>Stop</Button>
      }
    >
      {versions.error !== undefined && <Trouble error={versions.error} onRetry={versions.again} />}
      {versions.data !== undefined && offered.length === 0 && <p>{workflow} has no other version. Deploy one first.</p>}
      {to !== null && done === null && (
        <>
          <p className="c2">A plan is made for each run. One that has something in the way stays as it is. Work, questions and waits under way end as they began; what follows is the new version's.</p>
          <label className="field mig-to">
            <span className="label">To the version</span>
            <select className="select" value={to} onChange={(event) => { setChosen(Number(event.target.value)); setNodes({}); }}>{offered.map((one) => <option key={one} value={one}>v{one}</option>)}</select>
          </label>
          {graphs.data !== undefined && <Mapping old={graphs.data.old} now={graphs.data.now} nodes={nodes} onChange={setNodes} />}
          {plan === null && error === null && <p role="status" className="c2">Making the plan…</p>}
          {plan !== null && <Plan plan={plan} runs={runs} to={to} />}
        </>
      )}
      {versions.busy && versions.data === undefined && <Loading what="versions" />}
      {done !== null && (
        <>
          <p role="status"><b>{done.filter((one) => one.ok).length}</b> moved, {done.filter((one) => !one.ok).length} refused, {chosenRuns.length - done.length} left.</p>
          <progress className="mig-progress" max={chosenRuns.length} value={done.length} aria-label="Progress" />
          <ul className="mig-list">{done.filter((one) => !one.ok).slice(0, 50).map((one) => <li key={one.run}><b className="mono">{nameOf(runs, one.run)}</b> {inTheWay(one).join("; ")}</li>)}</ul>
        </>
      )}
      {error !== null && <Trouble error={error} />}
    </Dialog>
  );
}

const nameOf = (runs: readonly Moved[], run: string): string => runs.find((one) => one.run === run)?.name ?? run.slice(-12);

/** Nodes that have gone, and for each the one that takes its place. */
function Mapping({ old, now, nodes, onChange }: { old: readonly string[]; now: readonly string[]; nodes: Readonly<Record<string, string>>; onChange: (nodes: Record<string, string>) => void }) {
  const [more, setMore] = useState<readonly string[]>([]);
  const gone = [...goneNodes(old, now), ...more];
  const rest = [...new Set(old)].filter((node) => !gone.includes(node));
  const put = (node: string, to: string) => onChange(Object.fromEntries([...Object.entries(nodes).filter(([one]) => one !== node), ...(to === "" ? [] : [[node, to] as const])]));
  return (
    <fieldset className="mig-nodes">
      <legend className="label">Nodes that have another name</legend>
      {gone.length === 0 && <p className="c2 t2">Every node of the version that {old.length > 0 ? "the runs have" : "is left"} is in the new one.</p>}
      {gone.map((node) => (
        <label key={node} className="row">
          <span className="mono clip mig-node">{node}</span><span aria-hidden="true">→</span>
          <select className="select input-sm" aria-label={`What takes the place of ${node}`} value={nodes[node] ?? ""} onChange={(event) => put(node, event.target.value)}>
            <option value="">nothing: it has gone</option>
            {now.map((one) => <option key={one}>{one}</option>)}
          </select>
        </label>
      ))}
      {rest.length > 0 && (
        <select className="select input-sm mig-more" aria-label="Map another node" value="" onChange={(event) => setMore([...more, event.target.value])}>
          <option value="" disabled>Map another node…</option>
          {rest.map((one) => <option key={one}>{one}</option>)}
        </select>
      )}
    </fieldset>
  );
}

function Plan({ plan, runs, to }: { plan: readonly MigrationResult[]; runs: readonly Moved[]; to: number }) {
  const can = plan.filter((one) => one.ok && one.outcome === "possible").length;
  const same = plan.filter((one) => one.ok && one.outcome !== "possible").length;
  const refused = plan.filter((one) => !one.ok);
  return (
    <section className="mig-plan" aria-label="Plan">
      <ul className="mig-sums">
        <li data-tone="done"><span className="tone"><Glyph name="done" small /></span><b>{can.toLocaleString()}</b> {can === 1 ? "run goes on" : "runs go on"} under v{to}</li>
        {same > 0 && <li data-tone="idle"><span className="tone"><Glyph name="idle" small /></span><b>{same.toLocaleString()}</b> {same === 1 ? "has" : "have"} that version already</li>}
        {refused.length > 0 && <li data-tone="fail"><span className="tone"><Glyph name="fail" small /></span><b>{refused.length.toLocaleString()}</b> {refused.length === 1 ? "stays" : "stay"} as {refused.length === 1 ? "it is" : "they are"}; in the way:</li>}
      </ul>
      {refused.length > 0 && runs.length > 1 && (
        <ul className="mig-list">
          {obstaclesOf(refused).slice(0, 20).map((one) => <li key={one.words}><b>{one.runs.length === 1 ? "1 run" : `${one.runs.length.toLocaleString()} runs`}</b> {one.words} <span className="c2">({one.runs.slice(0, 3).map((run) => nameOf(runs, run)).join(", ")}{one.runs.length > 3 ? " …" : ""})</span></li>)}
        </ul>
      )}
      {runs.length === 1 && refused[0] !== undefined && <ul className="mig-list">{inTheWay(refused[0]).map((words) => <li key={words}>{words}</li>)}</ul>}
    </section>
  );
}
