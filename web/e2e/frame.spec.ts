// The frame: signing in and out, deep links, the theme, what every screen must satisfy.
import { expect, seriousOn, signIn, test } from "./fixtures";
import { PANEL, started } from "./workflows";

const SCREENS = ["/", "/runs", "/gates", "/journeys", "/workflows", "/operate"];

test("a wrong key is refused where it was typed", async ({ page, server, watch: _watch }) => {
  await page.goto(`${server.url}/runs`);
  await page.getByLabel("Key", { exact: true }).fill("tdl_wrong_key");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("not valid");
});

test("a deep link survives signing in", async ({ page, server, watch: _watch }) => {
  await signIn(page, server, "/operate");
  await expect(page).toHaveURL(`${server.url}/operate`);
});

test("signing out ends the session", async ({ signedIn: page, server }) => {
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await expect(page.getByLabel("Key", { exact: true })).toBeVisible();
  await page.goto(`${server.url}/runs`);
  await expect(page.getByLabel("Key", { exact: true })).toBeVisible();
});

for (const path of SCREENS) {
  test(`nothing on ${path} keeps anybody out`, async ({ signedIn: page, server }) => {
    await page.goto(`${server.url}${path}`);
    await page.getByRole("main").waitFor();
    expect(await seriousOn(page)).toEqual([]);
  });
}

test("a screen that cannot be fetched says so, and opens when the service is back", async ({ signedIn: page, server, watch }) => {
  watch.allow(/ERR_FAILED|dynamically imported module|Unable to preload CSS/);
  await page.goto(`${server.url}/operate`);
  await page.getByRole("heading", { name: "Operate" }).waitFor();
  const away = [/\/assets\//, /\/icon\.svg/];
  for (const part of away) await page.route(part, (route) => route.abort());
  const rail = page.getByRole("navigation", { name: "Main" });
  await rail.getByRole("link", { name: "Journeys" }).click();
  await expect(page.getByRole("alert")).toContainText("the service does not answer");
  await rail.getByRole("link", { name: "Operate" }).click(); // what is there already still opens
  await expect(page.getByRole("heading", { name: "Operate" })).toBeVisible();
  await rail.getByRole("link", { name: "Journeys" }).click();
  await expect(page.getByRole("alert")).toContainText("the service does not answer");
  for (const part of away) await page.unroute(part);
  await expect(page.getByRole("heading", { name: /Journeys|Nobody travels here yet/ }).first()).toBeVisible();
});

test("a part that cannot be fetched leaves its screen, and comes when the service is back", async ({ signedIn: page, server, watch }) => {
  watch.allow(/ERR_FAILED|dynamically imported module|Unable to preload CSS/);
  const run = await started(server, PANEL, "e2e-panel");
  await page.goto(`${server.url}/runs/${run}`);
  await expect(page.locator('[data-node="approve"]')).toBeVisible();
  const away = [/\/assets\//, /\/icon\.svg/];
  for (const part of away) await page.route(part, (route) => route.abort());
  await page.getByRole("button", { name: "More", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("A part of this screen could not be fetched");
  await expect(page.locator('[data-node="approve"]')).toBeVisible();
  for (const part of away) await page.unroute(part);
  await expect(page.getByRole("alert")).toHaveCount(0);
  await expect(async () => {
    if (!(await page.getByRole("menuitem").first().isVisible())) await page.getByRole("button", { name: "More", exact: true }).click({ timeout: 1_000 }); // the page was loaded anew: the menu is closed
    await expect(page.getByRole("menuitem").first()).toBeVisible({ timeout: 1_000 });
  }).toPass({ timeout: 40_000 });
});
