import { describe, expect, it } from "vitest";
import { duration, iso, relative } from "@/model/time";

describe("durations", () => {
  it.each([
    [0, "0 ms"],
    [350, "350 ms"],
    [1_234, "1.2 s"],
    [999.7, "1.0 s"],
    [9_960, "10 s"],
    [59_400, "59 s"],
    [59_700, "1 m"],
    [125_000, "2 m 5 s"],
    [3_600_000, "1 h"],
    [11_520_000, "3 h 12 m"],
    [352_800_000, "4 d 2 h"],
  ])("%i ms reads %s", (ms, words) => expect(duration(ms)).toBe(words));
});

it("tells the past from the future", () => {
  expect(relative(1_000, 181_000)).toBe("3 m ago");
  expect(relative(7_201_000, 1_000)).toBe("in 2 h");
});

it("copies times in UTC", () => expect(iso(0)).toBe("1970-01-01T00:00:00.000Z"));
