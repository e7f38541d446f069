// A definition as the service keeps it, written as a person would write it: short forms, no lists of one.
import { Document, isMap, visit } from "yaml";

type Values = Record<string, unknown>;
const isValues = (value: unknown): value is Values => value !== null && typeof value === "object" && !Array.isArray(value);

const WIDTH = 100;

/** `{type: cel, expr}` is the text itself. */
function condition(value: unknown): unknown {
  return isValues(value) && value["type"] === "cel" && typeof value["expr"] === "string" && Object.keys(value).length === 2 ? value["expr"] : value;
}

function tidy(value: unknown, key = ""): unknown {
  if (key === "condition" || key === "when") return condition(value);
  if (Array.isArray(value)) return value.map((one) => tidy(one));
  if (!isValues(value)) return value;
  if (key === "literal" || key === "values" || key === "output" || key === "form" || key === "input_schema") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, tidy(one, name)]));
}

/** A task of one unnamed step is an action; one of several is `steps`. */
function shortTask(node: unknown): unknown {
  if (!isValues(node) || !isValues(node["task"])) return node;
  const { task, ...rest } = node as { task: Values };
  const steps = task["steps"];
  if (Object.keys(task).length !== 1 || !Array.isArray(steps)) return node;
  const only = steps[0] as Values;
  if (steps.length === 1 && only["ref"] === "main" && Object.keys(only).length === 2) return { action: only["action"], ...rest };
  return { steps, ...rest };
}

/** The text of a definition. */
export function definitionText(definition: unknown): string {
  const value = tidy(definition) as Values;
  const { canvas: _canvas, nodes, start, ...rest } = value;
  const first: Values = { ...rest };
  const ordered: Values = {};
  for (const [key, one] of Object.entries(first)) if (key !== "transitions") ordered[key] = one;
  if (start !== undefined) ordered["start"] = Array.isArray(start) && start.length === 1 ? start[0] : start;
  ordered["nodes"] = isValues(nodes) ? Object.fromEntries(Object.entries(nodes).map(([ref, node]) => [ref, shortTask(node)])) : {};
  if (rest["transitions"] !== undefined) ordered["transitions"] = (rest["transitions"] as unknown[]).map(shortEdge);
  return render(ordered);
}

const shortEdge = (edge: unknown): unknown => {
  if (!isValues(edge) || edge["id"] !== `${String(edge["from"])}->${String(edge["to"])}`) return edge;
  const { id: _id, ...rest } = edge;
  return rest;
};

function render(value: Values): string {
  const document = new Document(value);
  visit(document, {
    Collection(_key, node, path) {
      const indent = path.filter(isMap).length * 2;
      const single = new Document(node.toJSON());
      visit(single, { Collection: (_at, inner) => void (inner.flow = true) });
      const owner = path.length === 3 ? String((path[2] as { key?: unknown }).key) : "";
      node.flow = path.length > 1 && owner !== "nodes" && owner !== "transitions" && single.toString({ lineWidth: 0, flowCollectionPadding: false }).length + indent < WIDTH;
    },
  });
  for (const key of ["nodes", "transitions"]) {
    const pair = isMap(document.contents) ? document.contents.items.find((one) => String(one.key) === key) : undefined;
    if (pair !== undefined && pair.key !== null && typeof pair.key === "object") (pair.key as { spaceBefore?: boolean }).spaceBefore = true;
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}
