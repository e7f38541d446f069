// Bars of time: judged where the browser has its processor, noted where others use it.
import type { CDPSession, Page } from "@playwright/test";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { expect, test } from "./fixtures";

/** For `test.skip`: benches run only when they are asked for. */
export const unasked = [process.env["TREADLE_TEST_PACE"] === undefined, "measures, so it wants a quiet machine: TREADLE_TEST_PACE=1 ./dev web browse e2e/…"] as const;

const SAMPLE_MS = 500;
const MINE = 0.2; // of all processors: what a browser and a service use that have nothing to do

function ticks(): { idle: number; all: number } {
  const times = cpus().map((one) => one.times);
  const sum = (of: (one: (typeof times)[number]) => number) => times.reduce((total, one) => total + of(one), 0);
  return { idle: sum((one) => one.idle), all: sum((one) => one.user + one.nice + one.sys + one.idle + one.irq) };
}

/** How much of the processors others use: asked while the test itself does nothing. */
export async function othersUse(): Promise<number> {
  const before = ticks();
  await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
  const after = ticks();
  return 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all);
}

/** Keeps the figures of a bench beside those of the others. */
export function kept(name: string, figures: object): void {
  mkdirSync("artefacts", { recursive: true });
  writeFileSync(`artefacts/pace-${name}.json`, `${JSON.stringify(figures, null, 2)}\n`);
  console.log(`${name}: ${JSON.stringify(figures)}`);
}

/** A time on the wall is judged if others left the processors alone before and after it; else it is noted. */
export function judged(what: string, ms: number, bar: number, ...others: readonly number[]): void {
  const most = Math.max(0, ...others);
  if (most <= MINE) expect(ms, what).toBeLessThanOrEqual(bar);
  else test.info().annotations.push({ type: "busy machine", description: `others use ${Math.round(most * 100)} % of the processors: ${what} took ${Math.round(ms)} ms of at most ${bar}, and is not judged` });
}

export const p95 = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * 0.95))] ?? 0;

const sessions = new WeakMap<Page, Promise<CDPSession>>();

async function opened(page: Page): Promise<CDPSession> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return session;
}

/** Milliseconds of processor time that the page's main thread has used in tasks since it was navigated to. */
export async function threadMs(page: Page): Promise<number> {
  const session = sessions.get(page) ?? opened(page);
  sessions.set(page, session);
  const { metrics } = await (await session).send("Performance.getMetrics");
  return (metrics.find((one) => one.name === "TaskDuration")?.value ?? 0) * 1_000;
}
