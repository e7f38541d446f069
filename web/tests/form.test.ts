import { describe, expect, it } from "vitest";
import { dataOf, entriesOf, fieldsOf, leaves, summary, type Field } from "@/model/form";
import { check, isWrong, refused } from "@/model/form-check";

const FORM = {
  type: "object",
  required: ["decision", "share"],
  "x-order": ["decision", "share"],
  properties: {
    note: { type: "string", maxLength: 500, "x-help": "Sent by mail." },
    share: { type: "integer", minimum: 0, maximum: 100, title: "Share of the price", default: 100 },
    decision: { oneOf: [{ const: "refund", title: "Refund", description: "money back" }, { const: "refuse" }] },
    cause: { enum: ["a", "b", "c", "d", "e", "f"] },
    parts_back: { type: "boolean" },
    tags: { type: "array", items: { type: "string" } },
    amounts: { type: "array", items: { type: "number" } },
    ways: { type: "array", items: { enum: ["mail", "phone"] } },
    address: { $ref: "#/$defs/address" },
    when: { type: "string", format: "date" },
    secret: { type: "string", default: "kept", "x-widget": "hidden" },
    free: { type: "array", items: { type: "object" } },
  },
  $defs: { address: { type: "object", required: ["city"], properties: { city: { type: "string", minLength: 1 }, zip: { type: "string" } } } },
};
const fields = fieldsOf(FORM);
const field = (name: string): Field => leaves(fields).find((one) => one.name === name)!;

describe("fields", () => {
  it("have a widget after their schema, and the order that is asked for", () => {
    expect(fields.slice(0, 2).map((one) => one.name)).toEqual(["decision", "share"]);
    expect(Object.fromEntries(leaves(fields).map((one) => [one.name, one.widget]))).toEqual({
      decision: "radio", share: "number", note: "textarea", cause: "select", parts_back: "checkbox", tags: "list", amounts: "list",
      ways: "checkboxes", "address/city": "text", "address/zip": "text", when: "date", secret: "hidden", free: "json",
    });
  });

  it("have labels, help and limits", () => {
    expect(field("share")).toMatchObject({ label: "Share of the price", required: true, limits: { min: 0, max: 100 } });
    expect(field("parts_back").label).toBe("Parts back");
    expect(field("note").help).toBe("Sent by mail.");
    expect(field("decision").choices).toEqual([
      { text: "refund", value: "refund", label: "Refund", help: "money back" },
      { text: "refuse", value: "refuse", label: "Refuse", help: null },
    ]);
  });

  it("are none without a form, one for a form that is no object, and yes or no where that must be decided", () => {
    expect(fieldsOf(null)).toEqual([]);
    expect(fieldsOf({})).toEqual([]);
    expect(fieldsOf({ type: "number" })).toMatchObject([{ name: "data", path: [], widget: "number" }]);
    expect(fieldsOf({ properties: { ok: { type: "boolean" } }, required: ["ok"] })).toMatchObject([{ widget: "radio" }]);
  });

  it("end for a schema that refers to itself and for schemas that are none", () => {
    const loop = { type: "object", properties: { me: { $ref: "#" }, odd: true } };
    expect(leaves(fieldsOf(loop)).length).toBeLessThan(20);
    expect(fieldsOf({ $ref: "#/nowhere" })).toMatchObject([{ widget: "json" }]);
  });
});

describe("data", () => {
  it("is made of entries, without what was left empty", () => {
    const given = { decision: "refund", amounts: [1.5, 2], address: { city: "Ulm" } };
    expect(dataOf(fields, entriesOf(fields, given as never))).toMatchObject(given); // what was answered before comes back into its fields
    const entries = { ...entriesOf(fields), decision: "refund", note: " ", tags: ["a", "", "b "], amounts: ["1.5", "x"], "address/city": "Ulm", ways: ["mail"], parts_back: "false", free: '[{"a": 1}]' };
    expect(dataOf(fields, entries)).toEqual({
      decision: "refund", share: 100, parts_back: false, tags: ["a", "b"], amounts: [1.5, "x"], ways: ["mail"], address: { city: "Ulm" }, secret: "kept", free: [{ a: 1 }],
    });
  });

  it("of a form that is no object is the value itself", () => {
    const one = fieldsOf({ enum: [1, null, "x"] });
    expect([dataOf(one, { data: "1" }), dataOf(one, { data: "null" }), dataOf(one, {})]).toEqual([1, null, null]);
  });

  it("takes names that objects have by nature for what they are", () => {
    const odd = fieldsOf({ properties: { constructor: { type: "string" }, "a/b": { type: "string" } } });
    expect(dataOf(odd, {})).toEqual({});
    expect(dataOf(odd, { "a~1b": "x" })).toEqual({ "a/b": "x" });
  });
});

describe("what is wrong", () => {
  it("stands at its field in words", () => {
    const wrong = check(FORM, fields, { share: 120, tags: [], address: { city: "" }, when: "tomorrow", note: "n".repeat(501) });
    expect(Object.fromEntries(wrong.fields)).toEqual({
      decision: "This is needed.", share: "At most 100.", "address/city": "This is needed.", when: "This must be a valid date.", note: "At most 500 characters.",
    });
    expect(wrong.rest).toEqual([]);
  });

  it("is nothing for what fits, and what cannot be checked is left to the service", () => {
    expect(isWrong(check(FORM, fields, { decision: "refund", share: 5 }))).toBe(false);
    expect(isWrong(check({ type: "string", pattern: "(" }, [], "x"))).toBe(false);
    expect(isWrong(check(null, [], 1))).toBe(false);
  });

  it("comes from the service at the same places", () => {
    const wrong = refused(fields, [
      { place: "$.address.city", message: "is required" },
      { place: "$.tags[1]", message: "is no text" },
      { place: '$["odd name"]', message: "is not known" },
      { place: null, message: "is wrong as a whole" },
    ]);
    expect(Object.fromEntries(wrong.fields)).toEqual({ "address/city": "Is required", tags: "Is no text" });
    expect(wrong.rest).toEqual(["odd name: Is not known", "Is wrong as a whole"]);
  });
});

it("an answer is told in a line", () => {
  expect(summary(fields, { decision: "refund", share: 80, parts_back: true })).toBe("Refund, Share of the price: 80, Parts back: yes");
  expect(summary([], { a: 1 })).toBe("A: 1");
  expect(summary([], null)).toBe("nothing");
});
