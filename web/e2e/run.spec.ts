// The page of a run: it moves as the run does, says why it waits, survives the death of its server, and explains a failure.
import AxeBuilder from "@axe-core/playwright";
import { expect, test } from "./fixtures";
import { answer, BROKEN, PANEL, started } from "./workflows";

test("a run fans out, joins, waits for a person and goes on when it is answered", async ({ signedIn: page, server }) => {
  const run = await started(server, PANEL, "e2e-panel");
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.locator('[data-node="judge"]')).toContainText("×5");
  await expect(page.getByRole("region", { name: "Waiting" })).toContainText("approve");
  const found = await new AxeBuilder({ page }).analyze();
  expect(found.violations.filter((one) => one.impact === "serious" || one.impact === "critical").map((one) => one.id)).toEqual([]);
  await answer(server, run);
  await expect(page.locator(".run-top")).toContainText("completed");
});

test("a page whose server was killed comes back without missing an event", async ({ signedIn: page, server, watch }) => {
  watch.allow(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_NETWORK|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|503/);
  const run = await started(server, PANEL, "e2e-panel");
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.getByRole("region", { name: "Waiting" })).toContainText("approve");
  await server.kill();
  await expect(page.locator(".run-live")).toContainText("offline");
  await server.start();
  await answer(server, run);
  await expect(page.locator(".run-top")).toContainText("completed", { timeout: 30_000 });
  const history = await server.api<{ items: unknown[] }>("GET", `/runs/${run}/history?limit=1000`);
  await expect(page.locator(".run-live")).toContainText(`all ${history.items.length} events`);
});

test("a failed run says why", async ({ signedIn: page, server }) => {
  const run = await started(server, BROKEN, "e2e-broken");
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.locator(".run-top")).toContainText("failed");
  await expect(page.getByText("the sum is wrong").first()).toBeVisible();
});
