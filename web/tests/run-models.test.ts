// The models behind the run page: scale of time, layout, differences, rows, edges, acts, summaries.
import { describe, expect, test } from "vitest";
import { cancelEffects, retryEffects } from "@/model/acts";
import { changesBetween } from "@/model/diff";
import { edgeSummary, edgeWhy, valuesRead, type EdgeGiven } from "@/model/edges";
import { Folding, viewOf, type Event } from "@/model/fold";
import { columns, edgePath, packLayout, ranksOf, shortKey, topologyKey, unpackLayout } from "@/model/layout";
import { densityOf, rowsOf } from "@/model/rows";
import { spentOf } from "@/model/run-look";
import { retryUndoEffects, skipUndoEffects, undoingOf, undoingWords } from "@/model/undoing";
import { neededOf, summarise } from "@/model/summary";
import { FOLD_PX, foldsOf, idleOf, ticksOf, timeScale } from "@/model/timescale";

type Given = Omit<Event, "seq">;
const history = (...events: Given[]): Event[] => events.map((event, index) => ({ ...event, seq: index + 1 }) as Event);
const fold = (...events: Given[]): Folding => {
  const folding = new Folding([[1, { meetings: [["transition:many", "gather", false]], edges: new Map() }]]);
  expect(folding.add(history(...events))).toBe(true);
  return folding;
};
const begin: Given = { at: 0, type: "run.started", run: "r", workflow: "w", version: 1, input: { limit: 5 } };
const made = (token: number, node: string, at: number, more: object = {}): Given => ({ at, type: "token.created", token, node, path: `root.${node}`, ...more });
const at = (type: string, token: number, when: number, more: object = {}): Given => ({ at: when, type, token, ...more });
const edge = (fields: Partial<EdgeGiven>): EdgeGiven => ({ id: "a->b", source: "a", target: "b", on: "success", condition: null, tier: 1, loop_max: null, replicates: false, triggered: false, back: false, words: [], ...fields });

const fanOut = (): Folding =>
  fold(
    begin, made(1, "begin", 0), at("token.started", 1, 0, { attempt: 1 }), at("token.completed", 1, 1),
    { at: 1, type: "group.opened", group: 1, names: ["transition:many"], origin: 1, node: "begin", path: "root.begin", frames: [], total: 3, transitions: ["many"], replicated: true },
    made(2, "work", 1, { frames: [[1, 0]], via: "many" }), made(3, "work", 1, { frames: [[1, 1]], via: "many" }),
    at("token.dispatched", 2, 1, { attempt: 1, input: {} }), at("token.started", 2, 4, { attempt: 1 }),
    at("join.arrived", 2, 14, { arrival: 1, target: "gather", via: "work->gather", path: "", frames: [[1, 0]], group: 1 }), at("token.waiting", 2, 14, { reason: "siblings" }),
    at("token.started", 3, 5, { attempt: 1 }), at("token.failed", 3, 20, { error: { kind: "BOOM", message: "no" }, fails: [1, 1] }),
  );

describe("a scale of time", () => {
  test("is linear but for folds, and goes back exactly", () => {
    const scale = timeScale(0, 110_000, 240, [[10_000, 100_000]]);
    expect(scale.x(0)).toBe(0);
    expect(scale.x(10_000)).toBe(100);
    expect(scale.x(100_000)).toBe(100 + FOLD_PX);
    expect(scale.x(110_000)).toBe(240);
    for (const instant of [0, 4_000, 55_000, 101_000]) expect(scale.at(scale.x(instant))).toBeCloseTo(instant, 6);
  });

  test("folds a month of waiting and leaves five seconds of work readable", () => {
    const month = 30 * 86_400_000;
    const folding = fold(begin, made(1, "a", 0), at("token.started", 1, 0, { attempt: 1 }), at("token.waiting", 1, 2_500, { reason: "timer" }), at("token.resumed", 1, month, {}), at("token.completed", 1, month + 2_500));
    const end = month + 2_500;
    const folds = foldsOf(idleOf(folding.events, folding.newest, 0, end), end);
    const scale = timeScale(0, end, 800, folds);
    expect(folds).toHaveLength(1);
    expect(scale.x(2_500)).toBeGreaterThan(300);
  });

  test("does not fold time in which something works", () => {
    const folding = fold(begin, made(1, "a", 0), at("token.started", 1, 0, { attempt: 1 }), at("token.completed", 1, 3_600_000));
    expect(idleOf(folding.events, folding.newest, 0, 3_600_000)).toEqual([]);
  });

  test("has no tick inside a fold", () => {
    const scale = timeScale(0, 110_000, 900, [[10_000, 100_000]]);
    expect(ticksOf(scale).every((tick) => tick <= 10_000 || tick >= 100_000)).toBe(true);
  });
});

