// The models behind the screen of journeys: sections, the map, ways, states, shares, legs and stays.
import { describe, expect, test } from "vitest";
import { rowsOf, staysOf, totalsOf, wayOf, type Names } from "@/model/journey-legs";
import { mapOf, NODE, sectionsMoved, sectionsOf } from "@/model/journey-map";
import { pointAt, routeOf } from "@/model/journey-route";
import { countsBySection, initialsOf, percentText, sharesOf, shortCount, standings, stateLook, stayText, type Conversion, type Crowd, type Entity, type JourneyMove, type Leg } from "@/model/journeys";

const REFS = ["capture", "score", "invite", "onboard", "offer", "survey"];
const EDGES = [["capture", "score"], ["score", "invite"], ["invite", "onboard"], ["onboard", "offer"], ["offer", "survey"]].map(([source, target]) => ({ id: `${source}->${target}`, source: source as string, target: target as string }));
const DRAWING = { sections: [{ id: "leads", name: "Leads", nodes: ["invite", "score", "capture"] }, { id: "trial", data: { label: "Trial" } }], nodes: [{ id: "onboard", parentId: "trial" }, { id: "offer", parentId: "trial" }] };
const crowd = (count: number, fields: Partial<Crowd>): Crowd => ({ count, node: null, edge: null, section: null, states: {}, ...fields });
const person = (id: string, fields: object): Entity => ({ type: "lead", id, name: null, email: null, attributes: {}, created: 0, changed: 0, number: 1, positions: [{ workflow: "w", since: Number(id), node: null, edge: null, section: null, progress: null, completed_as: null, run: null, state: null, ...fields }] }) as Entity;
const move = (at: number, fields: Partial<JourneyMove>): JourneyMove => ({ at, event: "arrived", seq: at, node: null, edge: null, section: null, progress: null, completed_as: null, type: null, by: null, reason: null, until: null, cost: null, ...fields });
const leg = (run: string | null, moves: JourneyMove[], fields: Partial<Leg> = {}): Leg => ({ workflow: "w", run, status: run === null ? null : "completed", started: moves[0]?.at ?? 0, ended: null, cost: null, moves, ...fields });
const NAMES: Names = { sectionOf: (workflow, node) => (workflow !== "w" ? undefined : node.startsWith("t") ? "trial" : "leads"), sectionName: (id) => id[0]!.toUpperCase() + id.slice(1) };

describe("sections", () => {
  test("come from the drawing's own list, from React Flow's parents, and from the names people are moved to", () => {
    const moved = sectionsMoved({ nodes: { offer: { entity: { on_success: { section: "customers" }, on_failure: { section: "trial" } } }, survey: {} } });
    expect(moved).toEqual(["customers", "trial"]);
    expect(sectionsOf(DRAWING, REFS, moved)).toEqual([
      { id: "leads", name: "Leads", nodes: ["capture", "score", "invite"] },
      { id: "trial", name: "Trial", nodes: ["onboard", "offer"] },
      { id: "customers", name: "customers", nodes: [] },
    ]);
  });

  test("of a drawing with anything in it are those that can be read", () => {
    expect(sectionsOf({ sections: [null, 3, { id: 7 }, { id: "a", nodes: "x" }], nodes: "none" }, REFS, [])).toEqual([{ id: "a", name: "a", nodes: [] }]);
    expect(sectionsOf(null, REFS, [])).toEqual([]);
    expect(sectionsMoved(null)).toEqual([]);
  });
});

