// Changing a run from its page: fork, edit, skip, jump, set an input, another version, more budget; runs that are queued.
import { execFileSync } from "node:child_process";
import type { Page } from "@playwright/test";
import { expect, signIn, test, TREADLE, type Server } from "./fixtures";
import { claim, lengthOf, started, statusOf } from "./workflows";

const ORDER = (name: string) => `
workflow: ${name}
nodes:
  price: {action: {kind: set, values: {total: 12}}, output_mapping: {state.total: $.total}}
  send: {queue: hands, action: {kind: work, name: send}, input_mapping: {total: $.state.total}}
  done: {}
transitions:
  - {from: price, to: send}
  - {from: send, to: done}
`;

interface Claimed {
  readonly task: string;
  readonly visit: number;
  readonly input: unknown;
}

const take = async (server: Server): Promise<Claimed> => (await claim(server, 1))[0] as unknown as Claimed;
const complete = (server: Server, task: Claimed, output: unknown = {}) => server.api("POST", `/tasks/${task.task}/complete`, { output });
const fail = (server: Server, task: Claimed) => server.api("POST", `/tasks/${task.task}/fail`, { error: { kind: "TORN", message: "it is torn", retryable: false } });
const runOf = (page: Page): string => new URL(page.url()).pathname.split("/").at(-1) as string;
const typesSince = async (server: Server, run: string, seq: number) => (await server.api<{ items: { type: string }[] }>("GET", `/runs/${run}/history?after=${seq}&limit=1000`)).items.map((event) => event.type);

/** A failed run whose work is the test's, on its page. */
async function failedOrder(page: Page, server: Server, name: string): Promise<{ run: string; visit: number }> {
  const run = await started(server, ORDER(name), name);
  const task = await take(server);
  await fail(server, task);
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.locator(".run-top")).toContainText("failed");
  return { run, visit: task.visit };
}

test("21 · a fork from a moment of the slider names what repeats, and goes its own way", async ({ signedIn: page, server }) => {
  const run = await started(server, ORDER("e2e-fork"), "e2e-fork");
  await complete(server, await take(server));
  await expect.poll(statusOf(server, run)).toBe("completed");
  const before = await lengthOf(server, run);
  const history = (await server.api<{ items: { seq: number; type: string; node?: string }[] }>("GET", `/runs/${run}/history?limit=1000`)).items;
  const priced = history.find((event) => event.type === "token.created" && event.node === "send")?.seq ?? 0;
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.locator(".run-live")).toContainText("all");
  const thumb = page.getByRole("slider", { name: "Moment of the run" });
  await thumb.focus();
  await page.keyboard.press("Home");
  for (let seq = 1; seq < priced; seq++) await page.keyboard.press("ArrowRight");
  await page.getByRole("group", { name: "Step" }).getByRole("button", { name: `Fork from event ${priced}…` }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("Side effects that repeat");
  await expect(dialog.locator(".run-repeats li")).toHaveText([/1\s*× send/]);
  await expect(dialog).toContainText("1 new run is made; this one stays as it is");
  await expect(dialog).toContainText("1 attempt begins, with its side effects (send)");
  await dialog.getByRole("button", { name: "Another value" }).click();
  await dialog.getByLabel("Place 1").fill("state.total");
  await expect(dialog.getByLabel("Value 1, as JSON")).toHaveValue("12"); // what is there now
  await dialog.getByLabel("Value 1, as JSON").fill("99");
  await expect(dialog).toContainText("1 value is written (state.total)");
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await expect.poll(() => runOf(page)).not.toBe(run);
  await expect(page.locator(".run-forked")).toContainText(`fork of ${run.slice(-8)}`);
  const again = await take(server);
  expect(again.input).toEqual({ total: 99 });
  await complete(server, again);
  await expect(page.locator(".run-top")).toContainText("completed");
  expect(await lengthOf(server, run)).toBe(before); // the run it comes from is as it was
});

