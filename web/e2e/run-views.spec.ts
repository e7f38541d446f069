// What the run page shows of attempts, groups that grow, differences, reports of work, joins, and large values.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "./fixtures";
import { claim, HANDS, started, statusOf } from "./workflows";

test("8 · every attempt has a bar of its own, with its error, and the backoff between them", async ({ signedIn: page, server }) => {
  const run = await started(server, "workflow: e2e-tries\nnodes:\n  check: {queue: hands, action: {kind: work, name: check}, retry: {max_attempts: 3, initial_delay_ms: 50}}\n", "e2e-tries");
  for (const message of ["first torn", "second torn"]) {
    const [task] = await claim(server, 1);
    await server.api("POST", `/tasks/${task?.task}/fail`, { error: { kind: "TORN", message, retryable: true } });
  }
  const [last] = await claim(server, 1);
  await server.api("POST", `/tasks/${last?.task}/complete`, { output: {} });
  await expect.poll(statusOf(server, run)).toBe("completed");
  await page.goto(`${server.url}/runs/${run}`);
  const bars = page.getByRole("region", { name: "Timeline" });
  await expect(bars.locator(".run-bar.fail")).toHaveCount(2);
  await expect(bars.locator(".run-bar.backoff")).toHaveCount(2);
  await expect(bars.locator(".run-bar.done")).toHaveCount(1);
  await expect(bars.locator(".run-bar.fail").nth(0)).toHaveAttribute("title", /TORN: first torn/);
  await expect(bars.locator(".run-bar.fail").nth(1)).toHaveAttribute("title", /try 2: TORN: second torn/);
  await page.locator('[data-node="check"]').click();
  await page.getByRole("tab", { name: "Attempts" }).click();
  await expect(page.locator(".run-tries tr")).toHaveCount(3);
});

test("17 · a group that grows while the run is watched grows on the same graph", async ({ signedIn: page, server }) => {
  const run = await started(server, `
workflow: e2e-grow
start: a
nodes:
  a: {action: {kind: set, values: {items: [1, 2]}}, output_mapping: {state.items: $.items}}
  b: {queue: hands, action: {kind: work, name: b}}
  c: {}
transitions:
  - {id: t1, from: a, to: b, open: true, foreach: {collection: state.items, item_var: it}}
  - {from: b, to: c, synchronization: {sibling_group: t1}}
`, "e2e-grow");
  await page.goto(`${server.url}/runs/${run}`);
  const nodes = page.locator("[data-node]");
  await expect(page.locator('[data-node="b"]')).toContainText("×2");
  const before = await nodes.count();
  await page.locator('[data-node="b"]').click();
  await page.getByRole("button", { name: "Add branches…" }).click();
  await page.getByRole("dialog").getByLabel("or items, as a JSON list").fill("[3, 4, 5]");
  await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.locator('[data-node="b"]')).toContainText("×5");
  await expect(nodes).toHaveCount(before); // branches never become nodes
  for (const task of await claim(server, 5)) await server.api("POST", `/tasks/${task.task}/complete`, { output: {} });
  await expect(page.locator(".run-top")).toContainText("completed");
});

test("14 · a join shows its branches by index, and each leads to its visit or its kind", async ({ signedIn: page, server }) => {
  const run = await started(server, HANDS.replaceAll("e2e-hands", "e2e-join").replace(", on_branch_failure: fail", ""), "e2e-join");
  const tasks = await claim(server, 3);
  await server.api("POST", `/tasks/${tasks[1]?.task}/complete`, { output: {} });
  await page.goto(`${server.url}/runs/${run}`);
  const gather = page.locator('[data-node="gather"]');
  await expect(gather.locator("[data-pick]")).toHaveText(["[0]", "[1]", "[2]"]);
  await gather.locator('[data-pick="1"]').click();
  await expect(page).toHaveURL(new RegExp(`visit=${tasks[1]?.visit}`));
  await gather.click({ position: { x: 12, y: 12 } });
  const panel = page.getByRole("region", { name: "gather" });
  await panel.getByRole("button", { name: "Missing" }).click();
  await expect(page).toHaveURL(/branches=missing/);
  await expect(panel.locator(".run-list-row")).toHaveCount(2);
  await panel.getByRole("button", { name: "Arrived" }).click();
  await expect(panel.locator(".run-list-row")).toHaveCount(1);
  for (const task of [tasks[0], tasks[2]]) await server.api("POST", `/tasks/${task?.task}/complete`, { output: {} });
  await expect(page.locator(".run-top")).toContainText("completed");
});