describe("a layout", () => {
  const nodes = ["a", "b", "c"].map((id) => ({ id, width: 100, height: 50 }));
  const edges = [{ id: "1", source: "a", target: "b" }, { id: "2", source: "b", target: "c" }, { id: "3", source: "c", target: "a" }];

  test("ranks by the longest way, whatever leads back", () => {
    expect([...ranksOf(nodes, [...edges, { id: "4", source: "a", target: "c" }])]).toEqual([["a", 0], ["b", 1], ["c", 2]]);
  });

  test("is kept by topology alone", () => {
    expect(topologyKey(nodes, edges)).toBe(topologyKey([...nodes], [...edges]));
    expect(topologyKey(nodes, edges)).not.toBe(topologyKey(nodes, edges.slice(1)));
  });

  test("is the same after it was kept, and nothing else is taken for one", () => {
    const layout = { places: columns(nodes, edges).places, bends: new Map([["1", [[1.5, 2]] as const], ["2", []], ["3", [[3, 4], [5, 6]] as const]]) };
    const text = packLayout(layout, nodes, edges);
    expect(unpackLayout(text, nodes, edges)).toEqual(layout);
    expect(text).not.toMatch(/[a-z]/); // no name of a node
    const others = ["", "{}", "null", "[]", text.slice(1), text.replace("1.5", '"x"'), text.replace("1.5", "null"), JSON.stringify([[[0, 0]], []])];
    for (const other of others) expect(unpackLayout(other, nodes, edges)).toBeNull();
    expect(unpackLayout(text, nodes.slice(1), edges)).toBeNull();
    expect(shortKey(topologyKey(nodes, edges))).not.toBe(shortKey(topologyKey(nodes, edges.slice(1))));
  });

  test("of plain columns puts no two nodes in one place", () => {
    const places = [...columns(nodes, edges).places.values()].map(({ x, y }) => `${x} ${y}`);
    expect(new Set(places).size).toBe(3);
  });

  test("leads an edge back around above", () => {
    const [from, to] = [{ x: 300, y: 50, width: 100, height: 50 }, { x: 0, y: 50, width: 100, height: 50 }];
    const { back, label } = edgePath(from, to, undefined);
    expect(back).toBe(true);
    expect(label[1]).toBeLessThan(50);
    expect(edgePath(to, from, undefined).back).toBe(false);
    const below = { ...from, x: from.x - 20, y: from.y + 120 }; // a drawing of one's own: beneath it, a little to the left
    expect(edgePath(from, below, undefined).back).toBe(false);
  });
});

describe("a summary", () => {
  const given = { ref: "work", words: "mock", replicated: new Set(["many"]), meetings: [], reachable: true };

  test("counts work that stands at a join as done, and branches that have not begun", () => {
    const summary = summarise(fanOut().newest, given, 30);
    expect(summary.stacked).toBe(true);
    expect(summary.tally).toEqual([["done", 1], ["fail", 1], ["idle", 1]]);
    expect(summary.worst).toBe("fail");
  });

  test("of a join says who has arrived, failed and is missing", () => {
    const { join } = summarise(fanOut().newest, { ...given, ref: "gather", replicated: new Set(), meetings: [{ group: "transition:many", node: "gather", words: "2 of many" }] }, 30);
    expect(join).toMatchObject({ arrived: 1, failed: 1, missing: 1, needed: 2, total: 3, status: "open" });
  });

  test("reads how many a join needs", () => {
    expect(["5 of x", "60 % of x", "first of x", "all of x", "a > b of x"].map((words) => neededOf(words, 7))).toEqual([5, 5, 1, 7, null]);
  });
});

test("queue, wait and run sum to the duration of a visit", () => {
  const folding = fold(begin, made(1, "a", 10), at("token.dispatched", 1, 13, { attempt: 1 }), at("token.started", 1, 20, { attempt: 1 }), at("token.waiting", 1, 50, { reason: "signal" }), at("token.resumed", 1, 71), at("token.completed", 1, 80));
  const visit = folding.newest.visits.get(1);
  expect(visit && spentOf(visit, 999)).toEqual({ queue: 10, wait: 21, run: 39, held: 0, total: 70 });
});

