// What the live runs of a list wait for, in one sentence each. Asked for the rows that are there, a few at a time, and
// again some time after their run moved on.
import { useEffect, useRef, useState } from "react";
import { api, given } from "@/api/client";
import type { components } from "@/api/schema";
import { ENDED, type RunItem } from "@/model/run-filter";
import { queuedWords, type Queued } from "@/model/queue";
import { WAITS } from "@/model/run-look";
import { runLook, visitLook, type Look } from "@/model/states";
import { soon } from "@/model/time";

type Detail = components["schemas"]["RunDetail"];
export interface Sentence {
  readonly look: Look;
  readonly text: string;
  /** Nothing of the run is at work: waiting is all it does. */
  readonly isAll: boolean;
}

const AT_ONCE = 4;
const SETTLE_MS = 800;

export function sentenceOf(detail: Pick<Detail, "waiting" | "counts">): Sentence | null {
  const [first] = detail.waiting;
  if (first === undefined) return null;
  const until = first.until == null ? "" : `, until ${soon(first.until)}`;
  const more = detail.waiting.length > 1 ? `, and ${detail.waiting.length - 1} more` : "";
  const look = visitLook("waiting", first.for);
  return { look, text: `${first.node}: ${waitingWords(first)}${until}${more}`, isAll: (detail.counts["executing"] ?? 0) + (detail.counts["pending"] ?? 0) === 0 };
}

type Wait = Detail["waiting"][number];

/** Whom or what a visit waits for, with its name where it has one. */
function waitingWords(wait: Wait): string {
  const ends = wait.ends_by[0];
  const detail = (wait.detail ?? {}) as { title?: unknown; signal?: unknown };
  if (wait.for === "human" && typeof detail.title === "string" && detail.title !== "") return detail.title;
  if (wait.for === "signal" && typeof detail.signal === "string") return `waits for the signal ${detail.signal}`;
  if (wait.for === "queue" && ends?.queue != null) return `waits in the queue ${ends.queue}`;
  return `waits ${WAITS[wait.for] ?? `for ${wait.for}`}`;
}

/** The line of a workflow, asked once for all of its rows. */
function lineOf(name: string, lines: Map<string, Promise<readonly Queued[]>>): Promise<readonly Queued[]> {
  const asked = lines.get(name) ?? given(api.GET("/api/v1/workflows/{name}/queue", { params: { path: { name }, query: { limit: 1_000 } } })).then((found) => found.items as Queued[]);
  lines.set(name, asked);
  return asked;
}

export function useWaiting(rows: readonly RunItem[]): ReadonlyMap<string, Sentence | null> {
  const [known, setKnown] = useState<ReadonlyMap<string, Sentence | null>>(new Map());
  const asked = useRef(new Map<string, number>());
  const live = rows.filter((row) => !ENDED.has(row.status));
  const signature = live.map((row) => `${row.run}@${row.seq}`).join(" ");
  useEffect(() => {
    let over = false;
    const due = live.filter((row) => asked.current.get(row.run) !== row.seq);
    const timer = setTimeout(() => {
      const queue = [...due];
      const lines = new Map<string, Promise<readonly Queued[]>>();
      const worker = async () => {
        for (let row = queue.shift(); row !== undefined && !over; row = queue.shift()) {
          asked.current.set(row.run, row.seq);
          const run = row.run;
          try {
            if (row.status === "queued") {
              const line = await lineOf(row.workflow, lines);
              const mine = line.find((one) => one.run === run);
              if (!over && mine !== undefined) setKnown((before) => new Map(before).set(run, { look: runLook("queued"), text: queuedWords(mine, Date.now()), isAll: false }));
              continue;
            }
            const detail = await given(api.GET("/api/v1/runs/{run}", { params: { path: { run } } }));
            if (!over) setKnown((before) => new Map(before).set(run, sentenceOf(detail)));
          } catch {
            // The row stays without a sentence; its next event asks again.
          }
        }
      };
      for (let one = 0; one < AT_ONCE; one += 1) void worker();
    }, asked.current.size === 0 ? 0 : SETTLE_MS);
    return () => {
      over = true;
      clearTimeout(timer);
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the signature says when the live rows changed
  }, [signature]);
  return known;
}
