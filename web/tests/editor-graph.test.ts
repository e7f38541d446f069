import { describe, expect, it } from "vitest";
import schema from "../../src/treadle/language/treadle.schema.json";
import { union } from "@/model/definition-diff";
import { drawingOf, freeMark, marksOf, placesOf, type Mark } from "@/model/drawing";
import { readFlow, type Flow } from "@/model/flow";
import { folded, ROW } from "@/model/folded";
import { bandsOf, groupsOf } from "@/model/groups";
import { merged } from "@/model/merge";
import { expectOf, kindOf, stepOf, waitsOf, withStep } from "@/model/next-step";
import { svgOf, type Colours } from "@/model/picture";
import { ACTIONS } from "@/model/palette";
import { routes } from "@/model/route";
import { DEPTH, Undo } from "@/model/undo";
import { actionSchema, fieldsOf, plain, type Schema } from "@/views/editor/schema";

const flowOf = (text: string): Flow => readFlow(text).flow as Flow;
const PANEL = `workflow: panel
nodes: {ask: {}, judge: {}, check: {}, decide: {}, alarm: {}}
transitions:
  - {from: ask, to: judge, spawn_count: 3, sibling_group: jurors}
  - {from: judge, to: check}
  - {from: judge, to: alarm, on: failure}
  - {from: check, to: decide, synchronization: {sibling_group: jurors, strategy: all}}
`;
const place = (x: number, y: number) => ({ x, y, width: 160, height: 60 });

describe("drawings", () => {
  const canvas = {
    nodes: { a: { position: { x: 10, y: 20 }, parentId: "s" }, b: { position: { x: 5, y: 5 } } },
    sections: [{ id: "s", type: "section", position: { x: 100, y: 200 }, style: { width: 300, height: 90 }, data: { label: "Sales", color: "red" } }, { id: "pin", type: "asset" }],
    viewport: { zoom: 2 },
  };
  it("name the nodes that stand in a section, and keep those that it named from elsewhere", () => {
    const marks: Mark[] = [{ id: "s", kind: "section", x: 0, y: 0, width: 300, height: 200, text: "Sales" }];
    const nodesOf = (before: unknown, places: Record<string, { x: number; y: number }>) => (drawingOf(before, places, marks, "")["sections"] as { nodes: string[] }[])[0]!.nodes;
    const first = drawingOf({}, { in: { x: 40, y: 40 }, out: { x: 400, y: 40 } }, marks, "");
    expect((first["sections"] as { nodes: string[] }[])[0]!.nodes).toEqual(["in"]);
    expect(nodesOf(first, { in: { x: 400, y: 90 }, out: { x: 40, y: 40 } })).toEqual(["out"]);
    expect(nodesOf({ ...first, sections: [{ ...(first["sections"] as object[])[0], nodes: ["in", "out"] }] }, { in: { x: 40, y: 40 }, out: { x: 400, y: 40 } })).toEqual(["in", "out"]);
  });
  it("count from a section's corner for the nodes that stand in it, and write it back that way", () => {
    expect(placesOf(canvas)).toEqual({ a: { x: 110, y: 220 }, b: { x: 5, y: 5 } });
    const marks = marksOf(canvas);
    expect(marks).toEqual([{ id: "s", kind: "section", x: 100, y: 200, width: 300, height: 90, text: "Sales" }]);
    const moved = drawingOf(canvas, placesOf(canvas), [{ ...(marks[0] as Mark), x: 90 }], "t");
    expect(placesOf(moved)).toEqual(placesOf(canvas));
    expect(marksOf(moved)[0]?.x).toBe(90);
    expect(moved["viewport"]).toEqual({ zoom: 2 });
    expect(moved["sections"]).toEqual([{ id: "pin", type: "asset" }, expect.objectContaining({ data: { label: "Sales", color: "red" } })]);
  });
  it("keep notes, and lose them when they are deleted", () => {
    const note: Mark = { id: freeMark([], "note"), kind: "note", x: 1, y: 2, width: 200, height: 72, text: "why" };
    const drawn = drawingOf(null, {}, [note], "t");
    expect(marksOf(drawn)).toEqual([note]);
    expect(marksOf(drawingOf(drawn, {}, [], "t"))).toEqual([]);
    expect(freeMark([note], "note")).toBe("note-2");
  });
});

