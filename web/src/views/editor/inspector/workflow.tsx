// The workflow itself: its name, where it starts, its bounds.
import { Icon } from "@/ui/icon";
import { useShown } from "../context";
import { fieldsOf, plain, type Schema } from "../schema";
import { Field } from "./field";
import { Fields } from "./parts";

const FIRST = ["workflow", "description", "start", "output", "input_schema"];
/** Fields that are drawn, not filled in. */
const DRAWN = new Set(["nodes", "transitions", "canvas"]);

export function WorkflowInspector({ root }: { root: Schema }) {
  const { flow, base } = useShown();
  const known = new Map(fieldsOf(root, plain(root, root.$defs?.["Workflow"])).map((field) => [field.name, field]));
  const show = (names: readonly string[]) =>
    names.flatMap((name) => {
      const field = known.get(name);
      return field === undefined ? [] : [<Field key={name} field={field} label={name === "workflow" ? "Name" : undefined as never} path={[name]} value={flow.value[name]} />];
    });
  return (
    <>
      <header className="ed-insp-head">
        <span className="ed-tile"><Icon name="editor" /></span>
        <h2 className="clip">{flow.name || "Workflow"}</h2>
        <span className="c2 t1">{base.version === 0 ? "new" : `v${base.version}`}</span>
      </header>
      <div className="ed-insp-body">
        <section>
          <h3>Workflow<span className="ed-h-help">{flow.nodes.length} nodes, {flow.edges.length} transitions</span></h3>
          {show(FIRST)}
        </section>
        <section>
          <h3>Bounds and more</h3>
          <Fields root={root} fields={[...known.values()].filter((field) => !FIRST.includes(field.name) && !DRAWN.has(field.name))} path={[]} value={flow.value} />
        </section>
      </div>
    </>
  );
}
