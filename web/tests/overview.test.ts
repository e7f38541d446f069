import { expect, it } from "vitest";
import { buckets, durations, failsMost, median } from "@/model/overview";
import type { RunItem } from "@/model/run-filter";

const row = (over: Partial<RunItem>): RunItem => ({ run: "r", workflow: "w", version: 1, status: "completed", seq: 1, started: 0, changed: 0, ended: 0, key: null, entity: null, tags: [], parent: null, fields: {}, number: 1, ...over });

it("counts each start once, in its part of the span", () => {
  const parts = buckets([row({ started: 0 }), row({ started: 9 }), row({ started: 10, status: "failed" }), row({ started: 20 })], 0, 20, 2);
  expect(parts.map(({ started, failed }) => [started, failed])).toEqual([[2, 0], [1, 1]]);
});

it("ranks workflows by their failures and names the newest failed run", () => {
  const ranked = failsMost([row({ workflow: "a", status: "failed", run: "1", changed: 1 }), row({ workflow: "b", status: "timed_out", run: "2" }), row({ workflow: "a", status: "failed", run: "3", changed: 5 }), row({ workflow: "a" }), row({ workflow: "c" }), row({ workflow: "a", status: "running" })]);
  expect(ranked.map((one) => [one.workflow, one.failed, one.ended, one.last.run])).toEqual([["a", 2, 3, "3"], ["b", 1, 1, "2"]]);
});

it("knows the middle of odd and even counts, and of none", () => expect([median([3, 1, 2]), median([1, 2, 3, 10]), median([])]).toEqual([2, 2.5, null]));

it("tells how long completed runs took by when they ended, and leaves out parts without any", () => {
  const took = (started: number, ended: number | null, status = "completed") => row({ started, ended, status });
  const parts = durations([took(0, 10), took(0, 30), took(5, 35), took(0, 70, "failed"), took(60, null, "running"), took(90, 100)], 0, 100, 2);
  expect(parts).toEqual([{ from: 0, ended: 3, p50: 30, p95: 30 }, { from: 50, ended: 1, p50: 10, p95: 10 }]);
});