describe("a map", () => {
  const sections = sectionsOf(DRAWING, REFS, ["newsletter"]);
  const map = mapOf(sections, REFS, EDGES, DRAWING);

  test("places every node inside its section, and no two boxes over each other", () => {
    expect([...map.places.keys()].sort()).toEqual([...REFS].sort());
    for (const { nodes, box } of map.sections) {
      for (const ref of nodes) {
        const place = map.places.get(ref)!;
        expect(place.x).toBeGreaterThan(box.x);
        expect(place.y + place.height).toBeLessThan(box.y + box.height);
      }
    }
    const boxes = map.sections.map((one) => one.box);
    const loose = map.places.get("survey")!;
    for (const [at, a] of [...boxes, loose].entries()) for (const b of [...boxes, loose].slice(at + 1)) expect(a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y).toBe(true);
  });

  test("has the nodes of a section in the order of the way, whatever order the drawing lists them in", () => {
    expect(["capture", "score", "invite"].map((ref) => map.places.get(ref)!.y)).toEqual([76, 204, 332]);
  });

  test("is the drawing's own if that places everything; places of React Flow are relative to the section", () => {
    const own = { sections: [{ id: "s", position: { x: 100, y: 50 }, width: 300, height: 200 }], nodes: { a: { position: { x: 20, y: 80 }, parentId: "s" } } };
    const drawn = mapOf(sectionsOf(own, ["a"], []), ["a"], [], own);
    expect(drawn.places.get("a")).toEqual({ x: 120, y: 130, ...NODE });
    expect(drawn.sections[0]!.box).toEqual({ x: 100, y: 50, width: 300, height: 200 });
  });
});

describe("a way", () => {
  const at = (x: number, y: number) => ({ x, y, ...NODE });

  test("straight down is one stretch, with its label beside it", () => {
    const [from, to] = [at(0, 0), at(0, 128)];
    const route = routeOf(from, to, [from, to]);
    expect(route.points).toEqual([[80, 60], [80, 124]]);
    expect(route.beside).toBe(true);
  });

  test("to the right bends in the gutter, and goes under a node that stands between", () => {
    const [from, between, to] = [at(0, 0), at(340, 0), at(680, 0)];
    expect(routeOf(from, between, [from, between]).points).toEqual([[160, 30], [336, 30]]);
    const around = routeOf(from, to, [from, between, to]);
    expect(Math.max(...around.points.map(([, y]) => y))).toBeGreaterThan(60);
    expect(around.points.at(-1)).toEqual([676, 30]);
  });

  test("back up in a column goes beside it, in at the right", () => {
    const [from, to] = [at(0, 256), at(0, 0)];
    const route = routeOf(from, to, [to, at(0, 128), from]);
    expect([route.out, route.into]).toEqual(["right", "right"]);
    expect(Math.min(...route.points.slice(1, -1).map(([x]) => x))).toBeGreaterThan(160);
  });

  test("has a point at every share of its length", () => {
    const points = [[0, 0], [100, 0], [100, 100]] as const;
    expect([pointAt(points, 0), pointAt(points, 0.5), pointAt(points, 0.75), pointAt(points, 1)]).toEqual([[0, 0], [100, 0], [100, 50], [100, 100]]);
  });
});

describe("people", () => {
  const kinds = new Map([["invite", "waits"], ["onboard", "human"]]);

  test("are single up to five and one mark above, which wears the worst of their states", () => {
    const five = Array.from({ length: 5 }, (_, index) => person(String(9 - index), { node: "onboard", state: "waiting_for_user" }));
    const found = standings([crowd(5, { node: "onboard", states: { waiting_for_user: 5 } }), crowd(6, { node: "invite", states: { running: 5, failed: 1 } })], five, kinds);
    expect(found[0]!.people!.map((one) => one.id)).toEqual(["5", "6", "7", "8", "9"]);
    expect(found[1]!.people).toBeNull();
    expect([found[1]!.look.tone, found[1]!.words]).toEqual(["fail", "5 waits for time, 1 failed"]);
  });

  test("that are not all known stay one mark: nobody is shown in a place where others are missing", () => {
    expect(standings([crowd(2, { node: "onboard" })], [person("1", { node: "onboard" })], kinds)[0]!.people).toBeNull();
  });

  test("are shown in the words and tones of the states", () => {
    const words = (state: string | null, kind?: string) => [stateLook(state, kind).tone, stateLook(state, kind).word];
    expect(words("waiting_for_user", "human")).toEqual(["ask", "waits for the user"]);
    expect(words("running", "waits")).toEqual(["wait", "waits for time"]);
    expect(words("running", "signal")).toEqual(["wait", "waits for a signal"]);
    expect(words("running", "task")).toEqual(["active", "at work"]);
    expect(words("failed")).toEqual(["fail", "failed"]);
    expect(words(null)).toEqual(["idle", "rests here"]);
  });

  test("count for the section of their node, of the node they left, or of the section itself", () => {
    const crowds = [crowd(3, { node: "a" }), crowd(2, { edge: "a->b" }), crowd(1, { section: "leads" }), crowd(9, { node: "elsewhere" })];
    expect([...countsBySection(crowds, new Map([["a", "leads"]]), new Map([["a->b", "a"]]))]).toEqual([["leads", 6]]);
  });

  test("have initials, and large crowds short numbers", () => {
    expect([initialsOf({ name: "Elif Şahin", id: "1" }), initialsOf({ name: null, id: "8841" }), initialsOf({ name: "  ", id: "x" })]).toEqual(["EŞ", "8", "?"]);
    expect([999, 1_104, 12_000, 123_456].map(shortCount)).toEqual(["999", "1.1k", "12k", "123k"]);
  });
});

