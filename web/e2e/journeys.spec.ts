// Journeys: people stand and travel on the map, are found and moved, and their journey goes over many runs.
import type { Page } from "@playwright/test";
import { expect, seriousOn, signIn, test, type Server } from "./fixtures";

const lifecycle = (name: string) => ({
  workflow: name,
  nodes: { capture: {}, invite: { action: { kind: "human", title: "Come in?" } }, onboard: { action: { kind: "wait", ms: 86_400_000 } }, leave: { entity: { on_success: { section: "churned" } } } },
  transitions: [{ from: "capture", to: "invite" }, { from: "invite", to: "onboard", condition: "input.stays == true" }, { from: "invite", to: "leave", priority: 2 }],
  canvas: { sections: [{ id: "leads", name: "Leads", nodes: ["capture", "invite"] }, { id: "trial", name: "Trial", nodes: ["onboard"] }] },
});

interface Placed {
  positions: { workflow: string; node?: string; section?: string; state?: string }[];
}

async function deployed(server: Server, name: string): Promise<string> {
  await server.deploy(JSON.stringify(lifecycle(name)));
  return name;
}

/** Starts a run about somebody, and waits until a person is asked. */
async function travel(server: Server, workflow: string, id: string, name: string, stays = true): Promise<string> {
  const { run } = await server.api<{ run: string }>("POST", "/runs", { workflow, input: { stays }, entity: { type: "lead", id, name } });
  await expect.poll(async () => (await server.api<{ items: unknown[] }>("GET", `/gates?run=${run}`)).items.length).toBe(1);
  return run;
}

async function answer(server: Server, run: string): Promise<void> {
  const { items } = await server.api<{ items: { visit: number }[] }>("GET", `/gates?run=${run}`);
  await server.api("POST", `/gates/${run}/${items[0]?.visit}/answer`, { data: {} });
}

const place = async (server: Server, id: string) => (await server.api<Placed>("GET", `/entities/lead/${id}`)).positions[0];
const dot = (page: Page, id: string) => page.locator(`[data-entity="lead/${id}"]`);
const region = (page: Page, name: string) => page.getByRole("complementary", { name });

test("somebody who waits for the user stands at the node, and travels on when the gate is answered", async ({ signedIn: page, server }) => {
  const workflow = await deployed(server, "e2e-travel");
  const run = await travel(server, workflow, "t1", "Hanna Lindqvist");
  await page.goto(`${server.url}/journeys/${workflow}`);
  await expect(dot(page, "t1")).toHaveAccessibleName("Hanna Lindqvist, lead, at invite, waits for the user");
  await expect(dot(page, "t1")).toHaveAttribute("data-tone", "ask");
  await expect(page.getByRole("region", { name: "Leads" })).toContainText("1 here");
  expect(await seriousOn(page)).toEqual([]);
  await answer(server, run);
  await expect(dot(page, "t1")).toHaveAccessibleName("Hanna Lindqvist, lead, at onboard, waits for time");
  await expect(page.getByRole("region", { name: "Trial" })).toContainText("1 here");
  await page.reload();
  await expect(dot(page, "t1")).toHaveAccessibleName("Hanna Lindqvist, lead, at onboard, waits for time");
  expect((await place(server, "t1"))?.node).toBe("onboard");
});

test("more than five are one mark that opens the list; a journey goes over many runs", async ({ signedIn: page, server }) => {
  const workflow = await deployed(server, "e2e-journey-many");
  for (let at = 0; at < 6; at += 1) await travel(server, workflow, `m${at}`, `Person ${at}`);
  const gone = await travel(server, workflow, "m9", "<img src=x onerror=alert(1)>", false);
  await answer(server, gone);
  await expect.poll(async () => (await place(server, "m9"))?.section).toBe("churned");
  await travel(server, workflow, "m9", "Nine Lives");
  await page.goto(`${server.url}/journeys/${workflow}`);
  const mark = page.getByRole("button", { name: "7 at invite: 7 waits for the user, open the list" });
  await expect(mark).toHaveText("7");
  await expect(page.getByText("From invite to leave: 13 %")).toBeVisible();
  await mark.click();
  await page.getByRole("dialog").getByRole("button", { name: "Nine Lives" }).click();
  const panel = region(page, "Journey of Nine Lives");
  await expect(panel.locator(".jr-runs > li")).toHaveCount(2);
  await expect(panel).toContainText("waits for the user");
  await expect(panel.getByRole("list", { name: "Time in each section" })).toContainText("Leads");
  await expect(page.locator(".jr-way.is-mine").first()).toBeAttached();
  expect(await seriousOn(page)).toEqual([]);
  await page.getByRole("button", { name: "Numbers" }).click();
  await expect(page.locator('[data-place="node:invite"]')).toContainText("8 → 1");
});

