// Two nodes on one PostgreSQL: what happens on one is seen on the other, and a page survives the death of a node.
import { spawn, type ChildProcess } from "node:child_process";
import { dirname, join } from "node:path";
import { expect, Server, signIn, test as base } from "./fixtures";
import { answer, gateOf, lengthOf, PANEL, started } from "./workflows";

const PYTHON = join(dirname(process.env["TREADLE"] ?? "../.venv/bin/treadle"), "python");

interface Database {
  readonly address: string;
  /** Why there is none. */
  readonly missing: string | null;
}

async function database(child: ChildProcess): Promise<Database> {
  let said = "";
  return await new Promise((resolve) => {
    child.stdout?.on("data", (part: Buffer) => {
      said += part.toString();
      if (said.startsWith("postgres") && said.includes("\n")) resolve({ address: said.trim(), missing: null });
    });
    child.on("exit", (code) => resolve({ address: "", missing: said.trim() || `the database could not be made: ${code}` }));
  });
}

const test = base.extend<object, { nodes: { pair: readonly [Server, Server] | null; missing: string | null } }>({
  nodes: [
    async ({}, use) => {
      const child = spawn(PYTHON, ["../tools/web_postgres.py"], { stdio: ["pipe", "pipe", "inherit"] });
      const { address, missing } = await database(child);
      if (missing !== null) {
        await use({ pair: null, missing });
        return;
      }
      const [one, other] = [new Server(address), new Server(address)];
      await one.start();
      await other.start();
      await use({ pair: [one, other], missing: null });
      for (const server of [one, other]) {
        await server.kill();
        server.close();
      }
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.stdin?.end();
      await ended;
    },
    { scope: "worker", timeout: 120_000 },
  ],
});

test("a page of one node follows a run that the other node was asked for, and that goes on when that node dies", async ({ page, nodes }) => {
  test.skip(nodes.pair === null, nodes.missing ?? "");
  test.setTimeout(150_000);
  const [near, far] = nodes.pair as readonly [Server, Server];
  await signIn(page, near);
  const run = await started(far, PANEL, "e2e-panel");
  await page.goto(`${near.url}/runs/${run}`);
  await expect(page.locator('[data-node="judge"]')).toContainText("×5");
  await expect(page.getByRole("region", { name: "Waiting" })).toContainText("approve", { timeout: 30_000 });
  await gateOf(near, run);
  await far.kill();
  await answer(near, run);
  await expect(page.locator(".run-top")).toContainText("completed", { timeout: 60_000 });
  await expect(page.locator(".run-live")).toContainText(`all ${await lengthOf(near, run)} events`);
  await far.start();
  const other = await started(near, PANEL, "e2e-panel");
  await page.goto(`${far.url}/runs/${other}`);
  await page.getByLabel("Key", { exact: true }).fill(far.key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("region", { name: "Waiting" })).toContainText("approve", { timeout: 60_000 });
});