describe("an edge", () => {
  const folding = fold(begin, { at: 1, type: "context.updated", writes: [[["state", "score"], 84]] }, made(1, "a", 2), at("token.started", 1, 2, { attempt: 1 }), at("token.completed", 1, 5), made(2, "c", 5, { via: "a->c", origin: 1 }));

  test("was taken, not taken, or is open", () => {
    expect(edgeSummary(folding.newest, edge({ id: "a->c", target: "c" })).verdict).toBe("taken");
    expect(edgeSummary(folding.newest, edge({})).verdict).toBe("not");
    expect(edgeSummary(folding.newest, edge({ source: "c" })).verdict).toBe("open");
    expect(edgeSummary(folding.newest, edge({ on: "failure" })).verdict).toBe("open");
  });

  test("tells the values that its condition read", () => {
    expect(valuesRead("state.score < 60 && input.limit > 1", folding.newest)).toEqual([["state.score", 84], ["input.limit", 5]]);
    const all = [edge({ condition: "state.score < 60" }), edge({ id: "a->c", target: "c", tier: 2 })];
    expect(edgeWhy(folding, folding.newest, all[0] as EdgeGiven, 9, all)).toMatchObject({ title: "Not taken", outcome: "was false", values: [["state.score", 84]] });
    const late = edge({ condition: "true", tier: 3 });
    expect(edgeWhy(folding, folding.newest, late, 9, [...all, late]).outcome).toBe("was not asked: tier 2 came first");
  });
});

test("a difference names the place of every change, and nothing else", () => {
  const folding = fold(begin, { at: 1, type: "context.updated", writes: [[["state", "a"], { b: 1, c: 2 }]] }, { at: 2, type: "context.updated", writes: [[["state", "a", "b"], 3]] });
  const changes = changesBetween(viewOf(folding.at(2)), viewOf(folding.at(3)));
  expect(changes).toEqual([{ place: "state.a.b", kind: "changed", before: 1, after: 3 }]);
});

describe("rows", () => {
  test("put failed visits of an open node first", () => {
    const rows = rowsOf(fanOut().newest, new Set(["work"]), "");
    expect(rows.map((row) => row.key)).toEqual(["begin", "work", "v3", "v2", "gather"]);
    expect(rowsOf(fanOut().newest, new Set(), "gath").map((row) => row.key)).toEqual(["gather"]);
  });

  test("count how many are at work in each slice", () => {
    const visits = [...fanOut().newest.visits.values()].filter((visit) => visit.node === "work");
    const { counts, fails } = densityOf(visits, 20, (instant) => instant, 20, 20);
    expect(counts.slice(3, 8)).toEqual([0, 1, 2, 2, 2]);
    expect(fails).toEqual([19]);
  });
});

test("acts say what will happen in numbers", () => {
  const { newest } = fanOut();
  expect(cancelEffects(newest).map(({ count, words }) => [count, words])).toEqual([[1, "visit is cancelled"], [1, "completed visit stays as it is"]]);
  expect(retryEffects(newest)[0]).toMatchObject({ count: 1, words: "visit tries again" });
});

describe("undoing", () => {
  const recorded = (record: number, node: string): Given => ({ at: 1, type: "compensation.recorded", record, token: record, node, path: node });
  const stopped = (): Folding =>
    fold(
      begin, made(1, "book", 0), recorded(1, "book"), made(2, "pay", 1), recorded(2, "pay"),
      { at: 2, type: "run.compensating", reason: "failed" },
      { at: 2, type: "compensation.started", record: 2, node: "pay" }, made(3, "pay", 2, { mode: "compensation", record: 2 }),
      { at: 3, type: "compensation.failed", record: 2, error: { kind: "BOOM", message: "no" } },
      { at: 3, type: "run.compensation_failed", record: 2 },
    );

  test("tells how far it has come, and which visit could not be undone", () => {
    const undoing = undoingOf(stopped().newest);
    expect(undoing && undoingWords(undoing)).toBe("0 of 2 visits undone · 1 failed · 1 not begun");
    expect(undoing?.failed.map((one) => [one.record, one.node, one.undoing, one.error?.kind])).toEqual([[2, "pay", 3, "BOOM"]]);
  });

  test("says what an act will do, in numbers", () => {
    const { newest } = stopped();
    const words = (effects: ReturnType<typeof skipUndoEffects>) => effects.map(({ count, words }) => `${count} ${words}`);
    expect(words(retryUndoEffects(newest))).toEqual(["1 compensation runs again", "1 visit is undone after it"]);
    expect(words(skipUndoEffects(newest))).toEqual(["1 visit stays as it is, not undone", "1 visit is undone next"]);
  });

  test("is nothing while a run only could be undone", () => {
    expect(undoingOf(fold(begin, made(1, "book", 0), recorded(1, "book")).newest)).toBeNull();
  });
});
