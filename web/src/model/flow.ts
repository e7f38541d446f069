// The graph of a definition, read from its text: nodes, transitions, the words on them, and the lines they stand on.
import { isMap, isPair, isScalar, isSeq, LineCounter, parseDocument, type Document, type Node, type Pair } from "yaml";
import { duration } from "./time";

export interface FlowNode {
  readonly ref: string;
  /** The kind of its only action, "steps" for several, "pass" for none. */
  readonly kind: string;
  readonly words: string;
  readonly lines: readonly [number, number];
  readonly start: boolean;
  readonly value: Record<string, unknown>;
}

export interface FlowEdge {
  readonly id: string;
  /** Its place in the list of transitions. */
  readonly index: number;
  readonly source: string;
  readonly target: string;
  readonly on: string;
  readonly tier: number;
  readonly label: string;
  readonly look: "plain" | "fan" | "join" | "fail" | "loop" | "trigger";
  readonly sub: string;
  readonly lines: readonly [number, number];
  readonly value: Record<string, unknown>;
}

export interface Flow {
  readonly name: string;
  readonly nodes: readonly FlowNode[];
  readonly edges: readonly FlowEdge[];
  readonly value: Record<string, unknown>;
}

export interface Read {
  readonly flow: Flow | null;
  /** Why the text cannot be read, and at which line. */
  readonly broken: { message: string; line: number } | null;
}

type Values = Record<string, unknown>;
const isValues = (value: unknown): value is Values => value !== null && typeof value === "object" && !Array.isArray(value);
const text = (value: unknown): string => (typeof value === "string" ? value : value == null ? "" : JSON.stringify(value));

let last: { text: string; read: Read } | null = null;

/** The graph that a text describes. The newest answer is kept: many parts ask for the same text. */
export function readFlow(source: string): Read {
  if (last?.text === source) return last.read;
  const read = readAnew(source);
  last = { text: source, read };
  return read;
}

function readAnew(source: string): Read {
  const counter = new LineCounter();
  const document = parseDocument(source, { lineCounter: counter });
  const error = document.errors[0];
  if (error !== undefined) return { flow: null, broken: { message: error.message.split("\n")[0] ?? "", line: counter.linePos(error.pos[0]).line } };
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (problem) {
    return { flow: null, broken: { message: (problem as Error).message, line: 1 } };
  }
  if (value === null) return { flow: { name: "", nodes: [], edges: [], value: {} }, broken: null };
  if (!isValues(value)) return { flow: null, broken: { message: "a definition is a mapping of keys to values", line: 1 } };
  const lines = (node: Node | null | undefined, key?: Node): [number, number] => {
    const from = key?.range?.[0] ?? node?.range?.[0] ?? 0;
    const to = Math.max(from, (node?.range?.[1] ?? key?.range?.[1] ?? from) - 1);
    return [counter.linePos(from).line, counter.linePos(to).line];
  };
  return { flow: { name: text(value["workflow"] ?? value["name"]), nodes: nodesOf(document, value, lines), edges: edgesOf(document, value, lines), value }, broken: null };
}

type Lines = (node: Node | null | undefined, key?: Node) => [number, number];

function nodesOf(document: Document, value: Values, lines: Lines): FlowNode[] {
  const map = document.get("nodes", true);
  const values = isValues(value["nodes"]) ? value["nodes"] : {};
  const start = new Set([value["start"] ?? value["initial_node_id"] ?? []].flat());
  if (!isMap(map)) return [];
  const entered = new Set(edgeValues(value).map((edge) => text(edge["to"] ?? edge["to_node_id"])));
  return map.items.flatMap((pair) => {
    if (!isPair(pair) || !isScalar(pair.key)) return [];
    const ref = String(pair.key.value);
    const node = isValues(values[ref]) ? (values[ref] as Values) : {};
    return [{ ref, ...kindOf(node, value), lines: lines((pair as Pair<Node, Node | null>).value, pair.key as Node), start: start.size > 0 ? start.has(ref) : !entered.has(ref), value: node }];
  });
}

const edgeValues = (value: Values): Values[] => (Array.isArray(value["transitions"]) ? (value["transitions"] as unknown[]).map((one) => (isValues(one) ? one : {})) : []);

/** The single action of a node, and the path to it in the node; null for none or several. */
export function actionOf(node: Values): { action: Values; path: (string | number)[] } | null {
  if (isValues(node["action"])) return { action: node["action"], path: ["action"] };
  for (const [path, steps] of [[["steps"], node["steps"]], [["task", "steps"], isValues(node["task"]) ? node["task"]["steps"] : undefined]] as const) {
    if (Array.isArray(steps) && steps.length === 1 && isValues(steps[0]) && isValues(steps[0]["action"])) return { action: steps[0]["action"], path: [...path, 0, "action"] };
  }
  return null;
}

