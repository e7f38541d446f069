import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { graphDiff, lineCounts, lineDiff } from "@/model/definition-diff";
import { definitionText } from "@/model/definition-text";
import { readFlow } from "@/model/flow";
import { addNode, connect, deleteEdge, deleteNode, freeRef, renameNode, setField } from "@/model/flow-edit";
import { DEPTH, Undo } from "@/model/undo";
import { deleteIn, setIn } from "@/model/yaml-edit";

const EXAMPLES = ["panel", "approval", "order", "lead", "judges", "onboarding", "write_verify", "account"].map((name) => readFileSync(`../examples/${name}.yaml`, "utf8"));
const PANEL = EXAMPLES[0] as string;
const touched = (before: string, after: string) => lineCounts(lineDiff(before, after));
const comments = (text: string) => text.split("\n").flatMap((line) => /(^|\s)#.*$/.exec(line)?.[0].trim() ?? []);

describe("an edit of the graph", () => {
  it("adds a node as lines of its own", () => {
    for (const text of EXAMPLES) {
      const edited = addNode(text, "later", { action: { kind: "wait", ms: 1000 } });
      expect(touched(text, edited)).toEqual({ added: 1, removed: 0 });
      expect(parse(edited).nodes.later).toEqual({ action: { kind: "wait", ms: 1000 } });
    }
  });

  it("adds the first node of a new workflow", () => {
    const text = addNode(addNode("workflow: mine\n\nnodes: {}\n", "a", {}), "b", {}, "a");
    expect(text).toContain("\nnodes:\n  a: {}\n  b: {}\n");
    expect(parse(text)).toEqual({ workflow: "mine", nodes: { a: {}, b: {} }, transitions: [{ from: "a", to: "b" }] });
  });

  it("adds a transition as one line, and a second one between the same nodes with an id", () => {
    for (const text of EXAMPLES) {
      const refs = Object.keys(parse(text).nodes);
      const [first, last] = [refs[0] as string, refs.at(-1) as string];
      const once = connect(text, last, first);
      expect(touched(text, once)).toEqual({ added: parse(text).transitions === undefined ? 2 : 1, removed: 0 });
      expect(parse(connect(once, last, first)).transitions.at(-1)).toEqual({ id: `${last}->${first}#2`, from: last, to: first });
    }
  });

  it("keeps every comment, whatever is changed", () => {
    for (const text of EXAMPLES) {
      const [first] = Object.keys(parse(text).nodes) as [string];
      for (const edited of [renameNode(text, first, "renamed"), setField(text, ["nodes", first, "timeout_ms"], 5000), connect(text, first, first)]) expect(comments(edited)).toEqual(comments(text));
    }
  });

  it("renames a node where it stands and where it is named", () => {
    const edited = renameNode(PANEL, "judge", "juror");
    expect(touched(PANEL, edited)).toEqual({ added: 3, removed: 3 });
    expect(readFlow(edited).flow?.edges.map((edge) => [edge.source, edge.target])).toContainEqual(["juror", "verdict"]);
    expect(parse(renameNode(PANEL, "brief", "begin")).start).toBe("begin");
  });

  it("does not rename over another node", () => {
    expect(renameNode(PANEL, "judge", "verdict")).toBe(PANEL);
  });

  it("removes a node with its transitions", () => {
    const edited = deleteNode(PANEL, "verdict");
    const value = parse(edited);
    expect(Object.keys(value.nodes)).not.toContain("verdict");
    expect(value.transitions).toHaveLength(1);
    expect(edited).toContain("# Reading takes its time");
  });

  it("removes the last transition and the last node", () => {
    expect(parse(deleteEdge("nodes: {a: {}}\ntransitions:\n  - {from: a, to: a}\n", 0))).toEqual({ nodes: { a: {} } });
    expect(parse(deleteNode("workflow: x\nnodes:\n  a: {}\n", "a"))).toEqual({ workflow: "x", nodes: {} });
  });

  it("finds a name that is free", () => {
    expect(freeRef(PANEL, "judge")).toBe("judge_2");
    expect(freeRef(PANEL, "other")).toBe("other");
  });
});

describe("a field", () => {
  it("is set, changed and removed on its own line", () => {
    const text = "nodes:\n  a:\n    action: {kind: wait, ms: 5} # short\n    # about the rest\n  b: {}\n";
    const set = setIn(text, ["nodes", "a", "retry", "max_attempts"], 3);
    expect(set).toBe("nodes:\n  a:\n    action: {kind: wait, ms: 5} # short\n    retry: {max_attempts: 3}\n    # about the rest\n  b: {}\n");
    expect(setIn(text, ["nodes", "a", "action", "ms"], 7)).toBe(text.replace("ms: 5", "ms: 7"));
    expect(deleteIn(set, ["nodes", "a", "retry", "max_attempts"])).toBe(text);
    expect(setIn(text, ["nodes", "b", "timeout_ms"], 9)).toBe(text.replace("b: {}", "b: {timeout_ms: 9}"));
  });

  it("is set in a transition of either form", () => {
    const text = "transitions:\n  - {from: a, to: b}\n  - from: a # why\n    to: c\n";
    expect(setField(text, ["transitions", 0, "priority"], 2)).toBe(text.replace("to: b}", "to: b, priority: 2}"));
    expect(setField(text, ["transitions", 1, "priority"], 2)).toBe("transitions:\n  - {from: a, to: b}\n  - from: a # why\n    to: c\n    priority: 2\n");
    expect(deleteIn(text, ["transitions", 0])).toBe("transitions:\n  - from: a # why\n    to: c\n");
  });

  it("holds texts of several lines and awkward texts", () => {
    for (const value of ["two\nlines\n", "a: b # c", "- x", "{{ y }}", "true", "", "ünï → 🧵"]) {
      for (const text of ["nodes:\n  a: {action: {kind: template}}\n", "nodes:\n  a:\n    action:\n      kind: template\n      template: old\n  b: {}\n"]) {
        expect(parse(setIn(text, ["nodes", "a", "action", "template"], value)).nodes.a.action.template).toBe(value);
      }
    }
  });
});

it("an empty text and a broken one are told apart", () => {
  expect(readFlow("").flow?.nodes).toEqual([]);
  expect(readFlow("a: [").broken?.line).toBe(1);
});

it("a definition is written in its short form, and means the same", () => {
  const text = definitionText({ workflow: "w", start: ["a"], nodes: { a: { task: { steps: [{ ref: "main", action: { kind: "wait", ms: 5 } }] } } }, transitions: [{ id: "a->a", from: "a", to: "a", condition: { type: "cel", expr: "state.x > 1" } }] });
  expect(text).toBe("workflow: w\nstart: a\n\nnodes:\n  a: {action: {kind: wait, ms: 5}}\n\ntransitions:\n  - {from: a, to: a, condition: state.x > 1}\n");
});

it("a difference names nodes, transitions and fields", () => {
  const edited = setField(connect(addNode(PANEL, "new", {}), "publish", "new"), ["nodes", "judge", "timeout_ms"], 5);
  const diff = graphDiff(PANEL, edited);
  expect(diff.nodes).toEqual({ added: ["new"], removed: [], changed: [{ ref: "judge", fields: ["timeout_ms"] }] });
  expect(diff.transitions.added).toEqual(["publish->new"]);
  expect(diff.settings).toEqual([]);
});

it("undo goes back 200 steps, and typing is one of them", () => {
  const undo = new Undo<number>();
  for (let at = 0; at < DEPTH + 50; at++) undo.note(at, "step");
  undo.note(900, "type", true, 1_000);
  undo.note(901, "type", true, 1_100);
  let steps = 0;
  let value: number | undefined = 902;
  while ((value = undo.undo(value)) !== undefined) {
    if (steps === 0) expect(value).toBe(900);
    steps += 1;
  }
  expect(steps).toBe(DEPTH);
  expect(undo.names.undo).toBeNull();
});
