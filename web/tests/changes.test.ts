// The models behind changes to a run: what is foretold, what repeats, values that are written, budgets, queues, plans.
import { describe, expect, test } from "vitest";
import { amount, raised } from "@/model/budget";
import { Folding, type Event } from "@/model/fold";
import { foretold, named, repeatsAfter } from "@/model/foretold";
import { goneNodes, inTheWay, obstaclesOf } from "@/model/migration-plan";
import { queuedWords } from "@/model/queue";
import { placesOf, readRows } from "@/model/writes";

const history = (...events: Omit<Event, "seq">[]): Event[] => events.map((event, index) => ({ ...event, seq: index + 1 }) as Event);
const folding = (...events: Omit<Event, "seq">[]): Folding => {
  const made = new Folding();
  made.add(history({ at: 0, type: "run.started", run: "r", workflow: "w", version: 1 }, ...events));
  return made;
};
const made = (token: number, node: string): Omit<Event, "seq"> => ({ at: 0, type: "token.created", token, node, path: node });
const at = (type: string, token: number, more: object = {}): Omit<Event, "seq"> => ({ at: 0, type, token, ...more });

test("what is foretold counts visits, not events, and names their nodes", () => {
  const before = folding(made(1, "judge"), made(2, "judge")).newest;
  const events = history(
    { at: 0, type: "run.resumed" }, at("token.retry_scheduled", 1, { by: "ann" }), at("token.dispatched", 1), at("token.started", 1), at("token.dispatched", 2), made(3, "publish"), at("token.started", 3),
    { at: 0, type: "context.updated", writes: [[["state", "x"], 1], [["state", "y"], 2]] }, { at: 0, type: "join.reopened", target: "decide", group: 1 },
  );
  expect(foretold(events, before).map(({ count, words }) => `${count} ${words}`)).toEqual([
    "1 run goes on", "2 values are written (state.x, state.y)", "1 visit tries again (judge)", "1 visit is made (publish)", "3 attempts begin, with their side effects (judge ×2, publish)",
    "1 failed join waits again (decide)",
  ]);
  expect(named(["a", "b", "c", "d", "e", "e"])).toBe("a, b, c, d and 1 more");
});

test("a fork repeats the work that was done after its point, but for nodes that do nothing outside", () => {
  const run = folding(made(1, "send"), at("token.started", 1), at("token.completed", 1), made(2, "gather"), at("token.started", 2), made(3, "send"), at("token.dispatched", 3), at("token.started", 3));
  const nodes = [{ ref: "send", kind: "native", words: "http POST" }, { ref: "gather", kind: "pass", words: "" }];
  expect(repeatsAfter(run.events, 1, run.newest, nodes)).toEqual([{ node: "send", words: "http POST", visits: 2 }]);
  expect(repeatsAfter(run.events, 4, run.newest, nodes)).toEqual([{ node: "send", words: "http POST", visits: 1 }]);
  expect(repeatsAfter(run.events, run.length, run.newest, nodes)).toEqual([]);
});

describe("values that are written", () => {
  test("are read row by row, and what is wrong is said of its row", () => {
    expect(readRows([{ path: "state.a", text: "1" }, { path: "", text: "" }])).toEqual({ writes: { "state.a": 1 }, problem: null });
    expect(readRows([{ path: "state.a", text: "{" }]).problem).toMatch(/^state\.a: /);
    expect(readRows([{ path: "state.a", text: "1" }, { path: " state.a", text: "2" }]).problem).toBe("state.a is there twice");
    expect(readRows([{ path: "", text: "1" }]).problem).toBe("a value has no place");
  });

  test("go to places that are there: objects are opened, lists are values", () => {
    expect(placesOf({ order: { total: 1, "odd key": 2 }, list: [1] }, "state").map(([place]) => place)).toEqual(["state.order", "state.order.total", "state.list"]);
  });
});

test("a budget is raised by amounts that can be read", () => {
  expect(raised({ cost: "1.5", elapsed_ms: "30m", tokens: " " })).toEqual({ body: { cost: 1.5, elapsed_ms: 1_800_000 }, problem: null });
  expect(raised({ visits: "1.5" }).body).toBeNull();
  expect(raised({ visits: "-1" }).problem).toBe("visits: -1 is no amount that can be added");
  expect(raised({})).toEqual({ body: null, problem: null });
  expect([amount("cost", 2), amount("visits", 3), amount("elapsed_ms", 60_000)]).toEqual(["2 of cost", "3 visits", "1 m"]);
});

test("a queued run says why it waits, and its place", () => {
  const one = { run: "r", position: 2, why: "concurrency", key: "a", priority: 0, since: 0, due: null, items: 1 };
  expect(queuedWords(one, 0)).toBe("2. in line: as many runs as may be live at once are with the key a");
  expect(queuedWords({ ...one, why: "debounce", key: null, due: 5_000 }, 0)).toBe("it waits whether another start follows; starts in 5.0 s");
  expect(queuedWords({ ...one, why: "batch", key: null, items: 3 }, 0)).toBe("it gathers starts: 3 so far");
});

test("a plan gathers what is in the way, what stops most runs first", () => {
  const refused = (run: string, ...messages: string[]) => ({ run, ok: false, outcome: "refused", problem: { detail: "no", problems: messages.map((message) => ({ message })) } });
  expect(obstaclesOf([refused("a", "x"), refused("b", "y", "x"), { run: "c", ok: true, outcome: "possible" }])).toEqual([{ words: "x", runs: ["a", "b"] }, { words: "y", runs: ["b"] }]);
  expect(inTheWay({ run: "a", ok: false, outcome: "refused", problem: { detail: "it is over" } })).toEqual(["it is over"]);
  expect(goneNodes(["a", "b", "a"], ["b", "c"])).toEqual(["a"]);
});
