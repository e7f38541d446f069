// What a person does on the run page: retry below a failed join, try now, the keyboard alone, draw and run.
import { expect, test } from "./fixtures";
import { claim, HANDS, PANEL, started, statusOf, UNDOING } from "./workflows";

interface Happened {
  readonly type: string;
  readonly token?: number;
}

test("22 · retrying below a failed join says what will happen, and that happens", async ({ signedIn: page, server }) => {
  const run = await started(server, HANDS, "e2e-hands");
  const tasks = await claim(server, 3);
  expect(tasks).toHaveLength(3);
  const [first, ...others] = tasks;
  for (const one of others) await server.api("POST", `/tasks/${one.task}/complete`, { output: {} });
  await server.api("POST", `/tasks/${first?.task}/fail`, { error: { kind: "TORN", message: "the part is torn", retryable: false } });
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.locator(".run-top")).toContainText("failed");
  await expect(page.locator('[data-node="gather"]')).toHaveAttribute("data-tone", "fail");
  await page.keyboard.press("f"); // 12: goes to each failure in turn
  await expect(page).toHaveURL(new RegExp(`visit=${first?.visit}`));
  const failure = page.getByRole("region", { name: "Failure" });
  await expect(failure).toContainText("the part is torn");
  const before = (await server.api<{ items: Happened[] }>("GET", `/runs/${run}/history?limit=1000`)).items.length;
  await failure.getByRole("button", { name: "Retry" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("1 visit tries again");
  await dialog.getByRole("button", { name: "Retry" }).click();
  await expect(page.locator(".run-top")).toContainText("running");
  const [again, ...more] = await claim(server, 3);
  expect(more).toEqual([]);
  const since = (await server.api<{ items: Happened[] }>("GET", `/runs/${run}/history?after=${before}`)).items;
  expect(since.filter((event) => event.type === "token.retry_scheduled").map((event) => event.token)).toEqual([first?.visit]);
  expect(since.some((event) => event.type === "join.reopened")).toBe(true);
  await server.api("POST", `/tasks/${again?.task}/complete`, { output: {} });
  await expect(page.locator(".run-top")).toContainText("completed");
});

test("a compensation that failed is tried again, then left out, and undoing goes on", async ({ signedIn: page, server }) => {
  const run = await started(server, UNDOING, "e2e-undoing");
  await page.goto(`${server.url}/runs/${run}`);
  const failure = page.getByRole("region", { name: "Failure" });
  const undoing = failure.getByRole("region", { name: "Undoing" });
  await expect(undoing).toContainText("Undoing stopped: 0 of 2 visits undone · 1 failed · 1 not begun");
  await expect(undoing).toContainText("the money is gone");
  const before = (await server.api<{ items: Happened[] }>("GET", `/runs/${run}/history?limit=1000`)).items.length;
  const happened = async (type: string) => (await server.api<{ items: Happened[] }>("GET", `/runs/${run}/history?after=${before}`)).items.filter((event) => event.type === type).length;
  await failure.getByRole("button", { name: "Retry undoing pay" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("1 visit is undone after it");
  await dialog.getByRole("button", { name: "Retry" }).click();
  await expect.poll(() => happened("compensation.failed")).toBe(1);
  await undoing.getByRole("button").first().click(); // the visit that undoes it, which offers the same
  await expect(page.getByRole("button", { name: "Skip…", exact: true })).toBeVisible();
  await failure.getByRole("button", { name: "Skip undoing pay" }).click();
  await expect(dialog).toContainText("1 visit is undone next");
  await dialog.getByRole("button", { name: "Skip it" }).click();
  await expect(page.locator(".run-top")).toContainText("compensated");
  await expect(undoing).toContainText("Undoing: 1 of 2 visits undone · 1 skipped");
  expect(await happened("compensation.skipped")).toBe(1);
});

test("7 · a visit in its backoff is tried now", async ({ signedIn: page, server }) => {
  const run = await started(server, "workflow: e2e-later\nnodes:\n  check: {queue: hands, action: {kind: work, name: check}, retry: {max_attempts: 3, initial_delay_ms: 3600000}}\n", "e2e-later");
  const [first] = await claim(server, 1);
  await server.api("POST", `/tasks/${first?.task}/fail`, { error: { kind: "BUSY", message: "not now", retryable: true } });
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.getByRole("region", { name: "Waiting" })).toContainText("check tries again");
  await page.locator('[data-node="check"]').click();
  await page.getByRole("button", { name: "Try now" }).click();
  const asked = Date.now();
  await page.getByRole("dialog").getByRole("button", { name: "Try now" }).click();
  const [second] = await claim(server, 1);
  expect(Date.now() - asked).toBeLessThan(10_000);
  await server.api("POST", `/tasks/${second?.task}/complete`, { output: {} });
  await expect(page.locator(".run-top")).toContainText("completed");
});

test("36 · a run is followed, inspected and answered by keyboard alone", async ({ signedIn: page, server }) => {
  const run = await started(server, PANEL, "e2e-panel");
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.getByRole("region", { name: "Waiting" })).toContainText("approve");
  const press = async (key: string, times = 1) => { for (let at = 0; at < times; at++) await page.keyboard.press(key); };
  await press("ArrowRight", 4);
  await expect(page.getByRole("region", { name: "approve" })).toBeVisible();
  await press("[", 3);
  await expect(page.locator(".run-live")).toContainText("replaying");
  await press("Escape", 2);
  await expect(page.locator(".run-live")).toHaveText("live");
  await press("ArrowRight", 4);
  await press("Enter");
  await expect(page.getByRole("region", { name: "approve" })).toBeFocused();
  const link = page.getByRole("region", { name: "approve" }).getByRole("link", { name: "Answer" });
  for (let step = 0; step < 20 && !(await link.evaluate((element) => element === document.activeElement)); step++) await press("Tab");
  await press("Enter");
  await expect(page).toHaveURL(new RegExp(`/gates/${run}/`));
  await expect(page.getByRole("heading", { name: "Publish it?" }).last()).toBeVisible();
  await press("Enter"); // to the first field
  await press("Space");
  await press("Control+Enter");
  await expect(page.getByText("Answered by you")).toBeVisible();
  await expect.poll(statusOf(server, run)).toBe("completed");
});

test("a run's input is checked at its fields before it is sent", async ({ signedIn: page, server }) => {
  await server.deploy("workflow: e2e-form\ninput_schema: {type: object, required: [amount], properties: {amount: {type: number}}}\nnodes: {a: {}}\n");
  await page.goto(`${server.url}/workflows/e2e-form`);
  await page.getByRole("button", { name: "Start run" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel("Amount")).toBeVisible();
  await dialog.getByRole("button", { name: "Start", exact: true }).click(); // the service would refuse it, which the console would tell
  await expect(dialog.locator(".field-error")).toHaveText("This is needed.");
  await expect(dialog.getByLabel("Amount")).toBeFocused();
  await dialog.getByLabel("Amount").fill("12");
  await dialog.getByRole("button", { name: "Start", exact: true }).click();
  await expect(page).toHaveURL(/\/runs\/.+/);
});

test("9.1 · a workflow is drawn, deployed, run, watched and answered", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("e2e-drawn");
  await page.getByRole("button", { name: "Set values" }).click();
  await expect(page.getByRole("button", { name: /^set, .*Set values/ })).toBeVisible();
  await page.getByRole("navigation", { name: "Palette" }).getByRole("button", { name: "Person" }).click();
  await expect(page.getByRole("button", { name: "Transition from set to ask" })).toBeAttached();
  await expect(page.getByText("Nothing is wrong.")).toBeVisible();
  await page.getByRole("button", { name: "Deploy…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
  await expect(page.getByText("As deployed")).toBeVisible();
  await page.getByRole("button", { name: "Start run" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Start", exact: true }).click();
  await expect(page.getByRole("region", { name: "Waiting" })).toContainText("ask");
  const run = new URL(page.url()).pathname.split("/").at(-1) as string;
  await page.locator('[data-node="ask"]').click();
  await page.getByRole("region", { name: "Waiting" }).getByRole("link", { name: "Answer" }).click();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await expect.poll(statusOf(server, run)).toBe("completed");
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.locator(".run-live")).toContainText("all");
  await expect(page.locator(".run-top")).toContainText("completed");
});
