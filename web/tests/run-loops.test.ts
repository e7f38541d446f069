// Iterations of loops, differences in a stack, and drawings in both forms.
import { describe, expect, test } from "vitest";
import type { EdgeGiven } from "@/model/edges";
import { Folding, type Event, type Visit } from "@/model/fold";
import { loopsOf, within } from "@/model/loops";
import { rowsOf } from "@/model/rows";
import { summarise } from "@/model/summary";
import { varianceOf } from "@/model/variance";
import { drawn } from "@/views/run/graph/use-layout";

const made = (token: number, node: string, via: string | null, at: number) => ({ at, type: "token.created", token, node, path: `root.${node}`, via });
const ran = (token: number, from: number, to: number) => [{ at: from, type: "token.started", token, attempt: 1 }, { at: to, type: "token.completed", token, output: {} }];
const fold = (...events: object[]): Folding => {
  const folding = new Folding();
  folding.add([{ at: 0, type: "run.started", run: "r", workflow: "w", version: 1, input: {} }, ...events].map((event, index) => ({ ...event, seq: index + 1 }) as unknown as Event));
  return folding;
};
const back: EdgeGiven = { id: "again", source: "check", target: "draft", on: "success", condition: "true", tier: 1, loop_max: 5, replicates: false, triggered: false, back: true, words: [] };

const thrice = (): Folding =>
  fold(
    made(1, "draft", null, 0), ...ran(1, 0, 5), made(2, "check", "go", 5), ...ran(2, 5, 6),
    made(3, "draft", "again", 6), ...ran(3, 6, 16), made(4, "check", "go", 16), ...ran(4, 16, 17),
    made(5, "draft", "again", 17), ...ran(5, 17, 18), made(6, "check", "go", 18), ...ran(6, 18, 19), made(7, "end", "out", 19),
  );

describe("a loop", () => {
  test("has its iterations as stretches of the history, without a gap", () => {
    const { newest } = thrice();
    const [loop] = loopsOf(newest, [back]);
    expect(loop?.node).toBe("draft");
    expect(loop?.iterations).toEqual([{ from: 2, to: 7 }, { from: 8, to: 13 }, { from: 14, to: Infinity }]);
  });

  test("that never went round is none", () => {
    expect(loopsOf(fold(made(1, "draft", null, 0), ...ran(1, 0, 1)).newest, [back])).toEqual([]);
  });

  test("shows in graph and timeline the visits of the iteration that is pinned", () => {
    const { newest } = thrice();
    const span = loopsOf(newest, [back])[0]?.iterations[1] ?? null;
    const given = { ref: "draft", words: "", replicated: new Set<string>(), meetings: [], reachable: true };
    expect(summarise(newest, given, 20).value).toBe("×3");
    expect(summarise(newest, given, 20, span).value).toBe("10 ms");
    expect(rowsOf(newest, new Set(), "", span).map((row) => row.kind === "node" && row.visits.map((visit) => visit.id))).toEqual([[3], [4], [7]]);
    expect(within([], span)).toEqual([]);
  });
});

test("a stack tells its distinct items, its slow visits and how far apart they began", () => {
  const folding = fold(...[10, 11, 12, 13, 90].flatMap((ms, index) => [made(index + 1, "judge", "many", 0), ...ran(index + 1, index * 100, index * 100 + ms)]));
  const visits = [...folding.newest.visits.values()] as Visit[];
  const found = varianceOf(visits, ["a", "b", "a", "a", "c"], 500);
  expect(found.items[0]).toEqual({ text: '"a"', count: 3 });
  expect(found.distinct).toBe(3);
  expect(found.slow.map((one) => [one.visit, one.ms])).toEqual([[5, 90]]);
  expect(found.stagger).toBe(400);
});

test("a drawing is read as a list and by name; one that lacks a node is not used", () => {
  const nodes = [{ id: "a", width: 10, height: 5 }];
  const place = { x: 1, y: 2, width: 10, height: 5 };
  expect(drawn({ nodes: [{ id: "a", position: { x: 1, y: 2 } }] }, nodes)?.places.get("a")).toEqual(place);
  expect(drawn({ nodes: { a: { position: { x: 1, y: 2 } } } }, nodes)?.places.get("a")).toEqual(place);
  expect(drawn({ nodes: { b: { position: { x: 1, y: 2 } } } }, nodes)).toBeNull();
  expect(drawn(null, nodes)).toBeNull();
});
