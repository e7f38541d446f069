// The list of runs: found by what they wait for, recognised by their input, held still, acted upon, walked through.
import { expect, test, type Server } from "./fixtures";
import { claim, started, statusOf } from "./workflows";

const FAILING = (name: string) => `workflow: ${name}\nnodes:\n  check: {queue: hands, action: {kind: work, name: check}, retry: {max_attempts: 3, initial_delay_ms: 3600000}}\n`;
const ASKING = (name: string, canvas = "") => `workflow: ${name}\nnodes:\n  ask: {action: {kind: human, title: Well?}}\n${canvas}`;
const start = async (server: Server, workflow: string, input: unknown = {}, key?: string) => (await server.api<{ run: string }>("POST", "/runs", { workflow, input, ...(key === undefined ? {} : { key }) })).run;

async function failOne(server: Server, retryable: boolean): Promise<void> {
  const [task] = await claim(server, 1);
  await server.api("POST", `/tasks/${task?.task}/fail`, { error: { kind: "BUSY", message: "not now", retryable } });
}

test("6 · runs that retry, and runs that wait for something, are found", async ({ signedIn: page, server }) => {
  const retrying = await started(server, FAILING("e2e-find-retry"), "e2e-find-retry");
  await failOne(server, true);
  await started(server, ASKING("e2e-find-ask"), "e2e-find-ask");
  await page.goto(`${server.url}/runs`);
  await page.getByRole("group", { name: "Views" }).getByRole("button", { name: "Retrying" }).click();
  await expect(page).toHaveURL(/waiting=retry/);
  await expect(page.locator("tbody tr")).toHaveCount(1);
  await expect(page.locator(`a[href$="${retrying}"]`)).toBeVisible();
  await page.getByRole("group", { name: "Filters" }).getByRole("button", { name: "their next try" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("their next try").uncheck();
  await dialog.getByLabel("a person").check();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(page.locator("tbody")).toContainText("e2e-find-ask");
  await expect(page.locator("tbody")).not.toContainText("e2e-find-retry");
});

test("26 · a run is recognised by the title of its workflow and by values of its input", async ({ signedIn: page, server }) => {
  const canvas = 'canvas: {title: "Order {id} of {customer.name}", columns: [customer.city], links: [{name: Logs of it, url: "https://logs.example/?run={run}&order={id}"}]}\n';
  await server.deploy(ASKING("e2e-named", canvas));
  const run = await start(server, "e2e-named", { id: 4711, customer: { name: "Ana", city: "Graz" }, total: 12.5 });
  await page.goto(`${server.url}/runs?workflow=e2e-named`);
  await expect(page.getByRole("link", { name: "Order 4711 of Ana" })).toBeVisible();
  await expect(page.getByRole("columnheader", { name: "customer.city" })).toBeVisible();
  await expect(page.getByRole("cell", { name: "Graz" })).toBeVisible();
  await page.getByRole("button", { name: "Columns" }).click();
  await page.getByLabel("Values of the input").fill("total, customer.city");
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await expect(page.getByRole("cell", { name: "12.5" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("cell", { name: "12.5" })).toBeVisible(); // kept in this browser
  await start(server, "e2e-named", { id: 4712, customer: { name: "Bo", city: "Wien" }, total: 3 });
  await page.goto(`${server.url}/runs?workflow=e2e-named`);
  await expect(page.getByRole("link", { name: "Order 4712 of Bo" })).toBeVisible();
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByRole("menuitem", { name: "Input" }).click();
  await page.getByLabel("Place in the input").fill("customer.city");
  await page.getByLabel("Contains").fill("gra");
  await page.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByRole("link", { name: "Order 4712 of Bo" })).toHaveCount(0);
  await page.getByRole("link", { name: "Order 4711 of Ana" }).click();
  await expect(page.getByRole("heading", { name: "Order 4711 of Ana" })).toBeVisible();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.keyboard.press("c"); // 38: the full id by one key
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(run);
  await page.getByRole("button", { name: "More", exact: true }).click();
  await expect(page.getByRole("menuitem", { name: "Logs of it" })).toHaveAttribute("href", `https://logs.example/?run=${run}&order=4711`);
});

test("27 · a filter by time says how many live runs it hides", async ({ signedIn: page, server }) => {
  await started(server, ASKING("e2e-old"), "e2e-old");
  await start(server, "e2e-old");
  await page.clock.install({ time: Date.now() + 5 * 3_600_000 }); // five hours later
  await page.goto(`${server.url}/runs?workflow=e2e-old&started=3600000`);
  await expect(page.getByText("2 live runs began earlier")).toBeVisible();
  await page.getByRole("button", { name: "Show live runs of any time" }).click();
  await expect(page.locator("tbody tr")).toHaveCount(2);
  await expect(page).not.toHaveURL(/started=/);
});

test("25 · rows hold still: new runs are counted, and come in when asked for", async ({ signedIn: page, server }) => {
  const first = await started(server, ASKING("e2e-list-still"), "e2e-list-still");
  await page.goto(`${server.url}/runs?workflow=e2e-list-still`);
  await expect(page.locator("tbody tr")).toHaveCount(1);
  await expect(page.locator(".live")).toHaveText("live");
  await start(server, "e2e-list-still");
  await expect(page.getByRole("button", { name: /1 new run/ })).toBeVisible();
  await expect(page.locator("tbody a.runs-link")).toHaveCount(1);
  await server.api("POST", `/runs/${first}/cancel`, {});
  await expect(page.locator("tbody")).toContainText("cancelled"); // a row changes in its place
  await page.keyboard.press("n");
  await expect(page.locator("tbody a.runs-link")).toHaveCount(2);
});

test("23 · an act on many says first what will happen to each, then what did", async ({ signedIn: page, server }) => {
  const name = "e2e-list-many";
  const failed = await started(server, FAILING(name), name);
  await failOne(server, false);
  await expect.poll(statusOf(server, failed)).toBe("failed");
  await start(server, name);
  await page.goto(`${server.url}/runs?workflow=${name}`);
  await page.getByRole("checkbox", { name: "Select all 2" }).check();
  await page.getByRole("button", { name: "Retry…" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("1 of 2 will try their failed steps again");
  await expect(dialog).toContainText("1 will not change");
  await dialog.getByRole("button", { name: "Retry 1" }).click();
  await expect(dialog).toContainText("1 done, 1 refused, 0 left.");
  await dialog.getByRole("button", { name: "Done" }).click();
  await expect.poll(statusOf(server, failed)).toBe("running");
  await expect(page).toHaveURL(new RegExp(`workflow=${name}`)); // the filter stands in the address
  for (const task of await claim(server, 2)) await server.api("POST", `/tasks/${task.task}/complete`, { output: {} });
});

test("24 · J and K walk through the filtered list, and going back finds it as it was", async ({ signedIn: page, server }) => {
  const name = "e2e-walk";
  await server.deploy(ASKING(name));
  for (let number = 0; number < 40; number++) await start(server, name, {}, `walk-${number}`);
  await page.goto(`${server.url}/runs?workflow=${name}`);
  await expect(page.locator("tbody tr")).toHaveCount(40);
  await page.getByRole("checkbox", { name: "Select walk-3", exact: true }).check();
  await page.getByRole("link", { name: "walk-5", exact: true }).scrollIntoViewIfNeeded();
  const top = await page.locator("main.runs").evaluate((element) => element.scrollTop);
  expect(top).toBeGreaterThan(100);
  await page.getByRole("link", { name: "walk-5", exact: true }).click();
  await expect(page.getByRole("heading", { name: "walk-5" })).toBeVisible();
  await expect(page.locator(".run-top")).toContainText("35 of 40");
  await page.keyboard.press("j");
  await expect(page.getByRole("heading", { name: "walk-4" })).toBeVisible();
  await page.keyboard.press("k");
  await expect(page.getByRole("heading", { name: "walk-5" })).toBeVisible();
  await page.goBack();
  await page.goBack();
  await page.goBack();
  await expect(page.locator("tbody tr")).toHaveCount(40);
  await expect(page.getByRole("checkbox", { name: "Select walk-3", exact: true })).toBeChecked();
  expect(Math.abs((await page.locator("main.runs").evaluate((element) => element.scrollTop)) - top)).toBeLessThan(4);
});
