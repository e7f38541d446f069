// How soon a problem is seen where it is: in the graph, in the inspector, in the list with its line, in the text.
import { judged, kept, othersUse, p95, threadMs, unasked } from "./bars";
import { expect, test } from "./fixtures";

const TEXT = "workflow: wrong\nnodes:\n  a: {}\n  b: {input_mapping: {x: $.state}}\ntransitions:\n  - {from: a, to: b}\n";
const CODE = "UNWRITTEN_READ";

test("34 · one code stands in the graph, in the inspector, in the list and at the line 300 ms after the keystroke", async ({ signedIn: page, server }) => {
  test.setTimeout(180_000);
  await page.goto(`${server.url}/workflows/new`);
  await page.locator(".cm-content").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(TEXT);
  await page.getByRole("button", { name: /^b, / }).click(); // the inspector shows b, also while its line is edited
  await page.locator(".cm-line", { hasText: "input_mapping" }).click();
  await page.keyboard.press("End");
  for (let back = 0; back < 2; back++) await page.keyboard.press("ArrowLeft");
  await page.evaluate((code) => {
    const times = ((window as unknown as { problemTimes: number[] }).problemTimes = []) as number[];
    const isThere = (): boolean =>
      document.querySelector(`[data-node="b"]`)?.parentElement?.querySelector(`.ed-node-wrong[title*="${code}"]`) != null &&
      document.querySelector(".ed-problems")?.textContent?.includes(code) === true &&
      document.querySelector(".cm-lintRange-error") !== null &&
      [...document.querySelectorAll("aside, .ed-side, .ed-inspector")].some((one) => one.textContent?.includes(code));
    document.querySelector(".cm-content")?.addEventListener("keydown", (event) => {
      if ((event as KeyboardEvent).key !== "e") return; // the last letter of `.nope`
      const began = performance.now();
      const look = (): void => void requestAnimationFrame(() => (isThere() ? times.push(performance.now() - began) : look()));
      look();
    }, true);
  }, CODE);
  const turns = unasked[0] ? 1 : 20;
  const others = [await othersUse()];
  const before = await threadMs(page);
  for (let turn = 1; turn <= turns; turn++) {
    await page.keyboard.type(".nope");
    await expect.poll(() => page.evaluate(() => (window as unknown as { problemTimes: number[] }).problemTimes.length)).toBe(turn);
    for (let back = 0; back < 5; back++) await page.keyboard.press("Backspace");
    await expect(page.locator(".cm-lintRange-error")).toHaveCount(0);
  }
  if (unasked[0]) return;
  const each = ((await threadMs(page)) - before) / turns;
  others.push(await othersUse());
  const times = (await page.evaluate(() => (window as unknown as { problemTimes: number[] }).problemTimes)).map(Math.round);
  kept("problems", { p50: times.toSorted((a, b) => a - b)[10], p95: p95(times), most: Math.max(...times), processorEach: Math.round(each), others });
  judged("from the keystroke to the problem in all places, at the 95th,", p95(times), 300, ...others);
});