test("21 · a fork before a visit takes another input, and other outputs of what had returned", async ({ signedIn: page, server }) => {
  const { visit } = await failedOrder(page, server, "e2e-fork-visit");
  await page.locator('[data-node="send"]').click();
  await page.getByRole("button", { name: "More acts" }).click();
  await page.getByRole("menuitem", { name: "Fork before it…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("checkbox", { name: "Another input" }).check();
  await dialog.getByLabel("Input, as JSON").fill("{ no");
  await expect(dialog.getByRole("button", { name: "Fork", exact: true })).toBeDisabled();
  await dialog.getByLabel("Input, as JSON").fill('{"who": "Ana"}');
  await dialog.getByRole("button", { name: "Another output" }).click();
  await dialog.getByLabel("Place 1").fill("price");
  await dialog.getByLabel("Value 1, as JSON").fill('{"total": 7}');
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await expect(page.locator(".run-forked")).toBeVisible();
  const task = await take(server);
  expect([task.visit, task.input]).toEqual([visit, { total: 7 }]);
  expect((await server.api<{ input: unknown }>("GET", `/runs/${runOf(page)}`)).input).toEqual({ who: "Ana" });
  await complete(server, task);
});

test("a failed run's data is edited, its visit is given an input, and it is tried again", async ({ signedIn: page, server, watch }) => {
  watch.allow(/400 \(Bad Request\)/); // what the service refuses in a dry run
  const { run } = await failedOrder(page, server, "e2e-edit");
  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("menuitem", { name: "Edit data…" }).click();
  let dialog = page.getByRole("dialog");
  await dialog.getByLabel("Place 1").fill("nodes.x");
  await dialog.getByLabel("Value 1, as JSON").fill("5");
  await expect(dialog.getByRole("alert")).toBeVisible(); // the service refuses, and says why where it stands
  await expect(dialog.getByRole("button", { name: "Write" })).toBeDisabled();
  await dialog.getByLabel("Place 1").fill("state.total");
  await expect(dialog).toContainText("1 value is written (state.total)");
  await dialog.getByLabel("Reason").fill("the price has changed");
  await dialog.getByRole("button", { name: "Write" }).click();
  await expect(dialog).toHaveCount(0);
  const detail = await server.api<{ items: { type: string; reason?: string }[] }>("GET", `/runs/${run}/history?limit=1000`);
  expect(detail.items.at(-1)).toMatchObject({ type: "context.updated", reason: "the price has changed" });
  await page.locator('[data-node="send"]').click();
  await page.getByRole("button", { name: "More acts" }).click();
  await page.getByRole("menuitem", { name: "Set its input…" }).click();
  dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel("Input, as JSON")).toHaveValue(/"total": 12/);
  await dialog.getByLabel("Input, as JSON").fill('{"total": 3}');
  await expect(dialog).toContainText("1 visit has another input at its next attempt (send)");
  await dialog.getByRole("button", { name: "Set it" }).click();
  await page.getByRole("region", { name: "Failure" }).getByRole("button", { name: "Retry" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Retry" }).click();
  const task = await take(server);
  expect(task.input).toEqual({ total: 3 });
  await complete(server, task);
  await expect(page.locator(".run-top")).toContainText("completed");
});

test("a visit is skipped, and another jumps; both say first what follows", async ({ signedIn: page, server }) => {
  const { run } = await failedOrder(page, server, "e2e-skip");
  const seq = await lengthOf(server, run);
  await page.locator('[data-node="send"]').click();
  await page.getByRole("region", { name: "send" }).getByRole("button", { name: "Skip…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Output, as JSON").fill('{"by": "hand"}');
  await expect(dialog).toContainText("2 visits complete (send, done)");
  await expect(dialog).toContainText("1 run completes");
  await dialog.getByRole("button", { name: "Skip it" }).click();
  await expect(page.locator(".run-top")).toContainText("completed");
  const since = await typesSince(server, run, seq);
  expect(since.filter((type) => type === "token.completed")).toHaveLength(2); // as many as were told
  const other = await failedOrder(page, server, "e2e-jump");
  await page.locator('[data-node="send"]').click();
  await page.getByRole("button", { name: "More acts" }).click();
  await page.getByRole("menuitem", { name: "Jump…" }).click();
  await dialog.getByLabel("Node").selectOption("done");
  await expect(dialog).toContainText("1 visit is cancelled (send)");
  await dialog.getByRole("button", { name: "Jump" }).click();
  await expect(page.locator(".run-top")).toContainText("completed");
  expect(await typesSince(server, other.run, 0)).toContain("token.jumped");
});

test("a run is moved to another version: what is in the way, a mapping, then the new graph", async ({ signedIn: page, server }) => {
  const run = await started(server, ORDER("e2e-move"), "e2e-move");
  const task = await take(server);
  await server.deploy(ORDER("e2e-move").replaceAll("send", "post"));
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.locator('[data-node="send"]')).toBeVisible();
  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("menuitem", { name: "Move to another version…" }).click();
  const dialog = page.getByRole("dialog");
  const plan = dialog.getByRole("region", { name: "Plan" });
  await expect(plan).toContainText("1 stays as it is; in the way:");
  await expect(plan).toContainText("send");
  await expect(dialog.getByRole("button", { name: "Move", exact: true })).toBeDisabled();
  await dialog.getByLabel("What takes the place of send").selectOption("post");
  await expect(plan).toContainText("1 run goes on under v2");
  await dialog.getByRole("button", { name: "Move 1 run to v2" }).click();
  await expect(dialog).toContainText("1 moved, 0 refused, 0 left.");
  await dialog.getByRole("button", { name: "Done" }).click();
  await expect(page.locator('[data-node="post"]')).toBeVisible();
  await expect(page.locator('[data-node="send"]')).toHaveCount(0);
  await expect(page.locator(".run-top")).toContainText("e2e-move v2");
  await page.keyboard.press("["); // before the migration the run had the other version
  await expect(page.locator('[data-node="send"]')).toBeVisible();
  await page.keyboard.press("Escape");
  await complete(server, task);
  await expect(page.locator(".run-top")).toContainText("completed");
});

test("several runs are moved from the list, each with its own result", async ({ signedIn: page, server }) => {
  const name = "e2e-move-many";
  const runs = [await started(server, ORDER(name), name), await started(server, ORDER(name), name)];
  const tasks = (await claim(server, 2)) as unknown as Claimed[];
  await server.deploy(ORDER(name).replace("done: {}", "done: {}\n  more: {}").replace("to: done}", "to: done}\n  - {from: done, to: more}"));
  await page.goto(`${server.url}/runs?workflow=${name}`);
  await page.getByRole("checkbox", { name: "Select all 2" }).check();
  await page.getByRole("button", { name: "Move to a version…" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByRole("region", { name: "Plan" })).toContainText("2 runs go on under v2");
  await dialog.getByRole("button", { name: "Move 2 runs to v2" }).click();
  await expect(dialog).toContainText("2 moved, 0 refused, 0 left.");
  await dialog.getByRole("button", { name: "Done" }).click();
  for (const run of runs) expect((await server.api<{ version: number }>("GET", `/runs/${run}`)).version).toBe(2);
  await expect(page.getByRole("cell", { name: `${name} v2` })).toHaveCount(2);
  for (const task of tasks) await complete(server, task);
});

test("a run that has spent its budget stands still, and goes on when it is raised", async ({ signedIn: page, server }) => {
  const run = await started(server, `workflow: e2e-budget\nbudget: {visits: 1}\nnodes: {one: {action: {kind: set, values: {x: 1}}}, two: {action: {kind: set, values: {y: 1}}}}\ntransitions: [{from: one, to: two}]\n`, "e2e-budget");
  await expect.poll(statusOf(server, run)).toBe("paused");
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.getByRole("region", { name: "Waiting" })).toContainText("the run is over its budget");
  await expect(page.getByRole("button", { name: "Resume" })).toHaveCount(0); // it would stop again
  await page.getByRole("button", { name: "Raise budget…" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("1 visits of 1 visits spent");
  await dialog.getByLabel("Add to visits").fill("3");
  await expect(dialog).toContainText("limit is raised: 1 visits becomes 4 visits");
  await expect(dialog).toContainText("1 run goes on");
  await dialog.getByRole("button", { name: "Raise it" }).click();
  await expect(page.locator(".run-top")).toContainText("completed");
});

test("a queued run says why it has not started, in the list and on its page", async ({ signedIn: page, server }) => {
  const yaml = `workflow: e2e-queued\nconcurrency: {limit: 1}\nnodes: {work: {queue: hands, action: {kind: work, name: work}}}\n`;
  await started(server, yaml, "e2e-queued");
  const second = await started(server, yaml, "e2e-queued");
  await page.goto(`${server.url}/runs?status=queued`);
  const row = page.getByRole("row", { name: /e2e-queued/ });
  await expect(row).toContainText("queued");
  await expect(row).toContainText("next to start: as many runs as may be live at once are");
  await page.goto(`${server.url}/runs/${second}`);
  await expect(page.locator(".run-top")).toContainText("queued");
  await expect(page.getByRole("region", { name: "Waiting" })).toContainText("next to start");
  await expect(page.getByRole("button", { name: "Pause" })).toHaveCount(0); // a queued run cannot be paused
  await complete(server, await take(server));
  await expect(page.locator(".run-top")).toContainText("running"); // its turn has come
  await complete(server, await take(server));
  await expect(page.locator(".run-top")).toContainText("completed");
});

test("who may only look is offered none of it", async ({ page, server, watch: _watch }) => {
  const run = await started(server, ORDER("e2e-look"), "e2e-look");
  await fail(server, await take(server));
  const said = execFileSync(TREADLE, ["keys", "create", "vera", "--role", "viewer", "--store", server.store, "--output", "json"]);
  await signIn(page, server, `/runs/${run}`, (JSON.parse(said.toString()) as { key: string }).key);
  await expect(page.locator(".run-top")).toContainText("failed");
  await page.locator('[data-node="send"]').click();
  await expect(page.getByRole("region", { name: "send" })).toBeVisible();
  await expect(page.getByRole("button", { name: /Retry|Skip|Fork|Cancel|More acts/ })).toHaveCount(0);
  await page.getByRole("button", { name: "More", exact: true }).click();
  await expect(page.getByRole("menuitem")).toHaveText([/Copy the id/, /Copy a link/]);
});
