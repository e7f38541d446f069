import { describe, expect, it } from "vitest";
import { fits, inputFields, isEmpty, question, readClauses, rowAfter, writeClauses, type RunItem } from "@/model/run-filter";

const row: RunItem = { run: "r", workflow: "w", version: 1, status: "running", seq: 3, started: 0, changed: 1_000, ended: null, key: null, entity: "order/7", tags: ["a", "b"], parent: null, fields: {}, number: 1 };

describe("clauses", () => {
  it("come back from the address they were written to", () => {
    const clauses = readClauses("status=running&status=paused&workflow=!nightly&tag=a");
    expect(readClauses(writeClauses(clauses))).toEqual(clauses);
    expect(clauses.find((one) => one.field === "workflow")).toEqual({ field: "workflow", not: true, values: ["nightly"] });
  });

  it("ask the service for every other status when one is excluded", () => {
    const asked = question([{ field: "status", not: true, values: ["cancelled"] }], 0);
    expect(asked.status).toContain("failed");
    expect(asked.status).not.toContain("cancelled");
  });

  it("that contradict each other ask for nothing", () => {
    const both = [{ field: "status", not: false, values: ["failed"] }, { field: "status", not: true, values: ["failed"] }] as const;
    expect(isEmpty(question(both, 0))).toBe(true);
  });

  it("turn a duration into an instant", () => expect(question([{ field: "started", not: false, values: ["1000"] }], 5_000).started_from).toBe(4_000));
});

describe("values of the input", () => {
  const graz = { ...row, fields: { "input.customer.city": "Graz", "input.total": 12.5 } as unknown as NonNullable<RunItem["fields"]> };
  const clause = (value: string, not = false) => readClauses(`input=${encodeURIComponent(not ? `!${value}` : value)}`);

  it("are asked for along with the rows, and looked at here", () => {
    expect(inputFields(clause("customer.city=gra"))).toEqual(["input.customer.city"]);
    expect(question(clause("customer.city=gra"), 0)).toEqual({});
  });

  it("fit by a part of their text, and can be excluded", () => {
    const found = (value: string, not = false) => fits(graz, clause(value, not), 0);
    expect([found("customer.city=gra"), found("customer.city=wien"), found("total=12.5"), found("input.total="), found("size=")]).toEqual([true, false, true, true, false]);
    expect([found("customer.city=gra", true), found("customer.city=wien", true)]).toEqual([false, true]);
  });
});

describe("rows", () => {
  it.each([
    ["workflow", true, ["w"], false],
    ["workflow", true, ["other"], true],
    ["tag", true, ["a"], false],
    ["tag", false, ["a", "b"], true],
    ["tag", false, ["a", "c"], false],
    ["entity", true, ["order/7"], false],
  ] as const)("%s, excluding: %s, %j fits: %s", (field, not, values, shown) => expect(fits(row, [{ field, not, values }], 0)).toBe(shown));

  it("are stuck when nothing happened for long enough", () => {
    const stuck = [{ field: "stuck", not: false, values: ["500"] }] as const;
    expect(fits(row, stuck, 1_400)).toBe(false);
    expect(fits(row, stuck, 1_500)).toBe(true);
    expect(fits({ ...row, status: "completed" }, stuck, 9_000)).toBe(false);
  });

  it("follow the events of their run, each once", () => {
    const after = rowAfter(row, { type: "run.completed", seq: 4, at: 2_000 });
    expect(after).toMatchObject({ status: "completed", seq: 4, ended: 2_000 });
    expect(rowAfter(after, { type: "run.failed", seq: 4, at: 3_000 })).toBe(after);
  });
});
