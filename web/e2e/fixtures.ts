// A real server per worker, a person who is signed in, and a page that fails its test on anything it should not do:
// an error on the console, a breach of the page's policy, a request to another host.
import AxeBuilder from "@axe-core/playwright";
import { test as base, expect, type Page } from "@playwright/test";
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const TREADLE = process.env["TREADLE"] ?? "../.venv/bin/treadle";
/** Nobody's settings decide what the tests see. */
const ENVIRONMENT = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TREADLE")));

/** A service on a SQLite file of its own, or on a store that is named. */
export class Server {
  readonly folder = mkdtempSync(join(tmpdir(), "treadle-e2e-"));
  readonly store: string;
  readonly key: string;
  url = "";
  private process: ChildProcess | null = null;

  constructor(store?: string) {
    this.store = store ?? join(this.folder, "treadle.db");
    const said = execFileSync(TREADLE, ["keys", "create", "ana", "--role", "admin", "--store", this.store, "--output", "json"], { env: ENVIRONMENT });
    this.key = (JSON.parse(said.toString()) as { key: string }).key;
  }

  /** Starts it; again at the same address after `kill`. */
  async start(): Promise<void> {
    const port = this.url === "" ? "0" : new URL(this.url).port;
    const child = spawn(TREADLE, ["serve", "--store", this.store, "--port", port], { cwd: this.folder, env: ENVIRONMENT });
    this.process = child;
    let errors = "";
    child.stderr.on("data", (part: Buffer) => (errors += part.toString()));
    this.url = await new Promise((resolve, reject) => {
      child.stdout.on("data", (part: Buffer) => {
        const found = /serving (http:\S+)/.exec(part.toString());
        if (found?.[1] !== undefined) resolve(found[1]);
      });
      child.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${errors}`)));
    });
  }

  async kill(): Promise<void> {
    const child = this.process;
    if (child === null || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  /** Milliseconds of processor time that it has used, where the system tells (Linux); else 0. */
  workedMs(): number {
    try {
      const fields = readFileSync(`/proc/${this.process?.pid}/stat`, "utf-8").replace(/^.*\) /, "").split(" ");
      return (Number(fields[11]) + Number(fields[12])) * 10; // in ticks of 10 ms
    } catch {
      return 0;
    }
  }

  /** A request of a program, with the admin's key. */
  async api<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.key}`, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? null : JSON.parse(text)) as T;
  }

  /** Deploys a definition written in YAML. */
  async deploy(yaml: string): Promise<void> {
    const answer = await fetch(`${this.url}/api/v1/workflows`, {
      method: "POST",
      headers: { Authorization: `Bearer ${this.key}`, "Content-Type": "application/yaml" },
      body: yaml,
    });
    if (!answer.ok) throw new Error(`deploy: ${answer.status} ${await answer.text()}`);
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Collects what a page must never do; `allow` excuses messages that a test brings about on purpose. */
export class Watch {
  readonly found: string[] = [];
  readonly allowed: RegExp[] = [/401 \(Unauthorized\)/]; // the first question: is anybody signed in?

  constructor(page: Page, url: string) {
    page.on("console", (message) => {
      if (message.type() === "error") this.found.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.found.push(`error: ${error.message}`));
    page.on("request", (request) => {
      if (!request.url().startsWith(url) && !request.url().startsWith("data:") && !request.url().startsWith("blob:")) {
        this.found.push(`foreign request: ${request.url()}`);
      }
    });
  }

  allow(...patterns: RegExp[]): void {
    this.allowed.push(...patterns);
  }

  verdict(): string[] {
    return this.found.filter((text) => !this.allowed.some((pattern) => pattern.test(text)));
  }
}

interface Given {
  watch: Watch;
  /** A page whose person is signed in as an admin. */
  signedIn: Page;
}

export const test = base.extend<Given, { server: Server }>({
  server: [
    async ({}, use) => {
      const server = new Server();
      await server.start();
      await use(server);
      await server.kill();
      server.close();
    },
    { scope: "worker", timeout: 180_000 }, // a busy machine takes its time to begin
  ],
  watch: async ({ page, server }, use) => {
    const watch = new Watch(page, server.url);
    await use(watch);
    expect(watch.verdict(), "the page did what it must not").toEqual([]);
  },
  signedIn: async ({ page, server, watch: _watch }, use) => {
    await signIn(page, server);
    await use(page);
  },
});

/** Signs in by the form, as a person does. */
export async function signIn(page: Page, server: Server, path = "/runs", key = server.key): Promise<void> {
  await page.goto(`${server.url}${path}`);
  await page.getByLabel("Key", { exact: true }).fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
}

/** What axe finds serious on a page, as lines that say where. */
export async function seriousOn(page: Page): Promise<string[]> {
  const found = await new AxeBuilder({ page }).analyze();
  const serious = found.violations.filter((one) => one.impact === "serious" || one.impact === "critical");
  return serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}`);
}

export { expect };
