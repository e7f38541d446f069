// A node: its name, its work, its mappings, what happens when it fails, where it leads.
import type { FlowNode } from "@/model/flow";
import { kindLook, PALETTE } from "@/model/palette";
import type { Path } from "@/model/yaml-edit";
import { Icon } from "@/ui/icon";
import { Button } from "@/ui/parts";
import { useEditing, useShown } from "../context";
import { putNode, removeNode, rename } from "../edits";
import { fieldsOf, plain, type Field as FieldGiven, type Schema } from "../schema";
import { Field } from "./field";
import { KeyInput, Mapping } from "./mapping";
import { Fields } from "./parts";
import { Work } from "./work";

const ROUTING = ["join", "fan_out", "on_no_match", "terminates"];
/** Fields that stand elsewhere in the inspector; any other stands under More. */
const ELSEWHERE = new Set([...ROUTING, "task", "steps", "action", "input_mapping", "output_mapping", "retry", "timeout_ms"]);
const RETRY = ["max_attempts", "backoff", "initial_delay_ms", "max_delay_ms", "jitter"];

export function NodeInspector({ root, node }: { root: Schema; node: FlowNode }) {
  const { draft, select, fixed, placesNow } = useEditing();
  const look = kindLook(node.kind);
  const path: Path = ["nodes", node.ref];
  const fields = new Map(fieldsOf(root, plain(root, root.$defs?.["Node"])).map((field) => [field.name, field]));
  const retry = new Map(fieldsOf(root, plain(root, root.$defs?.["Retry"])).map((field) => [field.name, field]));
  const show = (names: readonly string[], known: ReadonlyMap<string, FieldGiven>, at: Path, value: Record<string, unknown>) =>
    names.flatMap((name) => {
      const field = known.get(name);
      return field === undefined ? [] : [<Field key={name} field={field} path={[...at, name]} value={value[name]} />];
    });
  const pass = PALETTE.flatMap(({ kinds }) => kinds).find((kind) => kind.kind === "pass");
  return (
    <>
      <header className="ed-insp-head">
        <span className="ed-tile"><Icon name={look.icon} /></span>
        <h2 className="clip">{node.ref}</h2>
        <span className="c2 t1">{look.name}</span>
        {!fixed && <Button kind="ghost" size="sm" className="push" onClick={() => { removeNode(draft, node.ref); select(null); }}>Delete</Button>}
      </header>
      <div className="ed-insp-body">
        <section>
          <h3>Node</h3>
          <div className="field ed-field">
            <span className="ed-field-label">Name</span>
            <KeyInput name={node.ref} fixed={fixed} label="Name of the node" onName={(name) => rename(draft, node.ref, name) && select({ node: name })} />
            <span className="hint">Transitions and joins that name it follow.</span>
          </div>
        </section>
        <Work root={root} node={node} />
        <Mapping title="Input" help="from the token's scope" path={[...path, node.value["input"] === undefined ? "input_mapping" : "input"]} value={node.value["input"] ?? node.value["input_mapping"]} />
        <Mapping title="Output" help="into state or output" path={[...path, node.value["output"] === undefined ? "output_mapping" : "output"]} value={node.value["output"] ?? node.value["output_mapping"]} />
        <section>
          <h3>When it fails</h3>
          <div className="ed-two">{show(RETRY, retry, [...path, "retry"], (node.value["retry"] ?? {}) as Record<string, unknown>)}{show(["timeout_ms"], fields, path, node.value)}</div>
        </section>
        <Leads node={node} />
        <section>
          <h3>Routing</h3>
          <Fields root={root} fields={ROUTING.flatMap((name) => fields.get(name) ?? [])} path={path} value={node.value} />
        </section>
        <section>
          <h3>More</h3>
          <Fields root={root} fields={[...fields.values()].filter((field) => !ELSEWHERE.has(field.name))} path={path} value={node.value} />
        </section>
        {!fixed && pass !== undefined && (
          <section className="row">
            <Button size="sm" icon="plus" onClick={() => select({ node: putNode(draft, pass, node.ref, placesNow.current) })}>Add a node after {node.ref}</Button>
          </section>
        )}
      </div>
    </>
  );
}

function Leads({ node }: { node: FlowNode }) {
  const { select } = useEditing();
  const { flow } = useShown();
  const out = flow.edges.filter((edge) => edge.source === node.ref);
  return (
    <section>
      <h3>Leads to</h3>
      {out.length === 0 && <p className="hint">Nowhere: a token that is done here ends. Press C to connect it.</p>}
      {out.map((edge) => <button key={edge.index} type="button" className="ed-lead" onClick={() => select({ edge: edge.id })}><Icon name="right" size={14} />{edge.target}<span className="c2 clip">{edge.label}</span></button>)}
    </section>
  );
}