test("somebody is moved by the keyboard, with a reason that stands on the journey", async ({ signedIn: page, server }) => {
  const workflow = await deployed(server, "e2e-journey-keys");
  await travel(server, workflow, "k1", "Mei Chen");
  await page.goto(`${server.url}/journeys/${workflow}`);
  await dot(page, "k1").focus();
  await page.keyboard.press("Enter");
  await expect(region(page, "Journey of Mei Chen")).toBeVisible();
  await page.keyboard.press("m");
  const dialog = page.getByRole("dialog", { name: "Move Mei Chen" });
  await dialog.getByLabel("To").selectOption("Trial");
  await dialog.getByLabel("Why").fill("called, wants to stay");
  expect(await seriousOn(page)).toEqual([]);
  await page.keyboard.press("Enter");
  await expect(dialog).toBeHidden();
  await expect(region(page, "Journey of Mei Chen")).toContainText("invite → Trial: “called, wants to stay”");
  await expect(dot(page, "k1")).toHaveAccessibleName("Mei Chen, lead, at trial, rests here");
  expect((await place(server, "k1"))?.section).toBe("trial");
  await page.keyboard.press("Escape");
  await expect(region(page, "Journey of Mei Chen")).toBeHidden();
});

test("somebody is moved by dragging the dot onto a node", async ({ signedIn: page, server }) => {
  const workflow = await deployed(server, "e2e-drag");
  await travel(server, workflow, "d1", "Omar Khalil");
  await page.goto(`${server.url}/journeys/${workflow}`);
  await expect(dot(page, "d1")).toBeVisible();
  await dot(page, "d1").hover();
  await page.mouse.down();
  const to = (await page.locator('[data-place="node:onboard"]').boundingBox())!;
  await page.mouse.move(to.x + 10, to.y + 10, { steps: 4 });
  await page.mouse.move(to.x + to.width / 2, to.y + to.height / 2, { steps: 4 });
  await expect(page.locator('[data-place="node:onboard"]')).toHaveClass(/is-drop/);
  await page.mouse.up();
  await page.getByRole("button", { name: "Move to onboard" }).click();
  await expect.poll(async () => (await place(server, "d1"))?.node).toBe("onboard");
  await expect(dot(page, "d1")).toHaveAccessibleName(/at onboard/);
});

test("somebody is found by name from anywhere, and a viewer is not offered to move them", async ({ page, server, watch: _watch }) => {
  const workflow = await deployed(server, "e2e-find");
  await travel(server, workflow, "f1", "Zora Findling");
  const { key } = await server.api<{ key: string }>("POST", "/keys", { name: "reader", roles: ["viewer"] });
  await signIn(page, server, `/journeys/${workflow}`, key);
  await expect(page.getByRole("combobox", { name: "Find a person or thing" })).toBeVisible();
  await page.keyboard.press("/");
  await page.keyboard.type("findl");
  await expect(page.getByRole("option", { name: /Zora Findling/ })).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(region(page, "Journey of Zora Findling")).toBeVisible();
  await expect(page.getByRole("button", { name: /Move/ })).toBeHidden();
  await expect(page.getByRole("button", { name: /^Add/ })).toBeHidden();
});

test("on a phone the sections are a list, and a journey opens from below", async ({ signedIn: page, server }) => {
  const workflow = await deployed(server, "e2e-phone");
  await travel(server, workflow, "p1", "Ida Berg");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${server.url}/journeys/${workflow}`);
  await dot(page, "p1").click();
  await expect(region(page, "Journey of Ida Berg")).toBeVisible();
  expect(await seriousOn(page)).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
});
