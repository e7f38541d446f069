// The inspector: everything about the selected node, transition, or the workflow itself.
import { useAsk } from "@/ui/ask";
import { Loading, Trouble } from "@/ui/parts";
import { useEditing, useShown } from "../context";
import { loadSchema } from "../schema";
import { MarkInspector } from "./mark";
import { NodeInspector } from "./node";
import { TransitionInspector } from "./transition";
import { WorkflowInspector } from "./workflow";

export function Inspector() {
  const { selection } = useEditing();
  const { flow, marks, broken } = useShown();
  const schema = useAsk("schema", loadSchema);
  const node = selection !== null && "node" in selection ? flow.nodes.find((one) => one.ref === selection.node) : undefined;
  const mark = selection !== null && "mark" in selection ? marks.find((one) => one.id === selection.mark) : undefined;
  const edge = selection !== null && "edge" in selection ? flow.edges.find((one) => one.id === selection.edge) : undefined;
  return (
    <aside className="ed-insp" aria-label={node !== undefined ? `Inspector of ${node.ref}` : edge !== undefined ? `Inspector of ${edge.id}` : mark !== undefined ? `Inspector of ${mark.kind}` : "Inspector of the workflow"}>
      {schema.error !== undefined && <Trouble error={schema.error} onRetry={schema.again} />}
      {schema.data === undefined && schema.error === undefined && <Loading what="the language" />}
      {broken !== null && <p className="note" data-tone="wait">The text cannot be read at line {broken.line}. Put it right there first.</p>}
      {schema.data !== undefined && broken === null && (node !== undefined ? <NodeInspector key={node.ref} root={schema.data} node={node} /> : edge !== undefined ? <TransitionInspector key={edge.id} root={schema.data} edge={edge} /> : mark !== undefined ? <MarkInspector key={mark.id} mark={mark} /> : <WorkflowInspector root={schema.data} />)}
    </aside>
  );
}
