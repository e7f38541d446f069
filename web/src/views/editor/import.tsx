// Importing a file into the draft, as one step of undo: YAML as it is written; JSON, and a canvas as React Flow saves it
// (Worker, UX, Splitter, Collector, sections), as the service translates it.
import { stringify } from "yaml";
import { definitionText } from "@/model/definition-text";
import { marksOf, placesOf } from "@/model/drawing";
import type { Draft } from "./draft";
import { translate } from "./load";

/** A file that a person chooses; null: none. */
export function chooseFile(): Promise<File | null> {
  return new Promise((resolve) => {
    const input = document.createElement("input");
    input.type = "file";
    input.accept = ".yaml,.yml,.json,application/yaml,application/json";
    input.onchange = () => resolve(input.files?.[0] ?? null);
    input.oncancel = () => resolve(null);
    input.click();
  });
}

/** Whether a document is a visual graph: its nodes are a list. */
function isCanvas(value: unknown): boolean {
  const { nodes, edges } = (value ?? {}) as { nodes?: unknown; edges?: unknown };
  return Array.isArray(nodes) || Array.isArray(edges);
}

/** A canvas without a name is called after its file: the language wants a name. */
function named(value: unknown, file: string): unknown {
  const own = value as Record<string, unknown>;
  const name = file.replace(/(\.canvas)?\.\w+$/, "").toLowerCase().replace(/[^a-z0-9._/-]+/g, "-").replace(/^[^a-z0-9]+/, "");
  return own["workflow"] !== undefined || own["name"] !== undefined ? own : { workflow: name || "imported", ...own };
}

export async function takeFile(draft: Draft, file: File): Promise<void> {
  const text = await file.text();
  const name = `import ${file.name}`;
  if (!file.name.endsWith(".json")) {
    draft.edit(name, () => text, { places: {}, marks: [] });
    return;
  }
  const value: unknown = JSON.parse(text);
  const written = stringify(isCanvas(value) ? named(value, file.name) : value, { lineWidth: 0 });
  const found = await translate(written);
  if (found === null) draft.edit(name, () => written, { places: {}, marks: [] }); // the problems say what is wrong with it
  else draft.edit(name, () => definitionText(found.definition), { places: placesOf(found.canvas), marks: marksOf(found.canvas) });
}
