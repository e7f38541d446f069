// The editor: drawing, deploying, drafts, comments, problems, by pointer and by keyboard.
import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { expect, test } from "./fixtures";

const COMMENTED = `# How an order is made ready.
workflow: packing
nodes:
  # Somebody looks first.
  look: {action: {kind: set, values: {fine: true}}}
  pack: {} # with care
transitions:
  - {from: look, to: pack}
`;

const yamlText = (page: Page) => page.locator(".cm-content");

async function seen(page: Page): Promise<string> {
  await yamlText(page).waitFor();
  return (await page.locator(".cm-line").allTextContents()).join("\n");
}

/** Opens a definition that was never deployed, as its text. */
async function write(page: Page, text: string): Promise<void> {
  await yamlText(page).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

test("two nodes are drawn, connected, deployed, and run", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("drawn");
  await page.getByRole("button", { name: "Set values" }).click();
  await expect(page.getByRole("button", { name: /^set, .*Set values/ })).toBeVisible();
  await page.locator(".react-flow__pane").click({ position: { x: 400, y: 40 } });
  await page.getByRole("textbox", { name: "Add a node" }).fill("timer");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: /^set, .*Set values/ }).click();
  await page.getByRole("button", { name: /^Connect/ }).click();
  await page.getByRole("button", { name: /^wait, .*Timer/ }).click();
  await expect(page.getByRole("button", { name: "Transition from set to wait" })).toBeAttached();
  await expect(page.getByText("Nothing is wrong.")).toBeVisible();
  await page.getByRole("button", { name: "Deploy…" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByRole("list", { name: "Changes of the graph" })).toContainText("set->wait");
  await dialog.getByRole("button", { name: "Deploy", exact: true }).click();
  await expect(page).toHaveURL(`${server.url}/workflows/drawn`);
  await expect(page.getByText("As deployed")).toBeVisible();
  const { definition } = await server.api<{ definition: { nodes: object; transitions: { from: string; to: string }[] } }>("GET", "/workflows/drawn");
  expect(Object.keys(definition.nodes)).toEqual(["set", "wait"]);
  await page.getByRole("button", { name: "Start run" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Start", exact: true }).click();
  await expect(page).toHaveURL(/\/runs\/.+/);
  const { items } = await server.api<{ items: { workflow: string }[] }>("GET", "/runs?workflow=drawn");
  expect(items).toHaveLength(1);
});

test("a comment survives an edit of the graph, a deploy, and opening it again", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await write(page, COMMENTED);
  await page.getByRole("button", { name: /^pack, / }).click();
  await page.getByRole("navigation", { name: "Palette" }).getByRole("button", { name: "Timer" }).click();
  await expect(page.getByRole("button", { name: /^wait, .*Timer/ })).toBeVisible();
  const text = await seen(page);
  for (const line of COMMENTED.trimEnd().split("\n")) expect(text).toContain(line);
  expect(text).toContain("{from: pack, to: wait}");
  await page.getByRole("button", { name: "Deploy…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
  await expect(page).toHaveURL(`${server.url}/workflows/packing`);
  await page.reload();
  await expect.poll(() => seen(page)).toContain("# with care");
});

test("a draft survives a reload, and one step of undo takes an edit back", async ({ signedIn: page, server }) => {
  await server.deploy("workflow: kept\nnodes:\n  one: {}\n");
  await page.goto(`${server.url}/workflows/kept`);
  await page.getByRole("button", { name: /^one, / }).click();
  await page.getByRole("navigation", { name: "Palette" }).getByRole("button", { name: "Person" }).click();
  await expect(page.getByText("Kept on this device", { exact: true })).toBeVisible();
  await page.reload();
  await expect(page.getByText("This is your draft")).toBeVisible();
  await expect(page.getByRole("button", { name: /^ask, .*Person/ })).toBeVisible();
  await page.getByRole("button", { name: "Back to v1" }).click();
  await expect(page.getByRole("button", { name: /^ask, .*Person/ })).toHaveCount(0);
  await page.getByRole("button", { name: /^Undo: back/ }).click();
  await expect(page.getByRole("button", { name: /^ask, .*Person/ })).toBeVisible();
});

test("a problem is shown at its line, in the list and on its node, and refuses the deploy", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await write(page, "workflow: wrong\nnodes:\n  a: {}\n  b: {input_mapping: {x: $.state.nope}}\ntransitions:\n  - {from: a, to: b}\n");
  const problems = page.getByRole("region", { name: "Problems" });
  await expect(problems.getByRole("button", { name: /UNWRITTEN_READ/ })).toContainText("line 4");
  await expect(page.getByRole("button", { name: /^b, .*1 problem/ })).toBeVisible();
  await expect(page.locator(".cm-lintRange-error")).toHaveText("$.state.nope");
  await page.getByRole("button", { name: "Deploy…" }).click();
  await expect(page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true })).toBeDisabled();
});

test("a text that cannot be read says so among the problems, at its line", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await write(page, `${COMMENTED}\nout`);
  const problems = page.getByRole("region", { name: "Problems" });
  await expect(problems).toContainText(/not valid YAML.*line 10/s);
  await expect(problems.getByRole("status")).toHaveText("checked as you type");
  await expect(page.getByRole("button", { name: "Deploy…" })).toBeDisabled();
  await page.keyboard.press("Backspace");
  await page.keyboard.press("Backspace");
  await page.keyboard.press("Backspace");
  await expect(problems).not.toContainText("not valid YAML");
  await page.getByRole("button", { name: "YAML", exact: true }).click();
  expect((await page.locator(".ed-dock").boundingBox())!.width).toBeGreaterThan(1_000); // the palette is gone, and its place is taken
});

