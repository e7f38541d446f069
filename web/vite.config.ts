// How the canvas is built: one application whose addresses are all relative, so that it works under any prefix.
import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  base: "./",
  plugins: [react()],
  resolve: { alias: { "@": here("./src") } },
  worker: { format: "es" },
  build: {
    outDir: process.env["TREADLE_WEB_OUT"] ?? here("../src/treadle/server/canvas"),
    emptyOutDir: true,
    assetsInlineLimit: 0, // the page's policy allows nothing inline
    target: "es2023",
    manifest: "manifest.json", // the test of the first load reads it
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": process.env["TREADLE_SERVER"] ?? "http://127.0.0.1:8787" } },
  test: { include: ["tests/**/*.test.ts", "tests/**/*.test.tsx"], environment: "happy-dom" },
});