test("20 · what changed is shown for each event and between any two, and its path is copied", async ({ signedIn: page, server }) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const run = await started(server, `
workflow: e2e-diff
nodes:
  a: {action: {kind: set, values: {x: 1}}, output_mapping: {state.x: $.x}}
  b: {action: {kind: set, values: {x: 2}}, output_mapping: {state.x: $.x}}
transitions: [{from: a, to: b}]
`, "e2e-diff");
  await expect.poll(statusOf(server, run)).toBe("completed");
  await page.goto(`${server.url}/runs/${run}?view=history`);
  await page.getByLabel("Type of event").selectOption("context.updated");
  const updates = page.locator(".run-hy-row");
  await expect(updates).toHaveCount(2);
  const side = page.getByRole("complementary", { name: "What changed" });
  const change = side.locator("li").filter({ hasText: "state.x" });
  await updates.nth(0).click();
  await expect(change.locator('[data-mark="+"]')).toContainText("1");
  await expect(change.locator('[data-mark="−"]')).toHaveCount(0); // there was none before
  await updates.nth(1).click();
  await expect(change.locator('[data-mark="−"]')).toContainText("1");
  await expect(change.locator('[data-mark="+"]')).toContainText("2");
  await change.getByRole("button", { name: /Copy path/ }).focus();
  await page.keyboard.press("Enter");
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe("state.x");
  await side.getByRole("button", { name: "Compare from here" }).click();
  await page.getByLabel("Type of event").selectOption("run.started");
  await updates.first().click();
  await expect(side).toContainText(/Between 1 and \d+/);
  await expect(change.locator('[data-mark="+"]')).toContainText("2");
  await expect(change.locator('[data-mark="−"]')).toHaveCount(0);
});

test("39 · what work reports, and text that a model writes, come into the visit's panel as they are said", async ({ signedIn: page, server }) => {
  const run = await started(server, "workflow: e2e-says\nnodes:\n  write: {queue: hands, action: {kind: work, name: write}}\n", "e2e-says");
  const [task] = await claim(server, 1);
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.locator(".run-live")).toHaveText("live");
  await page.locator('[data-node="write"]').click();
  const say = (name: string, data: unknown) => server.api("POST", `/tasks/${task?.task}/progress`, { name, data });
  await page.getByRole("tab", { name: "Log" }).click();
  await say("page", { done: 1 });
  await expect(page.locator(".run-log")).toContainText('page {"done":1}');
  await page.getByRole("tab", { name: "Out" }).click();
  await say("llm.partial", { text: "Once upon a time.", step: 1 });
  await expect(page.locator(".run-stream")).toContainText("Once upon a time.");
  const lines = Array.from({ length: 80 }, (_, number) => `line ${number}\n`).join("");
  await say("llm.partial", { text: lines, step: 1 });
  const stream = page.locator(".run-stream");
  await expect(stream).toContainText("line 79");
  const below = () => stream.evaluate((box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight));
  await expect.poll(below).toBeLessThan(24); // it follows the end
  await stream.evaluate((box) => { box.scrollTop = 0; });
  await expect(page.getByRole("button", { name: "Follow" })).toBeVisible();
  await say("llm.partial", { text: "the end", step: 1 });
  await expect(stream).toContainText("the end");
  expect(await stream.evaluate((box) => box.scrollTop)).toBe(0); // and stops when somebody scrolls
  await page.getByRole("button", { name: "Follow" }).click();
  await expect.poll(below).toBeLessThan(24);
  await server.api("POST", `/tasks/${task?.task}/complete`, { output: {} });
});

