// What people type into forms, as values, and back.
import { expect, test } from "vitest";
import { durationGiven, durationWritten, listGiven, valueGiven, valueWritten } from "@/model/given";

test("durations are read with their units, and nothing else is", () => {
  expect(["90 s", "1h 30m", "2d", "15 min", "0.5h"].map(durationGiven)).toEqual([90_000, 5_400_000, 172_800_000, 900_000, 1_800_000]);
  expect(["", "5", "soon", "1h and more", "0 s", "-1 h"].map(durationGiven)).toEqual([null, null, null, null, null, null]);
});

test("a written duration is read as itself", () => {
  for (const ms of [1, 1_500, 90_000, 5_400_000, 90_061_001]) expect(durationGiven(durationWritten(ms))).toBe(ms);
});

test("a value is JSON or a text, and comes back as what it was", () => {
  expect(valueGiven("$.body.id")).toBe("$.body.id");
  expect(valueGiven(' {"a": 1} ')).toEqual({ a: 1 });
  expect(valueGiven("  ")).toBeUndefined();
  expect(() => valueGiven('{"a": ')).toThrow("not JSON");
  for (const value of ["$.body", "5", "true", '{"x"', { a: [1] }, 7, false]) expect(valueGiven(valueWritten(value))).toEqual(value);
});

test("lists are words", () => expect(listGiven(" run.*, custom.order.*\n gate.opened ")).toEqual(["run.*", "custom.order.*", "gate.opened"]));
