import { describe, expect, it } from "vitest";
import { sendings } from "@/model/batch";
import { asked, dueWords, grouped, quorumOf, readFilter, rightsOf, rowsAfter, writeFilter, type Asker, type GateRow } from "@/model/gates";

const ALL = ["answer", "claim", "release", "delegate", "comment"];
const row = (visit: number, more: Partial<GateRow> = {}): GateRow => ({
  gate: `r/${visit}`, run: "r", visit, node: "sign", workflow: "w", opened: visit, title: null, assign: null, due: null, claimed_by: null, escalated: null, reminded: 0, commented: 0, answered: 0, can: ALL, ...more,
});
const person = (name: string, more: Partial<Asker> = {}): Asker => ({ name, groups: [], admin: false, approver: true, ...more });
const event = (type: string, token: number, more: object = {}) => ({ run: "r", type, at: 7, token, ...more });

describe("filters", () => {
  it("come back out of the address as they went in", () => {
    const filter = { mine: true, overdue: false, workflow: "a/b", node: "n", text: "x & y" };
    expect(readFilter(writeFilter(filter))).toEqual(filter);
    expect(asked(readFilter(""))).toEqual({});
  });
});

it("groups rows by workflow and node, where the first of each stands", () => {
  const groups = grouped([row(1), row(2, { node: "other" }), row(3)]);
  expect(groups.map((group) => [group.node, group.rows.map((one) => one.visit)])).toEqual([["sign", [1, 3]], ["other", [2]]]);
});

describe("rows after events", () => {
  it("say who has answered, and stay", () => {
    const [first, second] = rowsAfter([row(1), row(2)], [event("gate.completed", 1, { by: "bo" })]);
    expect(first).toMatchObject({ over: { how: "answered", by: "bo", at: 7 } });
    expect(second?.over).toBeUndefined();
  });

  it("follow claims, comments and answers of a quorum", () => {
    const events = [event("gate.claimed", 1, { by: "bo" }), event("gate.commented", 1), event("gate.answered", 1), event("gate.delegated", 1, { to: "cy" })];
    expect(rowsAfter([row(1)], events)[0]).toMatchObject({ claimed_by: "cy", commented: 1, answered: 1 });
    expect(rowsAfter([row(1, { claimed_by: "bo" })], [event("gate.released", 1)])[0]?.claimed_by).toBeNull();
  });

  it("end with their run, and are the same list when nothing is about them", () => {
    expect(rowsAfter([row(1)], [{ run: "r", type: "run.cancelled", at: 3 }])[0]?.over?.how).toBe("closed");
    const rows = [row(1)];
    expect(rowsAfter(rows, [{ run: "other", type: "run.cancelled", at: 3 }, event("gate.completed", 9)])).toBe(rows);
  });
});

describe("rights", () => {
  it("are everything for a gate that asks anybody, and nothing without the role", () => {
    expect(rightsOf(row(1), person("ann"))).toMatchObject({ answer: true, claim: true, release: false, delegate: true, comment: true, link: true, why: null });
    expect(rightsOf(row(1), person("ann", { approver: false }))).toMatchObject({ answer: false, claim: false, comment: false, link: false });
  });

  it("are those of the people who are asked, by name, by group or after escalation, and of admins", () => {
    const assign = { users: ["ann"], groups: ["finance"] };
    expect(rightsOf(row(1, { assign }), person("ann")).answer).toBe(true);
    expect(rightsOf(row(1, { assign }), person("finance")).answer).toBe(false);
    expect(rightsOf(row(1, { assign }), person("eve", { groups: ["finance"] })).answer).toBe(true);
    expect(rightsOf(row(1, { assign }), person("eve"))).toMatchObject({ answer: false, delegate: false, comment: true, why: "It is asked of others." });
    expect(rightsOf(row(1, { assign, escalated: "eve" }), person("eve")).answer).toBe(true);
    expect(rightsOf(row(1, { assign }), person("eve", { admin: true })).answer).toBe(true);
  });

  it("of a claimed gate are its holder's", () => {
    const claimed = row(1, { claimed_by: "ann" });
    expect(rightsOf(claimed, person("ann"))).toMatchObject({ answer: true, claim: false, release: true, delegate: true });
    expect(rightsOf(claimed, person("bob"))).toMatchObject({ answer: false, release: false, why: "ann has taken it on." });
  });

  it("of a quorum are one answer each, and no claim", () => {
    const board = row(1, { assign: { groups: ["board"], quorum: { of: 3, accept: 2 } } });
    const una = person("una", { groups: ["board"] });
    expect(rightsOf(board, una)).toMatchObject({ answer: true, claim: false, delegate: false });
    expect(rightsOf({ ...board, answers: [{ by: "una" }] }, una)).toMatchObject({ answer: false, why: "You have answered. It waits for others." });
    expect(quorumOf(board.assign)).toEqual({ of: 3, accept: 2 });
  });

  it("of a run that is out of time are no answer", () => {
    expect(rightsOf(row(0, { can: ["extend", "abort"] }), person("ann", { admin: true }))).toMatchObject({ answer: false, comment: false, link: false, why: null });
  });
});

it("says when a gate is due in few words", () => {
  const now = new Date(2026, 10, 17, 12, 0).getTime();
  expect(dueWords(new Date(2026, 10, 17, 17, 5).getTime(), now)).toBe("today 17:05");
  expect(dueWords(new Date(2026, 10, 18, 9, 0).getTime(), now)).toMatch(/^Wed 09:00$/);
});

it("sends the common answer in parts and each exception by itself", () => {
  const items = [1, 2, 3, 4].map((visit) => row(visit));
  const found = sendings(items, { ok: true }, new Map([["r/2", { ok: false }]]), (item) => item.gate, 2);
  expect(found.map((one) => [one.gates.map((gate) => gate.visit), one.data])).toEqual([[[1, 3], { ok: true }], [[4], { ok: true }], [[2], { ok: false }]]);
});
