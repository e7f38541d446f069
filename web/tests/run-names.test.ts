// What runs are called, links to other tools, large values, and what a filter by time hides.
import { describe, expect, test } from "vitest";
import { largeOf, shorten, sizeWords } from "@/model/large";
import { hiddenQuestion, LIVE, question } from "@/model/run-filter";
import { columnsOf, fieldsOf, linksOf, nameOf, templateOf, titled, valueAt } from "@/model/run-title";

describe("the name of a run", () => {
  const row = { run: "0123456789ab-cdef", key: null, entity: null };
  test("comes from the template of its workflow, with values of its input", () => {
    const template = templateOf({ title: "Order {id} of {input.customer.name}" }) as string;
    expect(fieldsOf(template)).toEqual(["input.id", "input.customer.name"]);
    const input = { id: 7, customer: { name: "Ana" } };
    expect(titled(template, (field) => valueAt(input, field))).toBe("Order 7 of Ana");
    expect(titled(template, (field) => valueAt({ id: 7 }, field))).toBe("Order 7 of –");
    expect(titled(template, () => undefined)).toBeNull();
  });
  test("is else its key, if a person gave it, whom it is about, or the end of its id", () => {
    expect(nameOf({ ...row, key: "order-7" })).toBe("order-7");
    expect(nameOf({ ...row, key: "9b2f3c1e-aaaa-4bbb-8ccc-1234567890ab", entity: "lead/4" })).toBe("lead/4");
    expect(nameOf({ ...row, key: "schedule:reports:1795012200000" })).toMatch(/^reports, /);
    expect(nameOf(row)).toBe("456789ab-cdef".slice(-12));
    expect(nameOf({ ...row, key: "k" }, "Order 7")).toBe("Order 7");
  });
  test("columns are values of the input", () => expect(columnsOf({ columns: ["customer", "input.total", 3] })).toEqual(["input.customer", "input.total"]));
});

test("links lead to the web alone, and what is put in cannot leave its place", () => {
  const links = (url: string) => linksOf({ links: [{ name: "Logs", url }] }, (name) => (name === "run" ? "a/b?c" : undefined));
  expect(links("https://logs.example/?q={run}&x={no}")).toEqual([{ name: "Logs", url: "https://logs.example/?q=a%2Fb%3Fc&x=" }]);
  expect(links("javascript:alert(1)")).toEqual([]);
  expect(links("https://{run}")).toEqual([]);
  expect(linksOf({ links: "none" }, () => "")).toEqual([]);
});

test("a large value of an event becomes a preview, and its place stays", () => {
  const text = "x".repeat(150_000);
  const event = shorten({ seq: 1, type: "context.updated", writes: [[["state", "a"], text], [["state", "b"], 1]] as [string[], unknown][] });
  expect(event.writes[1]).toEqual([["state", "b"], 1]);
  expect(event.writes[0]?.[0]).toEqual(["state", "a"]);
  expect(largeOf(event.writes[0]?.[1])).toEqual({ bytes: 150_002, preview: `"${"x".repeat(19_999)}` });
  expect(largeOf({ $large: "no" })).toBeNull();
  expect(sizeWords(20_100_000)).toBe("20.1 MB");
});

test("a filter by time has a question for the live runs it hides", () => {
  const started = { field: "started", not: false, values: ["3600000"] } as const;
  expect(hiddenQuestion([started, { field: "workflow", not: false, values: ["w"] }], 10_000_000)).toEqual({ workflow: "w", status: LIVE, started_until: 6_400_000 });
  expect(hiddenQuestion([started, { field: "status", not: false, values: ["failed"] }], 0)).toBeNull();
  expect(hiddenQuestion([], 0)).toBeNull();
  expect(question([{ field: "waiting", not: false, values: ["retry"] }], 0)).toEqual({ waiting: ["retry"] });
});