const WORDS: Record<string, (action: Values) => string> = {
  python: (action) => text(action["function"]),
  http: (action) => `${text(action["method"]) || "GET"} ${text(action["url"]).replace(/^https?:\/\/[^/]+/, "")}`,
  llm: (action) => ["model", text(action["profile"] ?? action["model"])].filter(Boolean).join(" · "),
  human: (action) => text(action["title"]) || "a person",
  wait: (action) => (typeof action["ms"] === "number" ? duration(action["ms"]) : text(action["until"] ?? action["ms"])),
  signal: (action) => text(action["name"]),
  workflow_call: (action) => text(action["workflow"]),
  work: (action) => text(action["name"]),
  mcp: (action) => text(action["tool"]),
  emit: (action) => text(action["type"]),
  template: () => "text template",
  set: (action) => (isValues(action["values"]) ? Object.keys(action["values"]).join(", ") : ""),
};

function kindOf(node: Values, whole: Values): { kind: string; words: string } {
  const found = actionOf(node)?.action ?? named(node, whole);
  if (found !== null) {
    const kind = text(found["kind"]);
    return { kind, words: WORDS[kind]?.(found) || kind.replaceAll("_", " ") };
  }
  const steps = node["steps"] ?? (isValues(node["task"]) ? node["task"]["steps"] : undefined);
  if (Array.isArray(steps)) return { kind: "steps", words: `${steps.length} steps` };
  if (typeof node["task"] === "string") return { kind: "steps", words: node["task"] };
  return { kind: "pass", words: "passes through" };
}

function named(node: Values, whole: Values): Values | null {
  const actions = whole["actions"];
  const name = node["action"];
  return typeof name === "string" && isValues(actions) && isValues(actions[name]) ? (actions[name] as Values) : null;
}

function edgesOf(document: Document, value: Values, lines: Lines): FlowEdge[] {
  const list = document.get("transitions", true);
  const all = edgeValues(value);
  return all.map((edge, index) => {
    const [source, target] = [text(edge["from"] ?? edge["from_node_id"]), text(edge["to"] ?? edge["to_node_id"])];
    const tiers = new Set(all.filter((one) => text(one["from"] ?? one["from_node_id"]) === source && (one["on"] ?? "success") === (edge["on"] ?? "success")).map((one) => Number(one["priority"] ?? 1)));
    const item = isSeq(list) ? (list.items[index] as Node) : null;
    return { id: text(edge["id"]) || `${source}->${target}`, index, source, target, on: text(edge["on"]) || "success", tier: tiers.size > 1 ? Number(edge["priority"] ?? 1) : 0, ...words(edge), lines: lines(item), value: edge };
  });
}

/** A condition as a person wrote it. */
export function conditionText(condition: unknown): string {
  if (typeof condition === "string") return condition;
  if (condition === undefined || condition === null || condition === true) return "";
  if (isValues(condition)) return text(condition["expr"] ?? condition["cel"]) && !isValues(condition["expr"]) ? text(condition["expr"] ?? condition["cel"]) : JSON.stringify(condition);
  return String(condition);
}

function words(edge: Values): { label: string; look: FlowEdge["look"]; sub: string } {
  const condition = conditionText(edge["condition"]);
  const join = edge["synchronization"] ?? edge["join"];
  const [each, loop, trigger, count] = [edge["foreach"], edge["loop"] ?? edge["loop_config"], edge["trigger"], edge["spawn_count"]];
  const sub = condition.length > 22 ? `${condition.slice(0, 21)}…` : condition;
  if (isValues(join)) return { label: strategyText(join), look: "join", sub: typeof join["timeout_ms"] === "number" ? `${duration(join["timeout_ms"])} at most` : "" };
  if (isValues(each)) return { label: `each ${text(each["item_var"]) || (text(each["collection"]).split(".").at(-1) ?? "")}`, look: "fan", sub };
  if (count !== undefined && count !== 1) return { label: `× ${typeof count === "number" ? count : "n"}`, look: "fan", sub };
  if (isValues(trigger)) return { label: triggerText(trigger), look: "trigger", sub };
  if (isValues(loop)) return { label: `${sub}${sub === "" ? "" : " · "}${text(loop["max_iterations"])} at most`, look: "loop", sub: "" };
  if (edge["on"] === "failure") return { label: sub === "" ? "on failure" : `failed: ${sub}`, look: "fail", sub: "" };
  return { label: edge["on"] === "always" ? `always ${sub}`.trim() : sub, look: "plain", sub: "" };
}

export function strategyText(join: Values): string {
  const strategy = join["strategy"];
  if (isValues(strategy)) return strategy["m_of_n"] !== undefined ? `${text(strategy["m_of_n"])} arrived` : strategy["percent"] !== undefined ? `${text(strategy["percent"])} %` : "by rule";
  return strategy === "any" ? "first" : "all";
}

const triggerText = (trigger: Values): string =>
  trigger["signal"] !== undefined ? `on ${text(trigger["signal"])}` : typeof trigger["after_ms"] === "number" ? `after ${duration(trigger["after_ms"])}` : `when ${conditionText(trigger["when"])}`;
