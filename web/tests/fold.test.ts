// @vitest-environment node
// The canvas's fold against the service's, on histories of scenarios (tools/canvas_histories.py).
import { readFileSync, readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { nextPages } from "@/model/ends";
import { Folding, isLive, viewOf, type Event, type Shape } from "@/model/fold";

const GOLDEN = new URL("./golden/", import.meta.url);

interface Case {
  scenario: string;
  run: string;
  versions: Record<string, { meetings: Shape["meetings"]; edges: [id: string, source: string, target: string, triggered: boolean, group: string | null][] }>;
  history: Event[];
  states: ReturnType<typeof viewOf>[];
}

const shapesOf = ({ versions }: Case): [number, Shape][] =>
  Object.entries(versions).map(([version, { meetings, edges }]) => [Number(version), { meetings, edges: new Map(edges.map(([id, source, target, triggered, group]) => [id, { source, target, triggered, group }])) }]);

const byKey = <T>(list: readonly T[], key: (one: T) => unknown) => new Map(list.map((one) => [String(key(one)), one]));
const without = (object: object, name: string) => Object.fromEntries(Object.entries(object).filter(([key]) => key !== name));

/** What both have: the service forgets failures that nobody can retry, and groups that are over. */
function compare(mine: ReturnType<typeof viewOf>, theirs: ReturnType<typeof viewOf>): void {
  for (const field of ["run", "seq", "at", "status", "input", "output", "error", "scope", "counts", "gates", "timers", "signals"] as const) {
    expect(mine[field], field).toEqual(theirs[field]);
  }
  const visits = byKey(mine.visits, (visit) => visit.visit);
  for (const visit of theirs.visits) expect(visits.get(String(visit.visit)), `visit ${visit.visit}`).toEqual(visit);
  const live = (list: { status: string; visit: number }[]) => list.filter((one) => isLive(one as never)).map((one) => one.visit);
  expect(live(mine.visits)).toEqual(live(theirs.visits));
  const groups = byKey(mine.groups, (group) => group.group);
  for (const group of theirs.groups) expect(groups.get(String(group.group)), `group ${group.group}`).toEqual(group);
  const joins = byKey(mine.joins, (join) => join.join);
  for (const join of theirs.joins) {
    if (join.group === null && join.arrived.length === 0) continue;
    expect(joins.get(join.join), `join ${join.join}`).toEqual(without(join, "live"));
  }
  const branches = byKey(mine.branches, (scope) => [scope.group, scope.branch]);
  for (const scope of theirs.branches) expect(branches.get(String([scope.group, scope.branch])), `branch ${scope.group}.${scope.branch}`).toEqual(scope);
}

const files = readdirSync(GOLDEN).filter((name) => name.endsWith(".json"));

describe.each(files)("%s", (file) => {
  const cases = JSON.parse(readFileSync(new URL(file, GOLDEN), "utf-8")) as Case[];
  test.each(cases.map((one) => [`${one.scenario} (${one.run})`, one] as const))("%s", (_name, given) => {
    const { history, states } = given;
    const folding = new Folding(shapesOf(given));
    for (const theirs of states) {
      expect(folding.add(history.slice(0, theirs.seq))).toBe(true);
      compare(viewOf(folding.newest), theirs);
    }
    folding.add(history);
    for (const theirs of states) compare(viewOf(folding.at(theirs.seq)), theirs);
  });
});

test("every golden file is compared", () => {
  expect(files.length).toBeGreaterThan(30);
});

describe("a folding", () => {
  const event = (seq: number, at = seq): Event => ({ seq, at, type: "custom.x", name: "x" });

  test("passes over what it has and says when something is missing", () => {
    const folding = new Folding();
    expect(folding.add([event(1), event(2)])).toBe(true);
    expect(folding.add([event(2), event(3)])).toBe(true);
    expect(folding.add([event(5)])).toBe(false);
    expect(folding.length).toBe(3);
  });

  test("finds the event of an instant", () => {
    const folding = new Folding();
    folding.add([event(1, 10), event(2, 20), event(3, 20), event(4, 30)]);
    expect([5, 10, 20, 25, 99].map((at) => folding.seqAt(at))).toEqual([0, 1, 3, 3, 4]);
  });

  test("jumps within 20,000 events in a few milliseconds", () => {
    const folding = new Folding();
    const history: Event[] = [{ seq: 1, at: 0, type: "run.started", run: "r", workflow: "w", version: 1 }];
    for (let visit = 1; visit <= 5_000; visit++) {
      const seq = (visit - 1) * 4 + 2;
      history.push(
        { seq, at: seq, type: "token.created", token: visit, node: "a", path: `a[${visit}]` },
        { seq: seq + 1, at: seq, type: "token.dispatched", token: visit, attempt: 1 },
        { seq: seq + 2, at: seq, type: "token.started", token: visit, attempt: 1 },
        { seq: seq + 3, at: seq, type: "token.completed", token: visit },
      );
    }
    folding.add(history);
    const began = performance.now();
    for (let jump = 1; jump <= 20; jump++) expect(folding.at(jump * 997).seq).toBe(jump * 997);
    expect((performance.now() - began) / 20).toBeLessThan(60);
    expect(folding.at(19_000).visits.size).toBe(4_750);
  });

  test("keeps the newest events of a long history, and folds them once nothing before them is missing", () => {
    const folding = new Folding();
    folding.add([event(1), event(2)]);
    folding.keep([event(9), event(10)]);
    folding.keep([event(7), event(8)]);
    folding.keep([event(11)]);
    folding.keep([event(4)]); // neither before nor behind what is kept
    expect([folding.length, folding.known, folding.ahead.map(({ seq }) => seq)]).toEqual([2, 7, [7, 8, 9, 10, 11]]);
    expect([folding.event(2)?.seq, folding.event(5), folding.event(8)?.seq, folding.event(12)]).toEqual([2, undefined, 8, undefined]);
    expect(folding.close(2)).toBe(false);
    folding.add([3, 4, 5, 6].map((seq) => event(seq)));
    expect([folding.close(2), folding.length, folding.close(9), folding.length, folding.close(9)]).toEqual([true, 8, true, 11, false]);
  });

  test("keeps fewer states for its length the longer it is, and finds every moment", () => {
    const folding = new Folding();
    folding.add(Array.from({ length: 120_000 }, (_, at) => event(at + 1)));
    for (const seq of [1, 999, 51_001, 63_999, 119_999, 120_000]) expect(folding.at(seq).seq).toBe(seq);
  });
});

describe("a long history is read from both ends", () => {
  test("the newest page first, then the oldest, until they meet", () => {
    let [front, end] = [1_000, 10_501];
    const asked: number[] = [];
    for (let asks = nextPages(front, end); asks.length > 0; asks = nextPages(front, end)) {
      for (const { after, limit } of asks) {
        asked.push(after);
        if (after === front) front += limit;
        else end -= limit;
      }
    }
    expect(front).toBe(end - 1);
    expect(asked.slice(0, 4)).toEqual([9_500, 1_000, 8_500, 2_000]);
    expect(new Set(asked).size).toBe(asked.length);
    expect(nextPages(5, null)).toEqual([{ after: 5, limit: 1_000 }]);
  });
});
