// A new run with the past of this one up to a moment, and a future of its own: what is otherwise in it, and which work
// is done again, is said before.
import { useMemo, useState, type ReactNode } from "react";
import { useLocation } from "wouter";
import { api, given } from "@/api/client";
import { rootOf } from "@/model/fold/scope";
import type { Event, Folding, Visit } from "@/model/fold";
import { foretold, repeatsAfter } from "@/model/foretold";
import { largeOf } from "@/model/large";
import { visitName } from "@/model/run-look";
import { instant } from "@/model/time";
import { placesOf, readJson, readRows, type WriteRow } from "@/model/writes";
import { useAsk } from "@/ui/ask";
import { Glyph } from "@/ui/icon";
import { useRunPage, useSeen } from "../context";
import { JsonField, pretty, WriteRows } from "./fields";
import { ChangeFrame } from "./frame";

/** Outputs that visits had given by an event: by node where it was visited once, else by visit. */
function outputsAt(folding: Folding, seq: number): [string, unknown][] {
  const newest = folding.newest;
  const found: [string, unknown][] = [];
  for (let index = 0; index < Math.min(seq, folding.length) && found.length < 200; index++) {
    const event = folding.events[index] as Event;
    if (event.type !== "token.completed") continue;
    const visit = newest.visits.get(event["token"] as number);
    if (visit !== undefined) found.push([(newest.nodes.get(visit.node)?.length ?? 0) === 1 ? visit.node : String(visit.id), event["output"] ?? null]);
  }
  return found;
}

export function ForkChange({ at, visit, onClose }: { at: number | null; visit: Visit | undefined; onClose: () => void }) {
  const { store } = useRunPage();
  const { folding, detail, graph } = useSeen();
  const [, navigate] = useLocation();
  const point = visit?.createdSeq ?? at ?? folding.length;
  const past = useMemo(() => folding.at(point), [folding, point]);
  const root = past.scopes.get("");
  const places = useMemo(() => [...placesOf(rootOf(root, "state"), "state"), ...placesOf(rootOf(root, "output"), "output")], [root]);
  const outputs = useMemo(() => outputsAt(folding, point), [folding, point]);
  const [input, setInput] = useState<string | null>(null);
  const [state, setState] = useState<readonly WriteRow[]>([]);
  const [given_, setGiven] = useState<readonly WriteRow[]>([]);
  const [version, setVersion] = useState("");
  const [key, setKey] = useState("");
  const [undo, setUndo] = useState(false);
  const read = { input: input === null ? null : readJson(input), state: readRows(state), outputs: readRows(given_) };
  const isReadable = read.input?.problem == null && read.state.writes !== null && read.outputs.writes !== null;
  const body = !isReadable ? null : {
    at: visit !== undefined ? { visit: visit.id } : point,
    changes: { ...(read.input === null ? {} : { input: read.input.value }), state: read.state.writes, outputs: read.outputs.writes, ...(version === "" ? {} : { version: Number(version) }) },
    ...(key.trim() === "" ? {} : { key: key.trim() }), tags: detail?.tags ?? [], inherit_compensation: undo,
  };
  const send = (asked: NonNullable<typeof body>, dryRun: boolean) => given(api.POST("/api/v1/runs/{run}/fork", { params: { path: { run: store.run } }, body: { ...asked, dry_run: dryRun } as never })) as Promise<unknown>;
  const perform = async (asked: NonNullable<typeof body>) => {
    const made = (await send(asked, false)) as { run: string };
    navigate(`/runs/${encodeURIComponent(made.run)}`);
  };
  const when = instant(folding.events[point - 1]?.at ?? past.at);
  return (
    <ChangeFrame
      title={visit === undefined ? `Fork from event ${point.toLocaleString()}` : `Fork before ${visitName(visit)}`} confirm="Fork" body={body} reason={false} wide onClose={onClose}
      about={visit === undefined ? `A new run has the past of this one up to ${when}, and goes on from there. This run stays as it is.` : `A new run has the past of this one up to the moment at which this visit was made (${when}), so its work is done again. This run stays as it is.`}
      foretell={async (asked) => foretold(((await send(asked, true)) as { events: Event[] }).events, past)} perform={perform}
      more={<Repeats seq={point} />}
    >
      <Optional name="Another input" on={input !== null} onFlip={(on) => setInput(on ? (largeOf(past.input) === null ? pretty(past.input) : "{}") : null)}>
        <JsonField label="Input, as JSON" text={input ?? ""} onChange={setInput} hint="It replaces the whole input from the point on." />
      </Optional>
      <WriteRows label="Other data" rows={state} onChange={setState} known={places} placeholder="state.…" add="Another value" problem={read.state.problem} />
      {outputs.length > 0 && <WriteRows label="Other outputs of steps that had returned" rows={given_} onChange={setGiven} known={outputs} placeholder="node or visit" add="Another output" problem={read.outputs.problem} />}
      <div className="run-fork-row">
        {graph !== null && <Versions workflow={detail?.workflow ?? ""} now={past.version} chosen={version} onChoose={setVersion} />}
        <label className="field"><span className="label">Key</span><input className="input" value={key} onChange={(event) => setKey(event.target.value)} /><span className="hint">The same key again gives the same fork.</span></label>
      </div>
      {past.compensations.size > 0 && <label className="row"><input type="checkbox" className="check" checked={undo} onChange={(event) => setUndo(event.target.checked)} /> If it is undone, also undo what this run has done ({past.compensations.size})</label>}
    </ChangeFrame>
  );
}

function Optional({ name, on, onFlip, children }: { name: string; on: boolean; onFlip: (on: boolean) => void; children: ReactNode }) {
  return (
    <>
      <label className="row"><input type="checkbox" className="check" checked={on} onChange={(event) => onFlip(event.target.checked)} /> {name}</label>
      {on && children}
    </>
  );
}

function Versions({ workflow, now, chosen, onChoose }: { workflow: string; now: number; chosen: string; onChoose: (version: string) => void }) {
  const asked = useAsk(workflow, async () => (await given(api.GET("/api/v1/workflows/{name}/versions", { params: { path: { name: workflow } } }))).items);
  const others = (asked.data ?? []).filter((one) => one.version !== now);
  if (others.length === 0) return null;
  return (
    <label className="field">
      <span className="label">Version</span>
      <select className="select" value={chosen} onChange={(event) => onChoose(event.target.value)}>
        <option value="">v{now}, as it was</option>
        {others.map((one) => <option key={one.version} value={one.version}>v{one.version}</option>)}
      </select>
    </label>
  );
}

/** The work of this run after the point, by name: it happens once more where the fork goes the same way. */
function Repeats({ seq }: { seq: number }) {
  const { folding, graph } = useSeen();
  const repeats = useMemo(() => repeatsAfter(folding.events, seq, folding.newest, graph?.nodes ?? []), [folding, seq, graph]);
  if (repeats.length === 0) return <p className="c2 t2">This run has done no work after this moment, so none is repeated.</p>;
  const all = repeats.reduce((sum, one) => sum + one.visits, 0);
  return (
    <div className="run-effects">
      <h3 className="section-title">Side effects that repeat if it goes the same way</h3>
      <p className="t2 c2">{all === 1 ? "1 visit has worked" : `${all.toLocaleString()} visits have worked`} after this moment:</p>
      <ul className="run-repeats">{repeats.map((one) => <li key={one.node}><span className="tone" data-tone="retry"><Glyph name="retry" small /></span><span><b>{one.visits.toLocaleString()}</b> × {one.node} <span className="c2">{one.words}</span></span></li>)}</ul>
    </div>
  );
}
