// What a person calls a run: by the template of its workflow's drawing (`canvas: {title: "Order {id} of {customer}"}`),
// else by its key, entity or id. Pure.

import { soon } from "./time";

const HOLE = /\{([^{}]+)\}/g;
/** A key that a program made up, so that a repeated request has one effect: it names nothing. */
const MADE_UP = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The key of a run that a schedule started: its name and the time it was due. */
const SCHEDULED = /^schedule:(.+):(\d{13})$/;

const inputPath = (name: string): string => (name.startsWith("input.") ? name : `input.${name}`);

/** The template of a drawing; null if it has none. */
export function templateOf(canvas: unknown): string | null {
  const title = (canvas as { title?: unknown } | null)?.title;
  return typeof title === "string" && title.trim() !== "" ? title : null;
}

/** The columns that a drawing asks for: `columns: [customer, order.total]`. */
export function columnsOf(canvas: unknown): string[] {
  const columns = (canvas as { columns?: unknown } | null)?.columns;
  return Array.isArray(columns) ? columns.filter((one): one is string => typeof one === "string" && one !== "").map(inputPath) : [];
}

/** The values of the input that a template names. */
export const fieldsOf = (template: string): string[] => [...new Set([...template.matchAll(HOLE)].map((found) => inputPath((found[1] as string).trim())))];

/** The template with its values; null if not one of them is there. */
export function titled(template: string, value: (field: string) => unknown): string | null {
  let found = 0;
  const text = template.replace(HOLE, (_whole, name: string) => {
    const given = value(inputPath(name.trim()));
    if (given === undefined || given === null) return "–";
    found += 1;
    return typeof given === "object" ? JSON.stringify(given) : String(given);
  });
  return found > 0 || !template.includes("{") ? text : null;
}

/** A value of an input by its path, `input.order.lines.0`. */
export function valueAt(input: unknown, field: string): unknown {
  let here: unknown = input;
  for (const key of field.replace(/^input\./, "").split(".")) {
    if (here === null || typeof here !== "object") return undefined;
    here = (here as Record<string, unknown>)[key];
  }
  return here;
}

interface Named {
  readonly run: string;
  readonly key: string | null;
  readonly entity: string | null;
}

/** A run by what it has: its title, its key, whom it is about, else the end of its id. */
export function nameOf(row: Named, title: string | null = null): string {
  const scheduled = SCHEDULED.exec(row.key ?? "");
  if (title === null && scheduled !== null) return `${scheduled[1]}, ${soon(Number(scheduled[2]))}`;
  return title ?? (row.key !== null && !MADE_UP.test(row.key) ? row.key : null) ?? row.entity ?? row.run.slice(-12);
}

export interface ToolLink {
  readonly name: string;
  readonly url: string;
}

/** Links to other tools that a drawing gives: `links: [{name: Logs, url: "https://logs.example/?q={run}"}]`. Only addresses of the web; what stands in braces is put in as a part of an address. */
export function linksOf(canvas: unknown, value: (name: string) => unknown): ToolLink[] {
  const links = (canvas as { links?: unknown } | null)?.links;
  if (!Array.isArray(links)) return [];
  return links.flatMap((one: unknown) => {
    const { name, url } = (one ?? {}) as { name?: unknown; url?: unknown };
    if (typeof name !== "string" || typeof url !== "string" || !/^https?:\/\//i.test(url)) return [];
    const filled = url.replace(HOLE, (_whole, hole: string) => {
      const given = value(hole.trim());
      return encodeURIComponent(given === undefined || given === null ? "" : typeof given === "object" ? JSON.stringify(given) : String(given));
    });
    return URL.canParse(filled) ? [{ name, url: filled }] : [];
  });
}
