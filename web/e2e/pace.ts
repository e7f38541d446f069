// How much work the page's main thread does in each frame, from Chromium's own trace.
//
// Counted is the processor time of the thread, not the time on the wall: on a machine that others use too, a task that
// was interrupted is no longer for it. Script and layout of one frame are the outermost such events since the frame
// before. Painting and rasterising are left out: without a GPU they measure the machine.
import type { Page } from "@playwright/test";
import { writeFileSync } from "node:fs";

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly ts: number;
  readonly pid: number;
  readonly tid: number;
  readonly dur?: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string; readonly data?: { readonly type?: string } };
}

export interface Pace {
  readonly frames: number;
  readonly seconds: number;
  /** Milliseconds of script and layout in a frame. */
  readonly p50: number;
  readonly p95: number;
  readonly most: number;
  /** The longest task, in milliseconds of processor time and on the wall. */
  readonly longest: number;
  readonly longestWall: number;
}

const WORK = new Set([
  "FunctionCall", "EvaluateScript", "TimerFire", "FireAnimationFrame", "EventDispatch", "RunMicrotasks", "HandlePostMessage", "XHRReadyStateChange", "v8.callFunction",
  "MinorGC", "MajorGC", "UpdateLayoutTree", "Layout", "PrePaint", "IntersectionObserverController::computeIntersections", "ResizeObserverController",
]);

/** Traces the page while `during` goes on. */
export async function paceOf(page: Page, during: () => Promise<void>): Promise<Pace> {
  const session = await page.context().newCDPSession(page);
  const events: TraceEvent[] = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...(value as unknown as TraceEvent[])));
  const over = new Promise<void>((resolve) => session.once("Tracing.tracingComplete", () => resolve()));
  const categories = ["devtools.timeline", "devtools.timeline.frame", "disabled-by-default-devtools.timeline.frame", "toplevel", "disabled-by-default-devtools.timeline", "v8", "__metadata"];
  await session.send("Tracing.start", { traceConfig: { includedCategories: categories, excludedCategories: ["*"] }, transferMode: "ReportEvents" });
  await during();
  await session.send("Tracing.end");
  await over;
  await session.detach();
  if (process.env["TREADLE_TEST_TRACE"] !== undefined) writeFileSync(process.env["TREADLE_TEST_TRACE"], JSON.stringify(events)); // for the performance panel
  return read(events);
}

function read(events: readonly TraceEvent[]): Pace {
  const threads = new Set(events.filter((one) => one.name === "thread_name" && one.args?.name === "CrRendererMain").map((one) => `${one.pid} ${one.tid}`));
  const count = (key: string) => events.filter((one) => one.name === "FireAnimationFrame" && `${one.pid} ${one.tid}` === key).length;
  const main = [...threads].sort((a, b) => count(b) - count(a))[0];
  const mine = events.filter((one) => one.ph !== "M" && `${one.pid} ${one.tid}` === main).sort((a, b) => a.ts - b.ts || (b.dur ?? 0) - (a.dur ?? 0));
  const frames: number[] = [];
  let [sum, until, isOpen] = [0, 0, false];
  for (const one of mine) {
    if (one.name === "BeginMainThreadFrame") {
      if (isOpen) frames.push(sum / 1_000);
      [sum, isOpen] = [0, true];
    }
    if (one.ph !== "X" || !WORK.has(one.name) || one.ts < until) continue; // inside one that is counted already
    until = one.ts + (one.dur ?? 0);
    sum += one.tdur ?? one.dur ?? 0;
  }
  const tasks = mine.filter((one) => one.ph === "X" && (one.name === "RunTask" || one.name === "ThreadControllerImpl::RunTask"));
  const sorted = frames.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  const [first, last] = [mine[0]?.ts ?? 0, mine.at(-1)?.ts ?? 0];
  const round = (ms: number) => Math.round(ms * 10) / 10;
  return {
    frames: frames.length, seconds: round((last - first) / 1e6), p50: round(at(0.5)), p95: round(at(0.95)), most: round(sorted.at(-1) ?? 0),
    longest: round(Math.max(0, ...tasks.map((one) => one.tdur ?? one.dur ?? 0)) / 1_000), longestWall: round(Math.max(0, ...tasks.map((one) => one.dur ?? 0)) / 1_000),
  };
}
