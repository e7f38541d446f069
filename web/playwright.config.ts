// The canvas in the system's Chromium, against real servers on real SQLite files. Nothing is downloaded, nothing mocked.
import { defineConfig } from "@playwright/test";

const executablePath = process.env["TREADLE_CHROMIUM"];

export default defineConfig({
  testDir: "e2e",
  timeout: 120_000, // what passes takes a second or two; a machine that others use too may take twenty times as long
  expect: { timeout: 40_000 },
  workers: 2,
  retries: 1, // a machine that stalls for a minute fails what is right; such a test is listed as flaky
  reporter: [["line"]],
  outputDir: "test-results",
  use: {
    viewport: { width: 1440, height: 900 },
    screenshot: "only-on-failure",
    trace: "retain-on-failure",
    launchOptions: {
      ...(executablePath === undefined ? {} : { executablePath }),
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
    },
  },
});
