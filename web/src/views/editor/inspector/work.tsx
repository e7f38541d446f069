// What a node runs: nothing, one action, several steps, or a task by its name.
import { actionOf, type FlowNode } from "@/model/flow";
import { ACTIONS } from "@/model/palette";
import { appendIn, deleteIn, setIn, type Path } from "@/model/yaml-edit";
import { Button } from "@/ui/parts";
import { useEditing } from "../context";
import { fieldsOf, plain, type Schema } from "../schema";
import { ActionFields, Fields } from "./parts";

type Values = Record<string, unknown>;
const isValues = (value: unknown): value is Values => value !== null && typeof value === "object" && !Array.isArray(value);

/** The steps of a node, and the path to them in it; null: it has none. */
function stepsOf(node: Values): { steps: Values[]; path: Path } | null {
  const inTask = isValues(node["task"]) ? node["task"]["steps"] : undefined;
  const found = Array.isArray(node["steps"]) ? { steps: node["steps"], path: ["steps"] } : Array.isArray(inTask) ? { steps: inTask, path: ["task", "steps"] } : null;
  return found === null ? null : { steps: (found.steps as unknown[]).map((step) => (isValues(step) ? step : {})), path: found.path };
}

export function Work({ root, node }: { root: Schema; node: FlowNode }) {
  const { draft, fixed } = useEditing();
  const base: Path = ["nodes", node.ref];
  const [one, many] = [actionOf(node.value), stepsOf(node.value)];
  const asSteps = () => one !== null && draft.edit(`make ${node.ref} steps`, (text) => setIn(deleteIn(setIn(text, [...base, "steps"], [{ action: one.action }]), [...base, one.path[0] as string]), [...base, "steps"], [{ action: one.action }]));
  if (typeof node.value["task"] === "string" || typeof node.value["action"] === "string") {
    const key = typeof node.value["task"] === "string" ? "task" : "action";
    const field = fieldsOf(root, plain(root, root.$defs?.["Node"])).find((each) => each.name === key);
    return <section><h3>Task</h3>{field !== undefined && <Fields root={root} fields={[{ ...field, form: "text", part: null }]} path={base} value={node.value} />}</section>;
  }
  const isPlain = many === null || (many.path[0] === "task" && Object.keys(many.steps[0] ?? {}).every((key) => key === "ref" || key === "action"));
  if (one !== null && isPlain) {
    return (
      <section>
        <h3>Task{!fixed && one.path[0] === "action" && <Button kind="ghost" size="sm" className="push ed-add" onClick={asSteps}>Several steps</Button>}</h3>
        <ActionFields root={root} path={[...base, ...one.path]} action={one.action} />
      </section>
    );
  }
  if (many !== null) return <Steps root={root} path={[...base, ...many.path]} steps={many.steps} />;
  return (
    <section>
      <h3>Task</h3>
      <p className="hint">It does nothing: tokens pass straight through.</p>
      {!fixed && (
        <label className="field ed-field">
          <span className="ed-field-label">Kind</span>
          <select className="select input-sm" value="" onChange={(event) => draft.edit(`give ${node.ref} work`, (text) => setIn(text, [...base, "action"], ACTIONS.find((each) => each.kind === event.target.value)?.node["action"]))}>
            <option value="">Pass-through</option>
            {ACTIONS.map((each) => <option key={each.kind} value={each.kind}>{each.name}</option>)}
          </select>
        </label>
      )}
    </section>
  );
}

function Steps({ root, path, steps }: { root: Schema; path: Path; steps: readonly Values[] }) {
  const { draft, fixed } = useEditing();
  const fields = fieldsOf(root, plain(root, root.$defs?.["Step"])).filter((field) => field.name !== "action");
  const swap = (at: number, by: -1 | 1) => draft.edit("order of steps", (text) => setIn(setIn(text, [...path, at], steps[at + by]), [...path, at + by], steps[at]));
  return (
    <section>
      <h3>Steps<span className="ed-h-help">in order, on one worker</span></h3>
      {steps.map((step, at) => {
        const action = isValues(step["action"]) ? step["action"] : null;
        const name = String(step["ref"] ?? `step${at + 1}`);
        return (
          <details key={at} className="ed-step">
            <summary><b>{name}</b><span className="c2 clip">{action === null ? String(step["action"] ?? "") : String(action["kind"] ?? "")}</span></summary>
            <div>
              {action !== null && <ActionFields root={root} path={[...path, at, "action"]} action={action} depth={1} />}
              <Fields root={root} fields={fields} path={[...path, at]} value={step} depth={1} />
              {!fixed && (
                <div className="row">
                  <Button size="sm" kind="ghost" icon="up" aria-label={`Move ${name} up`} disabled={at === 0} onClick={() => swap(at, -1)} />
                  <Button size="sm" kind="ghost" icon="down" aria-label={`Move ${name} down`} disabled={at === steps.length - 1} onClick={() => swap(at, 1)} />
                  <Button size="sm" kind="ghost" className="push" onClick={() => draft.edit(`remove ${name}`, (text) => deleteIn(text, [...path, at]))}>Remove {name}</Button>
                </div>
              )}
            </div>
          </details>
        );
      })}
      {!fixed && <div className="row"><Button size="sm" icon="plus" onClick={() => draft.edit("add a step", (text) => appendIn(text, path, { action: { kind: "set", values: {} } }))}>Add a step</Button></div>}
    </section>
  );
}
