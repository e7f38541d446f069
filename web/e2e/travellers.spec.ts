// Five hundred people on one map: each has a dot, and after a reload at any moment stands where the service says.
import type { Page } from "@playwright/test";
import { expect, test, type Server } from "./fixtures";

const [PLACES, EACH, ROUNDS, MOVED] = [125, 4, 3, 20];

const nodes = Object.fromEntries(Array.from({ length: PLACES }, (_, at) => [`n${at}`, { action: { kind: "human", title: "Go on?" } }]));
const WORKFLOW = {
  workflow: "e2e-crowd", start: "gate", nodes: { gate: {}, ...nodes },
  transitions: [
    ...Array.from({ length: PLACES }, (_, at) => ({ from: "gate", to: `n${at}`, condition: `input.at == ${at}` })),
    ...Array.from({ length: PLACES - 1 }, (_, at) => ({ from: `n${at}`, to: `n${at + 1}` })),
  ],
};

interface Positions {
  readonly items: { id: string; positions: { node?: string | null }[] }[];
  readonly next: string | null;
}

/** Where the service says that everybody is. */
async function said(server: Server): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: Positions = await server.api("GET", `/workflows/e2e-crowd/positions?limit=200${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`);
    for (const one of page.items) found[one.id] = one.positions[0]?.node ?? "";
    cursor = page.next ?? null;
  }
  return found;
}

/** Where the dots are. */
const drawn = (page: Page): Promise<Record<string, string>> =>
  page.evaluate(() => Object.fromEntries([...document.querySelectorAll("[data-entity]")].map((dot) => [dot.getAttribute("data-entity")?.replace("lead/", "") ?? "", /, at (\S+),/.exec(dot.getAttribute("aria-label") ?? "")?.[1] ?? ""])));

test("42 · 500 dots are drawn at once, and after a reload at any moment each stands where the service says", async ({ signedIn: page, server }) => {
  test.setTimeout(300_000);
  await server.deploy(JSON.stringify(WORKFLOW));
  const people = Array.from({ length: PLACES * EACH }, (_, at) => at);
  const runs = new Map<number, string>();
  while (people.length > 0) {
    await Promise.all(people.splice(0, 10).map(async (at) => {
      const input = { at: at % PLACES };
      runs.set(at, (await server.api<{ run: string }>("POST", "/runs", { workflow: "e2e-crowd", input, entity: { type: "lead", id: `p${at}`, name: `Person ${at}` } })).run);
    }));
  }
  await expect.poll(async () => Object.values(await said(server)).filter((node) => node.startsWith("n")).length, { timeout: 60_000 }).toBe(PLACES * EACH);
  await page.goto(`${server.url}/journeys/e2e-crowd`);
  await expect.poll(async () => Object.keys(await drawn(page)).length).toBe(PLACES * EACH);
  expect(await drawn(page)).toEqual(await said(server));
  for (let round = 0; round < ROUNDS; round++) {
    const movers = Array.from({ length: MOVED }, (_, at) => (round * MOVED + at) * 2); // one of each second place
    const moving = Promise.all(movers.map(async (at) => {
      const { items } = await server.api<{ items: { visit: number }[] }>("GET", `/gates?run=${runs.get(at)}`);
      await server.api("POST", `/gates/${runs.get(at)}/${items[0]?.visit}/answer`, { data: {} });
    }));
    await page.reload(); // in the middle of it
    await moving;
    await expect.poll(async () => JSON.stringify(Object.entries(await drawn(page)).sort()) === JSON.stringify(Object.entries(await said(server)).sort()), { timeout: 60_000 }).toBe(true);
  }
  const places = Object.entries(await drawn(page));
  expect(places.length).toBe(PLACES * EACH);
  expect(places.filter(([id, node]) => node === `n${(Number(id.slice(1)) % PLACES) + 1}`).length).toBe(ROUNDS * MOVED);
});
