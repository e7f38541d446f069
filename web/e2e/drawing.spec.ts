// The editor, further: notes and groups, files out and in, drafts that run and play, two people, crashes, keys alone.
import type { Download, Page } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, signIn, test, TREADLE } from "./fixtures";

const yamlText = (page: Page) => page.locator(".cm-content");
const seen = async (page: Page): Promise<string> => {
  await yamlText(page).waitFor();
  return (await page.locator(".cm-line").allTextContents()).join("\n");
};
async function write(page: Page, text: string): Promise<void> {
  await yamlText(page).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}
const palette = (page: Page) => page.getByRole("navigation", { name: "Palette" });

async function exported(page: Page, name: string): Promise<Download> {
  const coming = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export and import" }).click();
  await page.getByRole("menuitem", { name }).click();
  return coming;
}
const contentOf = async (download: Download): Promise<Buffer> => readFileSync(await download.path());

const FAN = "workflow: fan\nnodes:\n  ask: {}\n  judge: {}\n  decide: {}\ntransitions:\n  - {from: ask, to: judge, spawn_count: 5, sibling_group: jurors}\n  - {from: judge, to: decide, synchronization: {sibling_group: jurors, strategy: {m_of_n: 4}}}\n";

test("a group has its band, its count and a join, and all leave as YAML, Mermaid, SVG and PNG", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await write(page, FAN);
  await expect(page.locator(".ed-band")).toHaveText("group jurors");
  await expect(page.getByRole("button", { name: /^judge, .*several branches ×5/ })).toBeVisible();
  await expect(page.getByRole("button", { name: "Transition from judge to decide, 4 arrived" })).toBeVisible();
  await expect(page.locator(".ed-strand")).toHaveCount(1);
  await expect(page.getByText("Nothing is wrong.")).toBeVisible();
  expect((await contentOf(await exported(page, "Export YAML"))).toString()).toBe(FAN);
  expect((await contentOf(await exported(page, "Export Mermaid"))).toString()).toMatch(/^flowchart/);
  const svg = (await contentOf(await exported(page, "Export SVG"))).toString();
  for (const words of ["group jurors", "4 arrived", ">judge<"]) expect(svg).toContain(words);
  const png = await contentOf(await exported(page, "Export PNG"));
  expect(png.subarray(1, 4).toString()).toBe("PNG");
  expect(png.readUInt32BE(16)).toBeGreaterThan(800);
});

test("a note and a section are drawn, moved with their node, undone, and saved without a new version", async ({ signedIn: page, server }) => {
  await server.deploy("workflow: noted\nnodes:\n  one: {}\n");
  await page.goto(`${server.url}/workflows/noted`);
  await page.getByRole("button", { name: /^one, / }).focus();
  await page.keyboard.press("n");
  await page.keyboard.type("Ask Ana first");
  await expect(page.getByRole("button", { name: "Note: Ask Ana first" })).toBeVisible();
  await page.getByRole("button", { name: /^one, / }).click();
  await palette(page).getByRole("button", { name: "Section" }).click();
  await page.getByRole("complementary", { name: "Inspector of section" }).getByRole("textbox").first().fill("Sales");
  const section = page.getByRole("button", { name: "Section: Sales" });
  const before = await page.getByRole("button", { name: /^one, / }).boundingBox();
  await section.focus();
  await page.keyboard.press("Shift+ArrowDown");
  await expect.poll(async () => (await page.getByRole("button", { name: /^one, / }).boundingBox())!.y).toBeGreaterThan(before!.y);
  await expect(page.getByText(/^Drawing saved/)).toBeVisible();
  const { version, canvas } = await server.api<{ version: number; canvas: { notes: { data: object }[]; sections: { data: object; nodes: string[] }[] } }>("GET", "/workflows/noted");
  expect(version).toBe(1);
  expect(canvas.sections[0]?.nodes).toEqual(["one"]); // journeys count who is in it
  expect([canvas.notes[0]?.data, canvas.sections[0]?.data]).toEqual([{ label: "Ask Ana first" }, { label: "Sales" }]);
  await page.reload();
  await expect(section).toBeVisible();
  await section.click({ position: { x: 150, y: 14 } });
  await page.keyboard.press("Delete");
  await expect(section).toHaveCount(0);
  await page.keyboard.press("ControlOrMeta+z");
  await expect(section).toBeVisible();
});

