// Completion of keys and choices from the JSON Schema of the language, by the place of the cursor.
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { parseDocument } from "yaml";
import { readFlow } from "@/model/flow";
import { fieldsOf, loadSchema, plain, schemaAt } from "../schema";

/** As long as only this is typed behind the beginning, the same list is narrowed at once. Asked for anew after every letter, it would not take an
 *  Enter for a tenth of a second, which would then be a new line. */
const SAME_WORD = /^[\w.]*$/;

/** The path of keys above a line, by indentation. */
function pathAt(lines: readonly string[], at: number, indent: number): (string | number)[] {
  const path: (string | number)[] = [];
  let below = indent;
  for (let line = at - 1; line >= 0 && below > 0; line--) {
    const text = lines[line] ?? "";
    const found = /^(\s*)(- +)?(?:"([^"]+)"|([^\s:#{[][^:#]*?)):(\s|$)/.exec(text);
    if (found === null || text.trim() === "") continue;
    const [, space = "", dash = "", quoted, bare] = found;
    const column = space.length + dash.length;
    if (column < below && !(dash !== "" && column === below)) {
      path.unshift(quoted ?? bare ?? "");
      below = space.length;
      if (dash !== "") path.unshift(0);
    } else if (dash !== "" && column === below) {
      path.unshift(0);
      below = space.length;
    }
  }
  return path;
}

export async function complete(context: CompletionContext): Promise<CompletionResult | null> {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  const word = /[\w.]*$/.exec(before)?.[0] ?? "";
  if (word === "" && !context.explicit) return null;
  const root = await loadSchema();
  const lines = context.state.doc.toString().split("\n");
  const node = /^\s*(?:- *)?\{?\s*(?:from|to|start):\s*[\w.]*$/.exec(before) ?? /[{,]\s*(?:from|to):\s*[\w.]*$/.exec(before);
  if (node !== null) return { from: context.pos - word.length, options: (readFlow(lines.join("\n")).flow?.nodes ?? []).map((one) => ({ label: one.ref, type: "constant", detail: one.words })), validFor: SAME_WORD };
  const indent = /^\s*(- *)?/.exec(line.text)?.[0].length ?? 0;
  const path = pathAt(lines, line.number - 1, indent);
  if (/^\s*-\s/.test(line.text)) path.push(0);
  const inFlow = /(\w+):\s*\{[^}]*$/.exec(before);
  if (inFlow?.[1] !== undefined) path.push(inFlow[1]);
  const document = parseDocument(lines.join("\n"));
  const kindAt = (at: readonly (string | number)[]): string | null => (document.getIn([...at, "kind"]) as string | undefined) ?? /kind:\s*(\w+)/.exec(line.text)?.[1] ?? null;
  const schema = schemaAt(root, path, kindAt);
  const value = /(?:^|[{,\s])(\w+):\s+[\w.]*$/.exec(before);
  if (value?.[1] !== undefined) return { from: context.pos - word.length, options: choices(root, schema, value[1]), validFor: SAME_WORD };
  const options: Completion[] = fieldsOf(root, schema).map((field) => ({ label: field.name, apply: `${field.name}: `, type: "property", info: field.help }));
  return options.length === 0 ? null : { from: context.pos - word.length, options, validFor: SAME_WORD };
}

function choices(root: Parameters<typeof plain>[0], schema: ReturnType<typeof plain>, key: string): Completion[] {
  const meant = plain(root, schema.properties?.[key]);
  const all = key === "kind" ? (root.$defs?.["Action"]?.properties?.["kind"]?.anyOf?.[0]?.enum ?? []) : (meant.enum ?? (meant.type === "boolean" ? [true, false] : []));
  return all.map((one) => ({ label: String(one), type: "enum" }));
}
