// People, further: a quorum, the page behind a one-time link, and the first minute of an empty installation.
import { expect, Server, signIn, test } from "./fixtures";

const FORM = { type: "object", required: ["share"], properties: { share: { type: "integer", maximum: 100, title: "Share of the price" }, note: { type: "string", title: "Note" } } };

interface Gate {
  run: string;
  visit: number;
}

async function asking(server: Server, workflow: string, config: object = {}): Promise<Gate> {
  await server.deploy(JSON.stringify({ workflow, nodes: { approve: { action: { kind: "human", title: "Refund the order?", form: FORM, ...config }, input_mapping: { order: "$.input.order" } } } }));
  await server.api("POST", "/runs", { workflow, input: { order: "Lamp <b>Fjord</b>" } });
  let gate: Gate | undefined;
  await expect.poll(async () => (gate = (await server.api<{ items: Gate[] }>("GET", `/gates?workflow=${workflow}`)).items[0])).toBeDefined();
  return gate!;
}

test("a quorum shows who has answered what so far, and the same answer completes it", async ({ signedIn: page, server }) => {
  const { run, visit } = await asking(server, "quorum", { assign: { users: ["ana", "bo", "cy"], quorum: { of: 3, accept: 2 } } });
  const { key } = await server.api<{ key: string }>("POST", "/keys", { name: "bo", roles: ["approver"] });
  const answer = await fetch(`${server.url}/api/v1/gates/${run}/${visit}/answer`, { method: "POST", headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" }, body: JSON.stringify({ data: { share: 80 } }) });
  expect(answer.status).toBe(200);
  await page.goto(`${server.url}/gates/${run}/${visit}?workflow=quorum`);
  const agreement = page.getByRole("region", { name: "Agreement" });
  await expect(agreement).toContainText("1 of 3 have answered; 2 equal answers are enough");
  await expect(agreement.getByRole("listitem").first()).toContainText(/bo.*80/);
  await expect(agreement.getByRole("listitem").last()).toContainText("not yet");
  await page.getByLabel("Share of the price").fill("80");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await expect(page.getByRole("heading", { name: /^Answered/ })).toBeVisible();
  expect((await server.api<{ status: string }>("GET", `/gates/${run}/${visit}`)).status).toBe("completed");
});

test("the page behind a one-time link works on a phone without script, keeps entries, and says who answered", async ({ browser, server, watch: _watch }) => {
  const { run, visit } = await asking(server, "linked");
  const link = (whom: string) => server.api<{ url: string }>("POST", `/gates/${run}/${visit}/link`, { expires_ms: 3_600_000, for: whom });
  const [{ url }, late] = [await link("carl"), await link("dora")];
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 390, height: 844 }, hasTouch: true });
  const page = await context.newPage();
  const answer = await page.goto(url);
  expect((await answer!.body()).length).toBeLessThan(60_000);
  await expect(page.getByRole("heading", { name: "Refund the order?" })).toBeVisible();
  await expect(page.getByText("Lamp <b>Fjord</b>")).toBeVisible();
  await page.getByLabel("Share of the price").fill("500");
  await page.getByLabel("Note").fill("broken");
  await page.getByRole("button", { name: "Answer" }).click();
  await expect(page.getByLabel("Note")).toHaveValue("broken");
  await expect(page.getByText(/100/).first()).toBeVisible();
  await page.getByLabel("Share of the price").fill("50");
  await page.getByRole("button", { name: "Answer" }).click();
  await expect(page.getByText(/thank|sent|answered/i).first()).toBeVisible();
  const { answer: given } = await server.api<{ answer: { by: string; data: object } }>("GET", `/gates/${run}/${visit}`);
  expect(given).toMatchObject({ by: "carl", data: { share: 50, note: "broken" } });
  await page.goto(url);
  await expect(page.getByRole("heading", { name: "This link has been used" })).toBeVisible();
  await page.goto(late.url);
  await expect(page.getByText(/carl/).first()).toBeVisible();
  await expect(page.getByRole("button", { name: "Answer" })).toHaveCount(0);
  await context.close();
});

test("an empty installation offers examples that are run, opened and changed", async ({ browser }) => {
  const server = new Server();
  await server.start();
  try {
    const page = await browser.newPage();
    await signIn(page, server, "/workflows");
    await expect(page.getByRole("heading", { name: "A panel that votes" })).toBeVisible();
    await page.getByRole("listitem").filter({ hasText: "An order that can be undone" }).getByRole("button", { name: "Run" }).click();
    await expect(page).toHaveURL(/\/runs\/.+/);
    await page.goto(`${server.url}/workflows`);
    await page.getByRole("link", { name: "order", exact: true }).click();
    await page.locator("[data-node]").first().waitFor();
    await page.locator("[data-node]").last().click();
    await page.getByRole("navigation", { name: "Palette" }).getByRole("button", { name: "Timer" }).click();
    await page.getByRole("button", { name: "Deploy v2…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
    await expect(page.getByText("As deployed")).toBeVisible();
    expect((await server.api<{ version: number }>("GET", "/workflows/order")).version).toBe(2);
    await page.close();
  } finally {
    await server.kill();
    server.close();
  }
});
