// The inbox: answering in the browser, drafts, many at once, the keyboard alone, what came too late.
import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { expect, test, type Server } from "./fixtures";

const FORM = {
  type: "object",
  required: ["decision", "share"],
  "x-order": ["decision", "share"],
  properties: {
    decision: { title: "Decision", oneOf: [{ const: "refund", title: "Refund" }, { const: "refuse", title: "Refuse" }] },
    share: { type: "integer", minimum: 0, maximum: 100, title: "Share of the price" },
    note: { type: "string", title: "Note", "x-widget": "textarea" },
  },
};

const ACTION = { kind: "human", title: "Refund the order?", description: "Look at the **photos**.", form: FORM };

interface Gate {
  run: string;
  visit: number;
}

/** Deploys a workflow whose node asks people, and starts runs of it. Gives their gates, longest open first. */
async function asking(server: Server, workflow: string, count = 1, config: object = {}): Promise<Gate[]> {
  const action = { ...ACTION, ...config };
  await server.deploy(JSON.stringify({
    workflow,
    nodes: { begin: {}, approve: { action, input_mapping: { order: "$.input.order" } }, done: {} },
    transitions: [{ from: "begin", to: "approve" }, { from: "approve", to: "done" }],
  }));
  for (let at = 0; at < count; at += 1) {
    await server.api("POST", "/runs", { workflow, input: { order: [{ item: "<script>alert(1)</script>", price: 129 }] } });
  }
  return gatesOf(server, workflow, count);
}

async function gatesOf(server: Server, workflow: string, count: number): Promise<Gate[]> {
  let found: Gate[] = [];
  await expect.poll(async () => (found = (await server.api<{ items: Gate[] }>("GET", `/gates?workflow=${workflow}&limit=1000`)).items).length).toBe(count);
  return found;
}

/** One run of which many tokens ask at one node. */
async function crowd(server: Server, workflow: string, count: number): Promise<Gate[]> {
  const each = { collection: "input.orders", item_var: "order" };
  await server.deploy(JSON.stringify({ workflow, nodes: { begin: {}, approve: { action: ACTION } }, transitions: [{ id: "each", from: "begin", to: "approve", foreach: each }] }));
  await server.api("POST", "/runs", { workflow, key: workflow, input: { orders: Array.from({ length: count }, (_, at) => at) } });
  return gatesOf(server, workflow, count);
}

const statusOf = (server: Server, { run }: Gate) => async () => (await server.api<{ status: string }>("GET", `/runs/${run}`)).status;
const answerOf = async (server: Server, { run, visit }: Gate) => (await server.api<{ answer: { data: unknown; by: string } | null }>("GET", `/gates/${run}/${visit}`)).answer;
const rows = (page: Page) => page.locator(".gates-row");

test("a gate is answered in the browser, and its run goes on", async ({ signedIn: page, server }) => {
  const [gate] = await asking(server, "e2e-answer");
  await page.goto(`${server.url}/gates?workflow=e2e-answer`);
  await expect(page.getByRole("heading", { name: "Refund the order?" }).last()).toBeVisible();
  await expect(page.getByText("<script>alert(1)</script>")).toBeVisible();
  await page.getByRole("radio", { name: "Refund" }).check();
  await page.getByLabel("Share of the price").fill("120");
  await expect(page.getByText("At most 100.")).toBeVisible();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  expect(await answerOf(server, gate!)).toBeNull();
  await page.getByLabel("Share of the price").fill("80");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await expect(page.getByText("Answered by you")).toBeVisible();
  await expect(page.locator(".is-over .gates-row")).toHaveCount(1);
  await expect.poll(statusOf(server, gate!)).toBe("completed");
  expect((await answerOf(server, gate!))?.data).toEqual({ decision: "refund", share: 80 });
});