test("a canvas of React Flow with Worker, UX, Splitter, Collector and a section is imported, and deployed", async ({ signedIn: page, server }) => {
  const canvas = JSON.parse(readFileSync(join(import.meta.dirname, "../../examples/content.canvas.json"), "utf-8")) as { nodes: object[] };
  canvas.nodes.push({ id: "studio", type: "section", position: { x: -40, y: 20 }, width: 600, height: 240, data: { label: "Studio" } });
  await page.goto(`${server.url}/workflows/new`);
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Export and import" }).click();
  await page.getByRole("menuitem", { name: "Import a file…" }).click();
  await (await choosing).setFiles({ name: "content.canvas.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(canvas)) });
  await expect(page.getByRole("button", { name: "Section: Studio" })).toBeVisible();
  for (const ref of ["brief", "outline", "split", "write", "draw", "collect", "publish"]) await expect(page.getByRole("button", { name: new RegExp(`^${ref}, `) })).toBeVisible();
  await expect(page.getByRole("button", { name: /^Transition from split to write, each sections/ })).toBeVisible();
  await expect(page.getByRole("button", { name: /^Transition from write to collect, all/ })).toBeVisible();
  expect(await seen(page)).toContain("kind: webhook");
  await page.getByRole("button", { name: "Deploy…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
  await expect(page).toHaveURL(`${server.url}/workflows/content`);
  await page.reload();
  await expect(page.getByRole("button", { name: "Section: Studio" })).toBeVisible();
});

test("a draft runs as a workflow of its own, and the newest version stays what it was", async ({ signedIn: page, server }) => {
  await server.deploy("workflow: tried\nnodes:\n  one: {}\n");
  await page.goto(`${server.url}/workflows/tried`);
  await page.getByRole("button", { name: /^one, / }).click();
  await palette(page).getByRole("button", { name: "Set values" }).click();
  await page.getByRole("button", { name: "Run draft" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await expect(page).toHaveURL(/\/runs\/.+/);
  const { items } = await server.api<{ items: { workflow: string }[] }>("GET", "/runs?workflow=tried.draft");
  expect(items).toHaveLength(1);
  expect((await server.api<{ version: number }>("GET", "/workflows/tried")).version).toBe(1);
  await page.goBack();
  await expect(page.getByRole("button", { name: /^set, / })).toBeVisible();
});

test("a simulation is answered, goes on, and is saved as a scenario that passes", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await write(page, `workflow: played
nodes:
  nap: {action: {kind: wait, ms: 60000}}
  ask: {action: {kind: human, title: Fine?, form: {type: object, properties: {fine: {type: boolean}}}}, output_mapping: {state.fine: $.fine}}
  send: {action: {kind: http, url: "https://example.com/"}}
  end: {}
transitions:
  - {from: nap, to: ask}
  - {from: ask, to: send, condition: state.fine == true}
  - {from: send, to: end, on: failure}
`);
  await page.getByRole("button", { name: "Play" }).click();
  await expect(page.getByText("Waits: ask for a person")).toBeVisible({ timeout: 30_000 });
  await page.getByRole("button", { name: "Answer ask…" }).click();
  await page.getByLabel("The answer, as YAML or JSON").fill("fine: true");
  await page.getByRole("button", { name: "Go on" }).click();
  await expect(page.getByText(/^Ended: completed/)).toBeVisible({ timeout: 30_000 });
  await expect(page.getByRole("button", { name: /^send, .*1 failed/ })).toBeVisible();
  const coming = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as scenario" }).click();
  const file = join(server.folder, "played.scenario.yaml");
  await (await coming).saveAs(file);
  expect(readFileSync(file, "utf-8")).toContain("gate: ask");
  expect(execFileSync(TREADLE, ["test", file], { cwd: server.folder }).toString()).toMatch(/1 (scenario )?passed|passed/);
});

test("two people who change one workflow see each other's version, and can take both changes", async ({ signedIn: page, server, browser }) => {
  await server.deploy("workflow: pair\nnodes:\n  one: {}\n");
  const context = await browser.newContext();
  const other = await context.newPage();
  await signIn(other, server, "/runs");
  for (const each of [page, other]) await each.goto(`${server.url}/workflows/pair`);
  for (const [each, kind] of [[page, "Timer"], [other, "Set values"]] as const) {
    await each.getByRole("button", { name: /^one, / }).click();
    await palette(each).getByRole("button", { name: kind }).click();
    await each.getByRole("button", { name: "Deploy v2…" }).click();
  }
  await page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
  await expect(page.getByText("As deployed")).toBeVisible();
  await other.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
  const dialog = other.getByRole("dialog", { name: "v2 was deployed since you began" });
  await expect(dialog.getByRole("list", { name: "Changes of the graph" }).first()).toContainText("wait");
  await expect(dialog.getByRole("img", { name: "The graph with its changes" })).toBeVisible();
  expect((await server.api<{ version: number }>("GET", "/workflows/pair")).version).toBe(2);
  await dialog.getByRole("button", { name: "Take both changes" }).click();
  for (const ref of ["wait", "set"]) await expect(other.getByRole("button", { name: new RegExp(`^${ref}, `) })).toBeVisible();
  await other.getByRole("button", { name: "Deploy v3…" }).click();
  await other.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
  await expect(other.getByText("As deployed")).toBeVisible();
  const { definition } = await server.api<{ definition: { nodes: object } }>("GET", "/workflows/pair");
  expect(Object.keys(definition.nodes).sort()).toEqual(["one", "set", "wait"]);
  await context.close();
});

/** The main process of the browser with this profile. */
function browserOf(profile: string): number {
  const found = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).find((pid) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf-8");
      return line.includes(`--user-data-dir=${profile}`) && !line.includes("--type=");
    } catch {
      return false; // it ended meanwhile
    }
  });
  if (found === undefined) throw new Error("there is no such browser");
  return Number(found);
}

test("a browser that is killed while somebody types loses less than a second", async ({ server, playwright, launchOptions }) => {
  const profile = join(server.folder, "profile");
  const open = async () => {
    const context = await playwright.chromium.launchPersistentContext(profile, launchOptions);
    const page = await context.newPage();
    await context.clearCookies(); // whether a killed browser had written its session to the disk is a matter of moments
    await signIn(page, server);
    await page.goto(`${server.url}/workflows/new`);
    await yamlText(page).waitFor();
    return { context, page };
  };
  const { page } = await open();
  await write(page, "workflow: killed\nnodes:\n  one: {}\n# ");
  const typed: number[] = [];
  for (let at = 0; at < 50; at++) {
    await page.keyboard.type("x");
    typed.push(Date.now());
    await page.waitForTimeout(40);
  }
  const killed = Date.now();
  process.kill(browserOf(profile), "SIGKILL");
  const { context, page: again } = await open();
  const kept = (/# (x+)/.exec(await seen(again))?.[1] ?? "").length;
  expect(kept).toBeGreaterThanOrEqual(Math.max(1, typed.filter((at) => at < killed - 1_000).length));
  await expect(again.getByText("This is your draft")).toBeVisible();
  await context.close();
});

test("a workflow is drawn, connected, given a condition, deployed and run without a pointer", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await palette(page).waitFor();
  await page.keyboard.press("a");
  await page.keyboard.type("pass");
  await page.keyboard.press("Enter");
  await page.keyboard.type("set");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /^step, / }).focus();
  await page.keyboard.press("t");
  await expect(page.getByRole("button", { name: "Transition from step to set" })).toBeFocused();
  await page.keyboard.press("Enter");
  await page.getByLabel("Condition", { exact: true }).focus();
  await page.keyboard.type("input.go == true");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("button", { name: "Transition from step to set, input.go == true" })).toBeFocused();
  await page.keyboard.press("Control+z");
  await expect(page.getByRole("button", { name: "Transition from step to set", exact: true })).toBeAttached();
  await page.keyboard.press("Control+Shift+z");
  await page.keyboard.press("Control+Enter");
  const deploy = page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true });
  await expect(deploy).toBeEnabled();
  await deploy.focus();
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(`${server.url}/workflows/untitled`);
  await page.getByRole("button", { name: "Start run" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByLabel("Input, as JSON").focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.type('{"go": true}');
  const start = page.getByRole("dialog").getByRole("button", { name: "Start", exact: true });
  for (let tabs = 0; tabs < 8 && !(await start.evaluate((button) => button === document.activeElement)); tabs++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/runs\/.+/);
});