describe("groups", () => {
  it("hold the nodes between the fan-out and the join, and not the way of a failure", () => {
    expect(groupsOf(flowOf(PANEL))).toEqual([{ name: "jurors", members: ["judge", "check"], count: "×3" }]);
  });
  it("have a band around their nodes, with room for one within it", () => {
    const places = new Map([["a", place(0, 0)], ["b", place(300, 0)]]);
    const [outer, inner] = bandsOf([{ name: "outer", members: ["a", "b"], count: "" }, { name: "inner", members: ["b"], count: "" }], places);
    expect(outer!.x).toBeLessThan(0);
    expect(outer!.x + outer!.width).toBeGreaterThan(inner!.x + inner!.width);
    expect(outer!.y).toBeLessThan(inner!.y);
  });
});

describe("lines", () => {
  const places = new Map([["a", place(0, 0)], ["b", place(400, 0)], ["c", place(0, 200)]]);
  it("begin at a node and end before the next, and labels cover neither nodes nor one another", () => {
    const found = routes([{ id: "1", source: "a", target: "b", label: 90 }, { id: "2", source: "a", target: "b", label: 90 }, { id: "3", source: "b", target: "c", label: 60 }], places);
    expect(found.get("1")?.path).toMatch(/^M160 30C/);
    expect(found.get("3")?.path).toMatch(/L80 195$/);
    expect(found.get("3")?.start).toBeNull();
    const [first, second] = [found.get("1")!.label, found.get("2")!.label];
    expect(Math.abs(first[0] - second[0]) >= 90 || Math.abs(first[1] - second[1]) >= 24).toBe(true);
  });
  it("to another row go above a neighbour of the target that stands higher than it", () => {
    const rows = new Map([["from", place(800, 0)], ["to", place(0, 200)], ["higher", place(360, 150)]]);
    const path = routes([{ id: "1", source: "from", target: "to", label: 0 }], rows).get("1")!.path;
    const gutter = Number(/Q[\d.]+ ([\d.]+)/.exec(path)![1]); // the first corner
    expect(gutter).toBeLessThan(150);
    expect(gutter).toBeGreaterThan(60);
  });
  it("are left out where a node is missing", () => {
    expect(routes([{ id: "1", source: "a", target: "gone", label: 0 }], places).size).toBe(0);
  });
});

it("a long layout is folded into rows that keep groups whole", () => {
  const nodes = Array.from({ length: 12 }, (_, at) => ({ id: `n${at}`, width: 160, height: 60 }));
  const edges = nodes.slice(1).map((node, at) => ({ id: `${at}`, source: `n${at}`, target: node.id }));
  const long = Object.fromEntries(nodes.map((node, at) => [node.id, { x: at * 260, y: 0 }]));
  const rows = folded(nodes, edges, long, [["n3", "n4"]]);
  expect(Math.max(...Object.values(rows).map(({ x }) => x + 160))).toBeLessThanOrEqual(ROW);
  expect(new Set(Object.values(rows).map(({ y }) => y)).size).toBeGreaterThan(2);
  expect(rows["n3"]!.y).toBe(rows["n4"]!.y);
  expect(folded(nodes.slice(0, 3), edges.slice(0, 2), long)).toBe(long);
});

describe("two people's changes", () => {
  const base = "workflow: w\nnodes:\n  a: {}\n  b: {}\ntransitions:\n  - {from: a, to: b}\n";
  it("are taken together, with the other's comments", () => {
    const theirs = "workflow: w\nnodes:\n  a: {} # theirs\n  b: {}\n  c: {}\ntransitions:\n  - {from: a, to: b}\n  - {from: b, to: c}\n";
    const mine = base.replace("  b: {}", "  b: {timeout_ms: 5}").replace("{from: a, to: b}", "{from: a, to: b, condition: state.x}");
    const { text, conflicts } = merged(base, mine, theirs);
    expect(conflicts).toEqual([]);
    const flow = flowOf(text);
    expect(text).toContain("# theirs");
    expect(flow.nodes.map((node) => node.ref)).toEqual(["a", "b", "c"]);
    expect(flow.nodes[1]?.value).toEqual({ timeout_ms: 5 });
    expect(flow.edges.map((edge) => edge.label)).toEqual(["state.x", ""]);
  });
  it("are named where both changed the same, and mine stands", () => {
    const { text, conflicts } = merged(base, base.replace("b: {}", "b: {timeout_ms: 1}"), base.replace("b: {}", "b: {timeout_ms: 2}"));
    expect(conflicts).toEqual(["node b"]);
    expect(text).toContain("timeout_ms: 1");
  });
  it("take away what I deleted", () => {
    const mine = "workflow: w\nnodes:\n  a: {}\n";
    expect(flowOf(merged(base, mine, base).text).nodes.map((node) => node.ref)).toEqual(["a"]);
  });
});

