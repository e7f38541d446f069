// The run page stays true: ten tabs, a reload, a cut line, the slider beside the server's own fold.
import { expect, signIn, test, Watch } from "./fixtures";
import { Line } from "./line";
import { answer, gateOf, lengthOf, PANEL, ROUND, started } from "./workflows";

const LIVE_TONES = ["active", "wait", "ask", "queued", "retry"];

test("41 · ten tabs have one stream, and all of them are live", async ({ signedIn: page, server }) => {
  test.setTimeout(240_000);
  const run = await started(server, PANEL, "e2e-panel");
  await gateOf(server, run);
  const tabs = [page];
  for (let more = 1; more < 10; more++) tabs.push(await page.context().newPage());
  for (const tab of tabs) await tab.goto(`${server.url}/runs/${run}`);
  for (const tab of tabs) await expect(tab.locator(".run-live")).toHaveText("live");
  const metrics = await (await fetch(`${server.url}/metrics`, { headers: { Authorization: `Bearer ${server.key}` } })).text();
  expect(/^treadle_stream_readers (\S+)/m.exec(metrics)?.[1]).toBe("1.0");
  await answer(server, run);
  for (const tab of tabs) await expect(tab.locator(".run-top")).toContainText("completed");
  for (const tab of tabs.slice(1)) await tab.close();
});

test("18 · a reload in the middle shows the same run, the same selection, and goes on", async ({ signedIn: page, server }) => {
  const run = await started(server, PANEL, "e2e-panel");
  await page.goto(`${server.url}/runs/${run}`);
  await page.locator('[data-node="judge"]').click();
  await expect(page).toHaveURL(/node=judge/);
  await page.reload();
  await expect(page.getByRole("region", { name: "judge" })).toBeVisible();
  await expect(page.locator('[data-node="judge"]')).toHaveAttribute("aria-pressed", "true");
  await answer(server, run);
  await expect(page.locator(".run-top")).toContainText("completed");
  await expect(page.locator(".run-live")).toContainText(`all ${await lengthOf(server, run)} events`);
});

test("2 · a line that was cut is mended without a missing or repeated event", async ({ page, server }) => {
  const line = new Line(server.url);
  await line.open();
  const watch = new Watch(page, line.url);
  watch.allow(/ERR_/);
  await signIn(page, { ...server, url: line.url, key: server.key } as typeof server);
  const run = await started(server, PANEL, "e2e-panel");
  await page.goto(`${line.url}/runs/${run}`);
  await expect(page.getByRole("region", { name: "Waiting" })).toContainText("approve");
  await expect(page.locator(".run-live")).toHaveText("live");
  line.cut();
  await expect(page.locator(".run-live")).toContainText("offline since");
  await answer(server, run); // while the page hears nothing
  const length = await lengthOf(server, run);
  line.mend();
  await expect(page.locator(".run-live")).toContainText(`all ${length} events`, { timeout: 30_000 });
  await page.getByRole("tab", { name: /History/ }).click();
  await page.locator(".run-hy-body").evaluate((body) => (body.scrollTop = body.scrollHeight));
  const shown = (await page.locator(".run-hy-row > span:first-child").allTextContents()).map(Number).sort((a, b) => a - b);
  expect(shown.at(-1)).toBe(length);
  expect(shown).toEqual(Array.from({ length: shown.length }, (_, at) => length - shown.length + 1 + at));
  expect(watch.verdict()).toEqual([]);
  line.close();
});

test("19 · the slider shows at the end of every decision what the server folds", async ({ signedIn: page, server }) => {
  const run = await started(server, PANEL, "e2e-panel");
  await gateOf(server, run);
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.locator(".run-live")).toHaveText("live");
  const length = await lengthOf(server, run);
  const thumb = page.getByRole("slider", { name: "Moment of the run" });
  await thumb.focus();
  await page.keyboard.press("Home");
  const { items: ends } = await server.api<{ items: number[] }>("GET", `/runs/${run}/decisions`); // the server's states are those at ends of decisions
  let at = 1;
  for (const seq of ends.filter((end) => end < length)) {
    for (; at < seq; at++) await page.keyboard.press("ArrowRight");
    await expect(thumb).toHaveAttribute("aria-valuenow", String(seq));
    const state = await server.api<{ status: string; counts: Record<string, number>; visits: { node: string; status: string }[]; gates: unknown[] }>("GET", `/runs/${run}/state?seq=${seq}`);
    await expect(page.locator(".run-top .badge").first()).toContainText(state.status);
    const live = new Set(state.visits.filter((visit) => visit.status !== "failed").map((visit) => visit.node));
    const ended = Object.entries(state.counts).filter(([status]) => status === "completed").reduce((sum, [, count]) => sum + count, 0);
    for (const node of ["brief", "approve", "publish"]) {
      const tone = await page.locator(`[data-node="${node}"]`).getAttribute("data-tone");
      expect([...LIVE_TONES, "idle"].includes(tone ?? "") && (await page.locator(`[data-node="${node}"] .sr`).first().textContent())?.includes("1 visit") === true, `${node} at ${seq}`).toBe(live.has(node));
    }
    const spoken = (await page.locator(".run-node .sr").allTextContents()).join(" ");
    const visits = [...spoken.matchAll(/(\d+) visits?/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    expect(visits, `visits at ${seq}`).toBe(Object.values(state.counts).reduce((sum, count) => sum + count, 0));
    expect(ended).toBeLessThanOrEqual(visits);
  }
  await page.keyboard.press("End");
  await expect(page.locator(".run-live")).toHaveText("live");
});

test("16 · a pinned iteration is shown by every view, and every iteration can be reached", async ({ signedIn: page, server }) => {
  const run = await started(server, ROUND, "e2e-round");
  await page.goto(`${server.url}/runs/${run}`);
  const picker = page.getByRole("group", { name: "Iteration" });
  await expect(picker).toContainText("all 3 iterations");
  await expect(page.locator('[data-node="draft"]')).toContainText("×3");
  await picker.getByRole("button", { name: "Next iteration" }).click();
  await expect(picker).toContainText("iteration 1 of 3");
  await expect(page).toHaveURL(/iteration=again(~|%7E)1/);
  await expect(page.locator('[data-node="draft"]')).not.toContainText("×3");
  await expect(page.locator('[data-node="end"] .sr').first()).toContainText("not visited");
  await page.reload();
  await expect(picker).toContainText("iteration 1 of 3");
  await picker.getByRole("button", { name: "Next iteration" }).click();
  await picker.getByRole("button", { name: "Next iteration" }).click();
  await expect(picker).toContainText("iteration 3 of 3");
  await expect(page.locator('[data-node="end"] .sr').first()).toContainText("1 visit");
  await picker.getByRole("button", { name: "All" }).click();
  await expect(page.locator('[data-node="draft"]')).toContainText("×3");
});
