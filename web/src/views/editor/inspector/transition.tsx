// A transition: from where to where, when it is taken, how often, and whom its join waits for.
import type { FlowEdge } from "@/model/flow";
import { conditionText } from "@/model/flow";
import { setField } from "@/model/flow-edit";
import { setIn, type Path } from "@/model/yaml-edit";
import { Icon } from "@/ui/icon";
import { Button } from "@/ui/parts";
import { useEditing, useShown } from "../context";
import { removeEdge } from "../edits";
import { fieldsOf, plain, type Schema } from "../schema";
import { Field } from "./field";
import { KeyInput } from "./mapping";
import { Fields, Part } from "./parts";
import { Tester } from "./tester";

const TAKEN = ["on", "priority", "condition"];
const FAN = ["spawn_count", "sibling_group", "open", "on_first_completion", "on_first_start"];
/** Fields that stand elsewhere in the inspector; any other stands under More. */
const ELSEWHERE = new Set([...TAKEN, ...FAN, "id", "from", "to", "foreach", "synchronization"]);

export function TransitionInspector({ root, edge }: { root: Schema; edge: FlowEdge }) {
  const { draft, select, fixed } = useEditing();
  const { flow } = useShown();
  const path: Path = ["transitions", edge.index];
  const known = new Map(fieldsOf(root, plain(root, root.$defs?.["Transition"])).map((field) => [field.name, field]));
  const spelled = (name: string, other: string) => (edge.value[other] === undefined ? name : other);
  const show = (names: readonly string[]) =>
    names.flatMap((name) => {
      const field = known.get(name);
      if (field === undefined) return [];
      if (name === "condition") return [<Field key={name} field={{ ...field, form: "text", help: "A CEL expression, such as state.score >= 80. Empty: always." }} path={[...path, name]} value={conditionText(edge.value[name])} />];
      if (name === "priority") return [<Field key={name} field={field} label="Tier" path={[...path, name]} value={edge.value[name]} />];
      return [<Field key={name} field={field} path={[...path, name]} value={edge.value[name]} />];
    });
  const part = (name: string, title: string, def: string, begin: unknown, about: string) => (
    <section key={name}>
      <Part isSection root={root} schema={plain(root, root.$defs?.[def])} title={title} help={about} path={[...path, name]} value={edge.value[name]} begin={begin} />
    </section>
  );
  const end = (name: string, label: string) => (
    <label className="field ed-field">
      <span className="ed-field-label">{label}</span>
      <select className="select input-sm" disabled={fixed} value={name === "from" ? edge.source : edge.target} onChange={(event) => draft.edit(`redirect ${edge.id}`, (text) => setIn(text, [...path, spelled(name, `${name}_node_id`)], event.target.value))}>
        {flow.nodes.map((node) => <option key={node.ref}>{node.ref}</option>)}
      </select>
    </label>
  );
  const group = flow.edges.find((one) => one.look === "fan")?.id ?? edge.source;
  return (
    <>
      <header className="ed-insp-head">
        <span className="ed-tile"><Icon name="connect" /></span>
        <h2 className="clip">{edge.source} → {edge.target}</h2>
        {!fixed && <Button kind="ghost" size="sm" className="push" onClick={() => { removeEdge(draft, edge.id); select(null); }}>Delete</Button>}
      </header>
      <div className="ed-insp-body">
        <section>
          <h3>Transition</h3>
          <div className="ed-two">{end("from", "From")}{end("to", "To")}</div>
          <div className="field ed-field">
            <span className="ed-field-label">Id</span>
            <KeyInput name={String(edge.value["id"] ?? "")} fixed={fixed} label="Id of the transition" onName={(id) => { draft.edit(`name ${edge.id}`, (text) => setField(text, [...path, "id"], id)); select({ edge: id === "" ? `${edge.source}->${edge.target}` : id }); }} />
            <span className="hint">{known.get("id")?.help}</span>
          </div>
        </section>
        <section>
          <h3>When it is taken</h3>
          {show(TAKEN)}
          {conditionText(edge.value["condition"]) !== "" && <Tester condition={edge.value["condition"]} />}
        </section>
        {part("foreach", "For each item", "Foreach", { collection: "state.items", item_var: "item" }, "One token per item of a list.")}
        <section>
          <h3>Fan-out</h3>
          {show(FAN)}
        </section>
        {part(spelled("synchronization", "join"), "Join", "Synchronization", { sibling_group: group, strategy: "all" }, "Waits for the branches of a group before the target runs.")}
        <section>
          <h3>More</h3>
          <Fields root={root} fields={[...known.values()].filter((field) => !ELSEWHERE.has(field.name))} path={path} value={edge.value} />
        </section>
      </div>
    </>
  );
}