test("the share of an edge is of those who entered its source; without any there is none", () => {
  const flow = { left: 0, converted: 0, spent_p50_ms: null, spent_p95_ms: null };
  const conversion: Conversion = { workflow: "w", since: 0, edges: [{ edge: "a->b", entered: 3, ...flow }], sections: [], nodes: [{ node: "a", entered: 4, ...flow }] };
  const shares = sharesOf(conversion, [{ id: "a->b", source: "a" }, { id: "a->c", source: "a" }, { id: "b->c", source: "b" }]);
  expect([...shares.values()]).toEqual([{ entered: 3, percent: 75 }, { entered: 0, percent: 0 }, { entered: 0, percent: null }]);
  expect([68, 1.2, 0, 100, 12.5].map(percentText)).toEqual(["68 %", "1.2 %", "0 %", "100 %", "13 %"]);
});

test("stays are told in the largest units", () => {
  expect([0, 300, 4_000, 150_000, 195_000_000, 12 * 86_400_000, 220 * 86_400_000].map(stayText)).toEqual(["0 s", "0.3 s", "4 s", "2 min 30 s", "2 d 6 h", "12 d", "7 mo 10 d"]);
});

describe("a journey", () => {
  const first = leg("r1", [move(0, { edge: "->a", until: 1 }), move(1, { node: "a", until: 11 }), move(11, { edge: "a->t", until: 12 }), move(12, { node: "t", until: 40, cost: 0.5 }), move(30, { node: "t", completed_as: "success", type: "customer", until: 40 })], { ended: 30, cost: 0.5 });
  const hand = leg(null, [move(40, { section: "leads", by: "ana", reason: "called", until: 60 })]);
  const second = leg("r2", [move(60, { node: "t2" })], { status: "running" });
  const legs = [second, hand, first];

  test("has a row for each run, newest first, and one for each move by hand with where from", () => {
    const rows = rowsOf(legs, NAMES);
    expect(rows.map((row) => (row.kind === "run" ? [row.title, row.steps.map((step) => [step.name, step.ms, step.words])] : [row.by, row.from, row.to, row.reason]))).toEqual([
      ["Trial", [["t2", null, ""]]],
      ["ana", "t", "Leads", "called"],
      ["Trial", [["t", 28, "completed as success, now a customer"], ["a", 10, ""]]],
    ]);
  });

  test("a move by hand within a run is a row of its own", () => {
    const rows = rowsOf([leg("r", [move(1, { node: "a", until: 5 }), move(5, { section: "vip", by: "ben" })], { status: "running" })], NAMES);
    expect(rows.map((row) => row.kind)).toEqual(["hand", "run"]);
  });

  test("tells the time in each section in order, and where it is now", () => {
    expect(staysOf(legs, "w", NAMES, 100)).toEqual([{ name: "Leads", ms: 11, isNow: false }, { name: "Trial", ms: 28, isNow: false }, { name: "Leads", ms: 20, isNow: false }, { name: "Trial", ms: 40, isNow: true }]);
    expect(staysOf(legs, "other", NAMES, 100)).toEqual([]);
  });

  test("has totals, and a way over the edges it has taken", () => {
    expect(totalsOf(legs)).toEqual({ first: 0, runs: 2, cost: 0.5 });
    expect([...wayOf(legs, "w")]).toEqual(["->a", "a->t"]);
  });
});
