// Every screen on a desk and on a phone, light and dark: a picture for people to look at, and nothing that keeps anybody out.
import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { mkdirSync } from "node:fs";
import { expect, test, type Server } from "./fixtures";
import { BROKEN, gateOf, PANEL, started } from "./workflows";

const SIZES = { desk: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } } as const;

interface Screens {
  readonly waits: string;
  readonly visit: number;
  readonly failed: string;
}

async function prepared(server: Server): Promise<Screens> {
  const failed = await started(server, BROKEN, "e2e-broken");
  const waits = await started(server, PANEL, "e2e-panel");
  await server.deploy(PANEL.replace("publish: {}", "publish: {}\n  archive: {}").replace("to: publish}", "to: publish}\n  - {from: publish, to: archive}"));
  return { waits, visit: await gateOf(server, waits), failed };
}

/** Opens an act of the run page: by its button or its menu on a desk, by the tab of acts on a phone. */
const opening = (name: string) => async (page: Page): Promise<void> => {
  const tab = page.getByRole("tab", { name: "Actions" });
  if (await tab.isVisible()) await tab.click();
  else if (!(await page.locator(".run-top").getByRole("button", { name }).isVisible())) await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("button", { name }).or(page.getByRole("menuitem", { name })).first().click();
  await page.getByRole("dialog").getByText(/What will happen|In the way|in the way|go on under|goes on under|Nothing would change|Values/).first().waitFor();
};

type Screen = [name: string, path: string, ready: string, act?: (page: Page) => Promise<void>];

const screensOf = ({ waits, visit, failed }: Screens): Screen[] => [
  ["overview", "/", "main"], ["runs", "/runs", "main"], ["run", `/runs/${waits}`, ".run-node, .run-p-step"], ["run-visit", `/runs/${waits}?visit=${visit}`, ".run-inspector"],
  ["run-stack", `/runs/${waits}?node=judge`, ".run-differs"], ["run-history", `/runs/${waits}?view=history`, ".run-hy-row"], ["run-failed", `/runs/${failed}`, ".run-err"],
  ["gate", `/gates/${waits}/${visit}`, "main"], ["workflows", "/workflows", "main"], ["editor", "/workflows/e2e-panel", ".ed-node-text"], ["operate", "/operate", "main"],
  ["journeys", "/journeys", ".jr-node-text, .empty"], ["fork", `/runs/${failed}`, ".run-err", opening("Fork…")], ["edit", `/runs/${failed}`, ".run-err", opening("Edit data…")], ["move", `/runs/${waits}`, ".run-node, .run-p-step", opening("Move to another version…")],
];

async function serious(page: Page): Promise<string[]> {
  const found = await new AxeBuilder({ page }).exclude(".cm-scroller").analyze(); // the text inside it takes the focus
  return found.violations.filter((one) => one.impact === "serious" || one.impact === "critical").map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}`);
}

for (const [size, viewport] of Object.entries(SIZES)) {
  for (const colorScheme of ["light", "dark"] as const) {
    test.describe(`${size}, ${colorScheme}`, () => {
      test.use({ viewport, colorScheme });
      test("every screen is drawn, fits, and keeps nobody out", async ({ signedIn: page, server }) => {
        test.setTimeout(600_000);
        mkdirSync("artefacts/screens", { recursive: true });
        for (const [name, path, ready, act] of screensOf(await prepared(server))) {
          await page.goto(`${server.url}${path}`);
          await page.locator(ready).first().waitFor();
          await expect(page.getByText(/^(Loading|loading|connecting)/)).toHaveCount(0);
          await act?.(page);
          await page.screenshot({ path: `artefacts/screens/${name}-${size}-${colorScheme}.png` });
          expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), `${name} is as wide as the window`).toBeLessThanOrEqual(0);
          expect.soft(await serious(page), name).toEqual([]);
        }
      });
    });
  }
}

test("the run page on a phone: one view at a time, and a visit as a sheet", async ({ signedIn: page, server }) => {
  await page.setViewportSize(SIZES.phone);
  const { waits } = await prepared(server);
  await page.goto(`${server.url}/runs/${waits}`);
  await page.getByRole("button", { name: /judge/ }).click();
  await expect(page.getByRole("dialog")).toContainText("judge");
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  for (const [tab, shows] of [["Time", ".run-tl"], ["History", ".run-hy-row"], ["Actions", ".run-p-acts"]] as const) {
    await page.getByRole("tab", { name: tab }).click();
    await expect(page.locator(shows).first()).toBeVisible();
  }
  await page.getByRole("button", { name: "Previous event" }).click();
  await expect(page.locator(".run-live")).toContainText("replaying");
});

test.describe("with reduced motion", () => {
  test.use({ contextOptions: { reducedMotion: "reduce" } });
  test("no dot moves: the edge that a token takes is thicker for a moment", async ({ signedIn: page, server }) => {
    const { waits, visit } = await prepared(server);
    await page.goto(`${server.url}/runs/${waits}`);
    await expect(page.locator(".run-live")).toHaveText("live");
    await page.evaluate(() => {
      const seen = window as unknown as { bold: number };
      seen.bold = 0;
      new MutationObserver(() => (seen.bold = Math.max(seen.bold, document.querySelectorAll(".edge.is-bold").length))).observe(document.body, { subtree: true, attributes: true, attributeFilter: ["class"] });
    });
    await server.api("POST", `/gates/${waits}/${visit}/answer`, { data: { ok: true } });
    await expect.poll(() => page.evaluate(() => (window as unknown as { bold: number }).bold)).toBeGreaterThan(0);
    const painted = await page.locator("canvas.run-tokens").evaluate((canvas: HTMLCanvasElement) => canvas.width > 0 && canvas.height > 0 && canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0));
    expect(painted).toBe(false);
    await expect(page.locator(".edge.is-bold")).toHaveCount(0);
  });
});
