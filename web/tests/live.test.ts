// The one chip that says how complete the picture of a run is.
import { expect, test } from "vitest";
import { Folding } from "@/model/fold";
import { liveOf } from "@/views/run/header";
import type { Seen } from "@/views/run/store";

const folding = new Folding();
folding.add([{ seq: 1, at: 0, type: "run.started", run: "r", workflow: "w", version: 1 }]);
const seen = (fields: Partial<Seen>): Seen => ({ state: folding.newest, folding, cursor: null, head: 1, loaded: true, feed: { kind: "live" }, ...fields }) as Seen;

test("3 · it says loading, live, behind by how many, offline since when, replaying, or all", () => {
  expect(liveOf(seen({ loaded: false, head: 20 }))).toEqual({ kind: "loading", words: "loading 1 of 20" });
  const ends = new Folding();
  ends.add(folding.events);
  ends.keep([{ seq: 19, at: 0, type: "custom.x" }, { seq: 20, at: 0, type: "custom.x" }]);
  expect(liveOf(seen({ loaded: false, head: 20, folding: ends })).words).toBe("loading 3 of 20"); // of both ends together
  expect(liveOf(seen({}))).toEqual({ kind: "live", words: "live" });
  expect(liveOf(seen({ head: 1_235 }))).toEqual({ kind: "behind", words: `behind ${(1_234).toLocaleString()}` });
  expect(liveOf(seen({ feed: { kind: "offline", since: 0 }, head: 9 })).words).toMatch(/^offline since /);
  expect(liveOf(seen({ cursor: 1 }))).toEqual({ kind: "replaying", words: "replaying" });
  expect(liveOf(seen({ state: { ...folding.newest, ended: 5 } }))).toEqual({ kind: "all", words: "all 1 events" });
});