const CHOICE = `workflow: e2e-choice
start: rest
nodes: {rest: {}, revise: {}, publish: {}}
transitions:
  - {from: rest, to: publish, condition: input.decision.publish}
  - {from: rest, to: revise, priority: 2}
`;

test("on a phone no label of a transition covers another", async ({ signedIn: page, server }) => {
  await server.deploy(CHOICE);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${server.url}/workflows/e2e-choice`);
  await expect(page.locator("button[data-edge]")).toHaveCount(2);
  const [one, other] = await Promise.all([0, 1].map(async (at) => (await page.locator("button[data-edge]").nth(at).boundingBox())!));
  expect(one!.y + one!.height <= other!.y || other!.y + other!.height <= one!.y || one!.x + one!.width <= other!.x || other!.x + other!.width <= one!.x).toBe(true);
});

test("everything is done by keyboard", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await page.getByRole("navigation", { name: "Palette" }).waitFor();
  await page.keyboard.press("a");
  await page.keyboard.type("pass");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.keyboard.press("a");
  await page.keyboard.type("set");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: /^step, / }).focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("c");
  await expect(page.getByText("step → set: Enter connects")).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("button", { name: "Transition from step to set" })).toBeAttached();
  await page.keyboard.press("ControlOrMeta+z");
  await expect(page.getByRole("button", { name: "Transition from step to set" })).toHaveCount(0);
  await page.keyboard.press("Delete");
  await expect(page.getByRole("button", { name: /^step, / })).toHaveCount(0);
});

test("another's newer version is shown as a difference and not overwritten", async ({ signedIn: page, server, watch }) => {
  watch.allow(/409/); // the refusal
  await server.deploy("workflow: shared\nnodes:\n  one: {}\n");
  await page.goto(`${server.url}/workflows/shared`);
  await page.getByRole("button", { name: /^one, / }).click();
  await page.getByRole("navigation", { name: "Palette" }).getByRole("button", { name: "Timer" }).click();
  await server.deploy("workflow: shared\nnodes:\n  one: {}\n  theirs: {}\ntransitions:\n  - {from: one, to: theirs}\n");
  await page.getByRole("button", { name: "Deploy v2…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "v2 was deployed since you began" });
  await expect(dialog.getByRole("list", { name: "Changes of the graph" }).first()).toContainText("theirs");
  const { version } = await server.api<{ version: number }>("GET", "/workflows/shared");
  expect(version).toBe(2);
});

test("a moved node is saved in the drawing without a new version", async ({ signedIn: page, server }) => {
  await server.deploy("workflow: moved\nnodes:\n  one: {}\n  two: {}\ntransitions:\n  - {from: one, to: two}\n");
  await page.goto(`${server.url}/workflows/moved`);
  await page.getByRole("button", { name: /^one, / }).focus();
  await page.keyboard.press("Shift+ArrowDown");
  await expect(page.getByText(/^Drawing saved/)).toBeVisible();
  const { version, canvas } = await server.api<{ version: number; canvas: { nodes: { id: string }[] } }>("GET", "/workflows/moved");
  expect(version).toBe(1);
  expect(canvas.nodes.map((node) => node.id).sort()).toEqual(["one", "two"]);
});

test("a draft is played on a virtual clock and stepped through", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await write(page, "workflow: slow\nnodes:\n  nap: {action: {kind: wait, ms: 3600000}}\n  end: {}\ntransitions:\n  - {from: nap, to: end}\n");
  await page.getByRole("button", { name: "Play" }).click();
  await expect(page.getByText(/^Ended: completed/)).toBeVisible({ timeout: 20_000 });
  await expect(page.getByText("01:00:00.000")).toBeVisible();
  await page.getByRole("button", { name: "To the start" }).click();
  await page.getByRole("button", { name: "Step", exact: true }).click();
  await expect(page.getByRole("button", { name: /^nap, .*1 under way/ })).toBeVisible();
});

test("nothing in the editor keeps anybody out, and a phone can read it", async ({ signedIn: page, server }) => {
  await server.deploy("workflow: plain\nnodes:\n  one: {}\n  two: {action: {kind: human, title: Fine?}}\ntransitions:\n  - {from: one, to: two, condition: 'true'}\n");
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
    await page.goto(`${server.url}/workflows/plain?node=two`);
    await page.getByRole("button", { name: /^two, / }).waitFor();
    const found = await new AxeBuilder({ page }).analyze();
    const serious = found.violations.filter((one) => one.impact === "serious" || one.impact === "critical");
    expect(serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}`)).toEqual([]);
  }
  await page.getByRole("button", { name: "YAML" }).click();
  await expect.poll(() => seen(page)).toContain("workflow: plain");
  await expect(yamlText(page)).toHaveAttribute("contenteditable", "false");
});

test("a condition is tested against a sample state", async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/workflows/new`);
  await write(page, "workflow: tested\nnodes:\n  a: {action: {kind: set, values: {score: 1}}, output_mapping: {state.score: $.score}}\n  b: {}\ntransitions:\n  - {from: a, to: b, condition: state.score >= 80}\n");
  await page.getByRole("button", { name: /^Transition from a to b/ }).click();
  await page.getByText("Test the condition").click();
  await page.getByLabel("Sample state, as YAML").fill("score: 84");
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await expect(page.getByText("True: it is taken.")).toBeVisible();
  await page.getByLabel("Sample state, as YAML").fill("score: 12");
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await expect(page.getByText("False: it is not taken.")).toBeVisible();
});