test("a draft survives a reload, another gate, and another's claim", async ({ signedIn: page, server }) => {
  const [gate] = await asking(server, "e2e-draft", 2);
  await page.goto(`${server.url}/gates?workflow=e2e-draft`);
  await page.getByRole("radio", { name: "Refuse" }).check();
  await page.getByLabel("Note").fill("half a thought");
  await page.reload();
  await expect(page.getByLabel("Note")).toHaveValue("half a thought");
  await rows(page).nth(1).click();
  await expect(page.getByLabel("Note")).toHaveValue("");
  await rows(page).nth(0).click();
  await expect(page.getByLabel("Note")).toHaveValue("half a thought");
  await server.api("POST", `/gates/${gate!.run}/${gate!.visit}/delegate`, { to: "bo" });
  await expect(page.locator(".badge").getByText("claimed by bo")).toBeVisible();
  await expect(page.getByLabel("Note")).toHaveValue("half a thought");
  await expect(page.getByRole("radio", { name: "Refuse" })).toBeChecked();
});

test("29 · a hundred tokens at one gate get one answer, and one of them its own", async ({ signedIn: page, server }) => {
  const gates = await crowd(server, "e2e-many", 100);
  await page.goto(`${server.url}/gates?workflow=e2e-many`);
  await expect(rows(page)).toHaveCount(100);
  await page.getByRole("checkbox", { name: /^Select all of/ }).check();
  await page.getByRole("radio", { name: "Refund" }).check();
  await page.getByLabel("Share of the price").fill("100");
  await rows(page).nth(4).click();
  await expect(page.getByLabel("Share of the price")).toHaveValue("100");
  await page.keyboard.press("e");
  await expect(page.getByText("An exception: these entries are for this gate alone.")).toBeVisible();
  await expect(page.getByLabel("Share of the price")).toHaveValue("");
  await expect(page.getByRole("button", { name: /like this/ })).toBeDisabled();
  await page.getByRole("radio", { name: "Refuse" }).check();
  await page.getByLabel("Share of the price").fill("0");
  await page.getByRole("button", { name: "Answer 99 like this…" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByRole("row")).toHaveCount(101);
  await expect(dialog.getByText("exception")).toHaveCount(1);
  await dialog.getByRole("button", { name: "Send 100 answers" }).click();
  await expect(dialog.getByRole("status")).toContainText("100 answered, 0 refused, 0 left");
  await dialog.getByRole("button", { name: "Done" }).click();
  const answers = await Promise.all(gates.map((gate) => answerOf(server, gate)));
  expect(answers.map((one) => one?.data)).toEqual(gates.map((_gate, at) => (at === 4 ? { decision: "refuse", share: 0 } : { decision: "refund", share: 100 })));
  await expect(page.locator(".is-over .gates-row")).toHaveCount(100);
});

test("the keyboard alone finds, fills in and sends", async ({ signedIn: page, server }) => {
  const [, second] = await asking(server, "e2e-keys", 2);
  await page.goto(`${server.url}/gates?workflow=e2e-keys`);
  await expect(page.getByLabel("Share of the price")).toBeVisible();
  await page.keyboard.press("j");
  await expect(page).toHaveURL(new RegExp(`/gates/${second!.run}/`));
  await expect(page.getByLabel("Share of the price")).toBeVisible();
  await page.keyboard.press("2");
  await expect(page.getByRole("radio", { name: "Refuse" })).toBeChecked();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("radio", { name: "Refuse" })).toBeFocused();
  await page.keyboard.press("Tab");
  await page.keyboard.type("5");
  await page.keyboard.press("Control+Enter");
  await expect(page.getByText("Answered by you")).toBeVisible();
  expect((await answerOf(server, second!))?.data).toEqual({ decision: "refuse", share: 5 });
  await expect(page.getByRole("button", { name: "Next gate" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByLabel("Share of the price")).toBeVisible();
  await page.keyboard.press("/");
  await expect(page.getByLabel("Search gates")).toBeFocused();
});

test("rows hold still: answered ones stay with a name, new ones are counted", async ({ signedIn: page, server }) => {
  const [gate] = await asking(server, "e2e-still", 2);
  await page.goto(`${server.url}/gates?workflow=e2e-still`);
  await expect(rows(page)).toHaveCount(2);
  await page.getByLabel("Share of the price").fill("7");
  await server.api("POST", `/gates/${gate!.run}/${gate!.visit}/answer`, { data: { decision: "refund", share: 1 } });
  await server.api("POST", "/runs", { workflow: "e2e-still", input: { order: [] } });
  await expect(page.locator(".is-over")).toContainText("ana");
  await expect(page.getByRole("heading", { name: "Answered by you" })).toBeVisible();
  await expect(page.getByText("Your entries were not sent")).toBeVisible();
  await expect(page.getByRole("button", { name: /1 new, 1 not open any more/ })).toBeVisible();
  await expect(rows(page)).toHaveCount(2);
  await page.keyboard.press("n");
  await expect(page.locator(".is-over")).toHaveCount(0);
  await expect(rows(page)).toHaveCount(2);
});

test("the service's refusal stands at its field, and one that is too late says who answered", async ({ signedIn: page, server, watch }) => {
  watch.allow(/422/, /409/);
  const [gate] = await asking(server, "e2e-late");
  await page.goto(`${server.url}/gates?workflow=e2e-late`);
  await page.getByRole("radio", { name: "Refund" }).check();
  await page.getByLabel("Share of the price").fill("5");
  await page.route("**/answer", async (route) => {
    const body = route.request().postDataJSON() as { data: object };
    await route.continue({ postData: JSON.stringify({ data: { ...body.data, share: 500 } }) });
  });
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await expect(page.getByLabel("Share of the price")).toHaveAttribute("aria-invalid", "true");
  await page.unroute("**/answer");
  await page.getByLabel("Share of the price").fill("6");
  await page.route("**/answer", async (route) => {
    await server.api("POST", `/gates/${gate!.run}/${gate!.visit}/answer`, { data: { decision: "refuse", share: 0 } });
    await route.continue();
  });
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await expect(page.getByRole("heading", { name: /^Answered by/ })).toBeVisible();
  await expect(page.locator(".gates-answer")).toContainText("Refuse");
  await page.unroute("**/answer");
});

test("comments take attachments, and a link is shown once", async ({ signedIn: page, server }) => {
  const [gate] = await asking(server, "e2e-talk");
  await page.goto(`${server.url}/gates?workflow=e2e-talk`);
  await page.locator(".gates-write input[type=file]").setInputFiles({ name: "report.txt", mimeType: "text/plain", buffer: Buffer.from("damaged") });
  await expect(page.getByText("visit-2-comment-report.txt")).toBeVisible();
  await page.getByLabel("Comment on this gate").fill("See the *report*");
  await page.getByRole("button", { name: "Comment", exact: true }).click();
  await expect(page.locator(".gates-talk li em")).toHaveText("report");
  await expect(page.getByRole("link", { name: /report\.txt/ })).toBeVisible();
  await page.getByRole("button", { name: "Link…" }).click();
  await page.getByLabel(/Answers as/).fill("carl");
  await page.getByRole("button", { name: "Make the link" }).click();
  await expect(page.getByRole("button", { name: "Copy the link" })).toContainText("/answer/");
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Claim" }).click();
  await expect(page.locator(".badge").getByText("claimed by you")).toBeVisible();
  await page.getByRole("button", { name: "Release" }).click();
  await expect(page.getByRole("button", { name: "Claim" })).toBeVisible();
  expect(gate!.visit).toBe(2);
});

for (const [name, viewport] of [["a desk", { width: 1440, height: 900 }], ["a phone", { width: 390, height: 844 }]] as const) {
  test(`nothing in the inbox keeps anybody out on ${name}`, async ({ signedIn: page, server }) => {
    const workflow = `e2e-axe-${viewport.width}`;
    const [gate] = await asking(server, workflow, 2);
    await page.setViewportSize(viewport);
    for (const path of [`/gates?workflow=${workflow}`, `/gates/${gate!.run}/${gate!.visit}?workflow=${workflow}`]) {
      await page.goto(`${server.url}${path}`);
      await expect(path.includes(gate!.run) ? page.getByLabel("Share of the price") : rows(page).first()).toBeVisible();
      const found = await new AxeBuilder({ page }).analyze();
      const serious = found.violations.filter((one) => one.impact === "serious" || one.impact === "critical");
      expect(serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}`)).toEqual([]);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(overflow).toBeLessThanOrEqual(0);
    }
  });
}
