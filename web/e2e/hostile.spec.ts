// Names, titles, inputs, keys, tags and comments that are markup: every screen shows them as text and runs nothing.
import type { Page } from "@playwright/test";
import { expect, Server, signIn, test, Watch } from "./fixtures";

const ATTACKS = [
  "<script>window.broken=1</script>", "\"><img src=x onerror=window.broken=1>", "<svg/onload=window.broken=1>", "[x](javascript:window.broken=1)", "[x](JaVaScRiPt:window.broken=1)",
  "[x](data:text/html;base64,PHNjcmlwdD4=)", "[x](&#106;avascript:window.broken=1)", "![x](https://evil.example/pixel.png)", "<a href='javascript:window.broken=1'>x</a>",
  "<iframe srcdoc='<script>parent.broken=1</script>'></iframe>", "</style><script>window.broken=1</script>", "</title><script>window.broken=1</script>", "</textarea><script>window.broken=1</script>",
  "' autofocus onfocus='window.broken=1", "<javascript:window.broken=1>", "{{constructor.constructor('window.broken=1')()}}", "${window.broken=1}", "\u202egnp.exe",
];

interface Made {
  readonly run: string;
  readonly visit: number;
  readonly workflow: string;
}

/** One workflow whose every name and field is an attack, a run of it that waits for a person, and one that failed. */
async function made(server: Server): Promise<Made> {
  const [first, second, third] = ATTACKS as [string, string, string];
  const all = ATTACKS.join("\n\n");
  const form = { type: "object", properties: Object.fromEntries(ATTACKS.map((text, at) => [`f${at} ${text}`, { type: "string", title: text, description: text, "x-help": text, default: text }])) };
  const workflow = "hostile"; // a name of letters: the service takes no other
  await server.api("POST", "/workflows", {
    workflow, description: all, tags: [second.slice(0, 40)],
    nodes: { [first]: { action: { kind: "set", values: { text: all } }, output_mapping: { "state.text": "$.text" } }, [second]: { action: { kind: "human", title: third, description: all, form, assign: [first] }, input_mapping: { shown: "$.state.text" } }, [third]: { action: { kind: "assert", condition: "false", message: all } } },
    transitions: [{ from: first, to: second, condition: `state.text != ${JSON.stringify(second)}` }, { from: first, to: third }],
    start: [first], on_unhandled_failure: "let_others_finish",
  });
  const { run } = await server.api<{ run: string }>("POST", "/runs", { workflow, input: { [first]: all }, key: second, tags: [third], entity: { type: "person", id: "7", name: first, attributes: { note: all } } });
  let visit = 0;
  await expect.poll(async () => (visit = (await server.api<{ items: { visit: number }[] }>("GET", `/gates?run=${run}`)).items[0]?.visit ?? 0)).toBeGreaterThan(0);
  await server.api("POST", `/gates/${run}/${visit}/comment`, { text: all });
  return { run, visit, workflow };
}

async function isHarmless(page: Page): Promise<void> {
  expect(await page.evaluate(() => (window as unknown as { broken?: number }).broken)).toBeUndefined();
  expect(await page.locator("img[src='x'], iframe, [onerror], [onload], [onfocus], script:not([src]), a[href^='javascript' i], a[href^='data:text' i]").count()).toBe(0);
}

test("nothing that somebody named or wrote is more than text, on any screen", async ({ page }) => {
  test.setTimeout(150_000);
  const server = new Server(); // of its own: lists that show the first few rows show these
  await server.start();
  const watch = new Watch(page, server.url);
  await signIn(page, server);
  const { run, visit, workflow } = await made(server);
  const places: [path: string, shows: string][] = [
    ["/", workflow], ["/runs", ATTACKS[1] as string], [`/gates/${run}/${visit}`, ATTACKS[2] as string], ["/workflows", workflow], [`/workflows/${workflow}`, ATTACKS[0] as string],
    ["/operate", ""], ["/operate/audit", ""], [`/runs/${run}?view=history`, ATTACKS[0] as string],
  ];
  for (const [path, shows] of places) {
    await page.goto(`${server.url}${path}`);
    await page.getByRole("main").waitFor();
    if (shows !== "") await expect(page.getByText(shows).first(), path).toBeAttached();
    await isHarmless(page);
  }
  await page.goto(`${server.url}/runs/${run}?visit=${visit}`);
  for (const tab of ["In", "Out", "Scope", "Attempts", "Log", "Why"]) {
    await page.getByRole("tablist", { name: "Visit" }).getByRole("tab", { name: tab, exact: true }).click();
    await expect(page.getByRole("tabpanel", { name: tab })).toBeVisible();
    await isHarmless(page);
  }
  const edge = page.locator(".run-edge-label").first();
  await edge.focus();
  await expect(page.getByRole("tooltip")).toBeVisible();
  await isHarmless(page);
  expect(watch.verdict()).toEqual([]);
  await server.kill();
  server.close();
});