it("a union says what became of each part", () => {
  const { flow, nodes, edges } = union("workflow: w\nnodes: {a: {}, b: {}}\ntransitions: [{from: a, to: b}]\n", "workflow: w\nnodes: {a: {timeout_ms: 1}, c: {}}\ntransitions: [{from: a, to: c}]\n");
  expect(flow.nodes.map((node) => node.ref)).toEqual(["a", "c", "b"]);
  expect(Object.fromEntries(nodes)).toEqual({ c: "added", b: "removed", a: "changed" });
  expect([...edges.values()]).toEqual(["added", "removed"]);
});

it("a picture shows what people wrote as text, and nothing else", () => {
  const colours = new Proxy({}, { get: () => "#123456" }) as Colours;
  const flow = flowOf('workflow: "x"\nnodes: {"<script>alert(1)</script>": {}}\n');
  const marks: Mark[] = [{ id: "n", kind: "note", x: 0, y: 0, width: 200, height: 80, text: '"><img onerror=alert(1)>\u0001' }];
  const svg = svgOf({ flow, places: new Map([["<script>alert(1)</script>", place(0, 0)]]), wanted: [], marks, colours });
  const read = new DOMParser().parseFromString(svg, "image/svg+xml");
  expect(read.querySelector("script, img, parsererror")).toBeNull();
  expect(svg).toContain("&lt;script&gt;");
  expect(svg).not.toContain("\u0001");
});

describe("a simulation that waits", () => {
  const history = [
    { seq: 1, at: 0, type: "run.started" },
    { seq: 2, at: 0, type: "token.created", token: 1, node: "ask", path: "root/t[2]", frames: [{}] },
    { seq: 3, at: 0, type: "token.started", token: 1 },
    { seq: 4, at: 0, type: "token.waiting", token: 1, reason: "human" },
    { seq: 5, at: 0, type: "token.created", token: 2, node: "nap", path: "root", frames: [] },
    { seq: 6, at: 0, type: "token.waiting", token: 2, reason: "timer" },
    { seq: 7, at: 0, type: "token.resumed", token: 2 },
  ];
  it("says for whom, and what would go on", () => {
    const [wait, ...others] = waitsOf(history);
    expect(wait).toEqual({ node: "ask", address: "ask[2]", reason: "human", signal: null });
    expect(others).toEqual([]);
    expect(stepOf(kindOf(wait), wait, { fine: true })).toEqual({ gate: "ask[2]", data: { fine: true } });
    expect(withStep(null, 300, { settle: true })).toEqual([{ advance_ms: 300 }, { settle: true }]);
    expect(withStep([{ a: 1 }], 300, { settle: true })).toEqual([{ a: 1 }, { settle: true }]);
  });
  it("expects what happened", () => {
    expect(expectOf(history, { status: "running", output: null, error: null })).toEqual({ status: "running", visits: { ask: 1 } });
  });
});

describe("the language in the inspector", () => {
  const root = schema as unknown as Schema;
  it("has words of help for every field of every part", () => {
    const silent = Object.entries(root.$defs ?? {}).filter(([name]) => name !== "CanvasGraph").flatMap(([name, one]) => fieldsOf(root, plain(root, one)).filter((field) => field.help.trim() === "").map((field) => `${name}.${field.name}`));
    expect(silent.filter((name) => !name.endsWith(".kind"))).toEqual([]);
  });
  it("knows the fields of every kind that the palette offers, and begins with those it needs", () => {
    for (const { kind, node } of ACTIONS) {
      const known = fieldsOf(root, actionSchema(root, kind)).map((field) => field.name);
      expect(Object.keys(node["action"] as object).filter((name) => !known.includes(name)), kind).toEqual([]);
    }
  });
});

it("undo is 200 deep, and one step more is gone", () => {
  const undo = new Undo<number>();
  for (let at = 0; at <= DEPTH; at++) undo.note(at, "edit");
  let value = DEPTH + 1;
  for (let back = undo.undo(value); back !== undefined; back = undo.undo(value)) value = back;
  expect(value).toBe(1);
  expect(DEPTH).toBe(200);
});