test("keys and choices are completed in the text, with their help", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await write(page, "workflow: typed\nnodes:\n  one:\n    ");
  await page.keyboard.type("ti");
  const offered = page.locator(".cm-tooltip-autocomplete");
  await expect(offered.getByText("timeout_ms")).toBeVisible();
  await expect(page.locator(".cm-completionInfo")).toContainText("Deadline of one attempt");
  await page.keyboard.type("meout", { delay: 30 }); // at a person's pace: an Enter within 75 ms of the list is a new line, not a choice
  await page.keyboard.press("Enter");
  await page.keyboard.type("5");
  await page.keyboard.press("Enter");
  await page.keyboard.type("on_no_match: e");
  await expect(offered.getByText("error")).toBeVisible();
  await page.keyboard.press("Escape");
  expect(await seen(page)).toContain("timeout_ms: 5");
});

test("every field of a node has its help, and steps are edited one by one", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await write(page, "workflow: stepped\nnodes:\n  one: {action: {kind: set, values: {a: 1}}}\n");
  await page.getByRole("button", { name: /^one, / }).click();
  const inspector = page.getByRole("complementary", { name: "Inspector of one" });
  const silent = await inspector.locator("[aria-describedby]").evaluateAll((fields) => fields.filter((field) => (document.getElementById(field.getAttribute("aria-describedby") ?? "")?.textContent ?? "").trim() === "").map((field) => field.id));
  expect(silent).toEqual([]);
  await inspector.getByRole("button", { name: "Several steps" }).click();
  await inspector.getByRole("button", { name: "Add a step" }).click();
  await inspector.locator("summary", { hasText: "step2" }).click();
  await inspector.getByRole("button", { name: "Move step2 up" }).click();
  await expect(page.getByRole("button", { name: /^one, 2 steps/ })).toBeVisible();
  expect(await seen(page)).toContain("steps:");
  await inspector.getByRole("button", { name: "Add mutex" }).or(inspector.getByLabel("Mutex")).first().waitFor();
});

test("a condition is tried with the state of a run", async ({ signedIn: page, server }) => {
  await server.deploy("workflow: sampled\nnodes:\n  a: {action: {kind: set, values: {score: 84}}, output_mapping: {state.score: $.score}}\n  b: {}\ntransitions:\n  - {from: a, to: b, condition: state.score >= 80}\n");
  await server.api("POST", "/runs?wait_ms=20000", { workflow: "sampled", input: {} });
  await page.goto(`${server.url}/workflows/sampled`);
  await page.getByRole("button", { name: /^Transition from a to b/ }).click();
  await page.getByText("Test the condition").click();
  await page.getByRole("button", { name: "From the newest run" }).click();
  await expect(page.getByText(/^From run .*, seq \d+/)).toBeVisible();
  await expect(page.getByLabel("Sample state, as YAML")).toHaveValue("score: 84\n");
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await expect(page.getByText("True: it is taken.")).toBeVisible();
});
