// Operating: schedules, hooks, subscriptions, keys and secrets are made and changed in the browser; every part is accessible.
import { createHmac } from "node:crypto";
import { expect, seriousOn, signIn, test, type Server } from "./fixtures";

const PARTS = ["schedules", "queues", "nodes", "dead-letters", "hooks", "subscriptions", "keys", "secrets", "audit"];
const PLAIN = JSON.stringify({ workflow: "e2e-operate", nodes: { only: {} } });

async function ready(server: Server): Promise<void> {
  await server.deploy(PLAIN);
}

test("a schedule is made, changed, fired and deleted", async ({ signedIn: page, server, watch }) => {
  watch.allow(/422 \(Unprocessable/);
  await ready(server);
  await page.goto(`${server.url}/operate/schedules`);
  await page.getByRole("button", { name: "New schedule" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("e2e-nightly");
  await dialog.getByLabel("Workflow", { exact: true }).selectOption("e2e-operate");
  await dialog.getByLabel("Times", { exact: true }).fill("61 * * * *");
  expect(await seriousOn(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(dialog.getByRole("alert")).toContainText("61");
  await dialog.getByLabel("When").selectOption("every");
  await dialog.getByLabel("Every").fill("often");
  await expect(dialog.getByRole("button", { name: "Save" })).toBeDisabled();
  await dialog.getByLabel("Every").fill("1h 30m");
  await dialog.getByLabel("Time zone").fill("Europe/Berlin");
  await dialog.getByRole("button", { name: "Save" }).click();
  const row = page.getByRole("row", { name: /e2e-nightly/ });
  await expect(row).toContainText("every 1 h 30 m");
  await row.getByRole("button", { name: "Edit" }).click();
  await dialog.getByLabel("Every").fill("2h");
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(row).toContainText("every 2 h");
  expect(await server.api<object>("GET", "/schedules/e2e-nightly")).toMatchObject({ every_ms: 7_200_000, timezone: "Europe/Berlin", workflow: "e2e-operate" });
  await row.getByRole("button", { name: "Fire now" }).click();
  await expect.poll(async () => (await server.api<{ items: unknown[] }>("GET", "/runs?tag=schedule:e2e-nightly")).items.length).toBe(1);
  await row.getByRole("button", { name: "e2e-nightly" }).click();
  await expect(dialog.getByRole("listitem")).toHaveCount(11);
  await page.keyboard.press("Escape");
  await row.getByRole("button", { name: "Delete" }).click();
  await expect(dialog).toContainText("Runs that it started go on.");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect(row).toBeHidden();
});

test("a hook is made, takes a signed delivery, shows it and replays it; its secret is never shown again", async ({ signedIn: page, server }) => {
  await ready(server);
  await page.goto(`${server.url}/operate/hooks`);
  await page.getByRole("button", { name: "New hook" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name in the address").fill("e2e-orders");
  await dialog.getByLabel("Deliveries are signed as").selectOption("github");
  await dialog.getByLabel("Secret").fill("shared-with-github");
  await dialog.getByLabel("Workflow", { exact: true }).selectOption("e2e-operate");
  await dialog.getByLabel("Only when").fill("body.n > 0");
  expect(await seriousOn(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Save" }).click();
  const row = page.getByRole("row", { name: /e2e-orders/ });
  await expect(row).toContainText("starts e2e-operate");
  const body = JSON.stringify({ n: 1 });
  const sign = (secret: string) => `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  const deliver = (secret: string) => fetch(`${server.url}/hooks/e2e-orders`, { method: "POST", headers: { "Content-Type": "application/json", "X-Hub-Signature-256": sign(secret) }, body });
  expect((await deliver("shared-with-github")).status).toBe(202);
  expect((await deliver("guessed")).status).toBe(401);
  await row.getByRole("button", { name: "Deliveries" }).click();
  await expect(dialog.getByRole("row")).toHaveCount(3);
  await expect(dialog.getByRole("button", { name: "Replay" })).toHaveCount(1);
  await dialog.getByRole("button", { name: "Replay" }).click();
  await expect(dialog.getByRole("row")).toHaveCount(4);
  await expect(dialog).toContainText("again, of");
  await page.keyboard.press("Escape");
  await row.getByRole("button", { name: "Edit" }).click();
  await expect(dialog.getByLabel("Secret")).toHaveValue("");
  await expect(dialog.getByLabel("Only when")).toHaveValue("body.n > 0");
  await dialog.getByLabel("Counts once by").fill("$.body.n");
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(dialog).toBeHidden();
  expect(await server.api<object>("GET", "/hooks/e2e-orders")).toMatchObject({ has_secret: true, source: "github", workflow: "e2e-operate" });
  expect((await deliver("shared-with-github")).status).toBe(202);
});

test("a subscription is made, changed, replayed and deleted", async ({ signedIn: page, server, watch }) => {
  watch.allow(/400 \(Bad Request\)/);
  await page.goto(`${server.url}/operate/subscriptions`);
  await page.getByRole("button", { name: "New subscription" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("e2e-crm");
  await dialog.getByLabel("Address").fill("http://127.0.0.1:9/events");
  await dialog.getByLabel("Events").fill("custom.nothing");
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(dialog.getByRole("alert")).toContainText("not a public address");
  await dialog.getByLabel("Address").fill("https://orders.example/events");
  expect(await seriousOn(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Save" }).click();
  const row = page.getByRole("row", { name: /e2e-crm/ });
  await expect(row).toContainText("delivering");
  await row.getByRole("button", { name: "Edit" }).click();
  await dialog.getByLabel("Workflows").fill("orders/*, leads");
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(dialog).toBeHidden();
  expect(await server.api<object>("GET", "/subscriptions/e2e-crm")).toMatchObject({ workflows: ["orders/*", "leads"], types: ["custom.nothing"] });
  await row.getByRole("button", { name: "Replay…" }).click();
  await dialog.getByRole("button", { name: "Send again" }).click();
  await expect(dialog).toBeHidden();
  await row.getByRole("button", { name: "Deliveries" }).click();
  await expect(dialog).toContainText("Nothing was sent yet.");
  await page.keyboard.press("Escape");
  await row.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect(row).toBeHidden();
});

test("a key with a role lets in, once shown, and offers no more than the role may", async ({ signedIn: page, server, browser }) => {
  await page.goto(`${server.url}/operate/keys`);
  await page.getByRole("button", { name: "New key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("e2e-reader");
  await dialog.getByLabel("Groups").fill("sales");
  await dialog.getByLabel("Expires").selectOption("in a day");
  await dialog.getByRole("button", { name: "Make the key" }).click();
  const key = ((await dialog.locator(".operate-shown").textContent()) ?? "").match(/tdl_\S+/)?.[0] ?? "";
  await dialog.getByRole("button", { name: "Done" }).click();
  await expect(page.getByRole("row", { name: /e2e-reader/ })).toContainText("viewer");
  await expect(page.getByText(key)).toBeHidden();
  const context = await browser.newContext();
  const other = await context.newPage();
  await signIn(other, server, "/operate", key);
  await expect(other.getByRole("link", { name: "Nodes" })).toBeVisible();
  await expect(other.getByRole("link", { name: "Keys" })).toBeHidden();
  await expect(other.getByRole("link", { name: "Hooks" })).toBeHidden();
  await expect(other.getByRole("button", { name: "New schedule" })).toBeHidden();
  await context.close();
});

test("a secret is written and never read back", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/operate/secrets`);
  await page.getByRole("button", { name: "New secret" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("E2E_TOKEN");
  await dialog.getByLabel("Value").fill("very-hidden-value");
  await dialog.getByLabel("Hosts it may go to").fill("api.example.com");
  await dialog.getByRole("button", { name: "Keep it" }).click();
  const row = page.getByRole("row", { name: /E2E_TOKEN/ });
  await expect(row).toContainText("api.example.com");
  await row.getByRole("button", { name: "Write anew" }).click();
  await expect(dialog.getByLabel("Value")).toHaveValue("");
  await dialog.getByLabel("Value").fill("another-hidden-value");
  await dialog.getByRole("button", { name: "Keep it" }).click();
  await expect(dialog).toBeHidden();
  expect(JSON.stringify(await server.api("GET", "/secrets"))).not.toContain("hidden-value");
});

test("on a phone the chosen part is in view, and nothing but the row of parts is wider than the window", async ({ signedIn: page, server }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${server.url}/operate/audit`);
  await expect(page.locator(".listing")).toBeVisible();
  await expect(page.getByRole("link", { name: "Audit", exact: true })).toBeInViewport({ ratio: 0.95 });
  const card = page.locator(".card.scroll");
  expect(await card.evaluate((node) => node.scrollWidth - node.clientWidth)).toBe(0);
  expect(await page.locator(".operate-tabs").evaluate((node) => getComputedStyle(node).overflowY)).toBe("hidden"); // a scrollbar of its own stood there
});

test("nothing on any part keeps anybody out", async ({ signedIn: page, server }) => {
  await ready(server);
  await server.api("PUT", "/schedules/e2e-axe", { workflow: "e2e-operate", cron: "0 3 * * *" });
  await server.api("PUT", "/hooks/e2e-axe", { source: "none", workflow: "e2e-operate" });
  for (const part of PARTS) {
    await page.goto(`${server.url}/operate/${part}`);
    await page.locator("table, .empty.card").first().waitFor();
    expect(await seriousOn(page), part).toEqual([]);
  }
});