test("40 · of 20 MB a preview is shown, and the whole is a download", async ({ signedIn: page, server }) => {
  writeFileSync(join(server.folder, "e2e_large.py"), 'def make():\n    return {"rows": ["x" * 100] * 200_000}\n');
  const run = await started(server, "workflow: e2e-large\nnodes:\n  make: {action: {kind: python, function: 'e2e_large:make'}, output_mapping: {state.rows: $.rows}}\n  after: {}\ntransitions: [{from: make, to: after}]\n", "e2e-large");
  await expect.poll(statusOf(server, run)).toBe("completed");
  const sizes: number[] = [];
  page.on("response", (answer) => {
    if (/\/api\/v1\/runs\/[^/]+(\/(history|visits\/\d+|state))?(\?|$)/.test(answer.url())) void answer.body().then((body) => sizes.push(body.length), () => undefined);
  });
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.locator(".run-live")).toContainText("all");
  await page.locator('[data-node="make"]').click();
  await page.getByRole("tab", { name: "Out" }).click();
  await expect(page.locator(".run-value")).toContainText("characters of 20.6 MB");
  expect(Math.max(...sizes)).toBeLessThan(500_000); // the page has read no more than previews
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download output" }).click();
  expect((await download).suggestedFilename()).toBe("output.json");
});

const fanOut = (count: number) => `
workflow: e2e-fan-${count}
limits: {max_tokens_per_run: 30000, max_spawn_count: 20000}
nodes:
  seed: {action: {kind: set, values: {items: ${JSON.stringify(Array.from({ length: count }, (_, item) => item))}}}, output_mapping: {state.items: $.items}}
  each: {}
  end: {}
transitions:
  - {id: all, from: seed, to: each, foreach: {collection: state.items, item_var: item}}
  - {from: each, to: end, synchronization: {sibling_group: all, strategy: all}}
`;

test("11 · a fan-out of 10,000 has at most 60 elements more than one of ten", async ({ signedIn: page, server }) => {
  const elements = async (count: number): Promise<number> => {
    const run = await started(server, fanOut(count), `e2e-fan-${count}`);
    await expect.poll(statusOf(server, run), { timeout: 90_000 }).toBe("completed");
    await page.goto(`${server.url}/runs/${run}`);
    await expect(page.locator(".run-live")).toContainText(/^all /, { timeout: 90_000 });
    await expect(page.locator('[data-node="each"]')).toContainText(`×${count.toLocaleString("en")}`);
    await expect(page.locator('[data-node="end"]')).toContainText(`${count} of ${count}`);
    return page.locator("*").count();
  };
  const few = await elements(10);
  expect((await elements(10_000)) - few).toBeLessThanOrEqual(60);
});

test("18 · what is selected in the timeline is selected in the graph and stands in the address a frame later", async ({ signedIn: page, server }) => {
  const run = await started(server, "workflow: e2e-step\nnodes:\n  first: {action: {kind: set, values: {}}}\n  second: {action: {kind: set, values: {}}}\ntransitions:\n  - {from: first, to: second}\n", "e2e-step");
  await expect.poll(statusOf(server, run)).toBe("completed");
  await page.goto(`${server.url}/runs/${run}?node=first`); // the inspector is there
  await expect(page.locator('[data-node="first"]')).toHaveAttribute("aria-pressed", "true");
  const name = page.locator(".run-tl-name", { hasText: "second" });
  await expect(name).toBeVisible();
  const seen = await name.evaluate(async (element: HTMLElement) => {
    element.click();
    await new Promise(requestAnimationFrame);
    const pressed = [...document.querySelectorAll('[data-node][aria-pressed="true"]')].map((node) => node.getAttribute("data-node"));
    return { pressed, row: element.getAttribute("aria-pressed"), address: location.search };
  });
  expect(seen.pressed).toEqual(["second"]);
  expect(seen.row).toBe("true");
  expect(seen.address).toMatch(/visit=|node=second/);
});
