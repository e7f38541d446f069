// A version of a workflow as the editor needs it: its text where the drawing keeps it, else the definition written out.
import { api, given } from "@/api/client";
import { Problem } from "@/api/problem";
import { definitionText } from "@/model/definition-text";
import { marksOf, placesOf } from "@/model/drawing";
import { readFlow } from "@/model/flow";
import type { Base } from "./draft";

interface Version {
  readonly version: number;
  readonly definition: unknown;
  readonly canvas: unknown;
}

export const NEW_TEXT = "workflow: untitled\n\nnodes: {}\n";
export const NOTHING: Base = { version: 0, text: NEW_TEXT, places: {}, marks: [], canvas: null, etag: null };

export function baseOf({ version, definition, canvas }: Version, etag: string | null): Base {
  const written = (canvas as { text?: unknown } | null)?.text;
  const refs = Object.keys((definition as { nodes?: object }).nodes ?? {});
  const kept = typeof written === "string" ? readFlow(written).flow : null;
  const mine = kept !== null && kept.nodes.length === refs.length && kept.nodes.every((node) => refs.includes(node.ref));
  return { version, text: mine ? (written as string) : definitionText(definition), places: placesOf(canvas), marks: marksOf(canvas), canvas, etag };
}

/** A version of a workflow, the newest without a number; null: there is none. */
export async function loadBase(name: string, version?: number): Promise<Base | null> {
  try {
    const answer =
      version === undefined
        ? await api.GET("/api/v1/workflows/{name}", { params: { path: { name } } })
        : await api.GET("/api/v1/workflows/{name}/versions/{version}", { params: { path: { name, version: String(version) } } });
    return baseOf(answer.data as Version, answer.response.headers.get("etag"));
  } catch (problem) {
    if (problem instanceof Problem && problem.status === 404) return null;
    throw problem;
  }
}

/** The newest version of a workflow that may not be there: asked by the list, so that nothing is refused. */
export async function newestOf(name: string, known: boolean): Promise<Base | null> {
  if (known) return loadBase(name);
  const { items } = await given(api.GET("/api/v1/workflows", { params: { query: { text: name, limit: 1_000 } } }));
  return items.some((row) => row.workflow === name) ? loadBase(name) : null;
}

export interface Finding {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly line: number | null;
  readonly column: number | null;
  readonly place: string | null;
  readonly error: boolean;
}

type Told = { message: string; code?: string | null; hint?: string | null; line?: number | null; column?: number | null; place?: string | null; severity?: string };

/** The problems that the service finds in a text; of one that it cannot read at all, why. */
export async function check(text: string, signal: AbortSignal): Promise<Finding[]> {
  const asked = given(api.POST("/api/v1/workflows/validate", { body: text as never, bodySerializer: (body: unknown) => body as string, headers: { "Content-Type": "application/yaml" }, signal }));
  const { problems } = await asked.catch((error: unknown) => {
    if (error instanceof Problem && error.status === 400 && error.document.problems?.length) return error.document as { problems: Told[] };
    throw error;
  });
  return (problems as Told[]).map((one) => ({ code: one.code ?? "PROBLEM", message: one.message, hint: one.hint ?? null, line: one.line ?? null, column: one.column ?? null, place: one.place ?? null, error: one.severity !== "warning" }));
}

/** Deploys a text, if the version it was made on is still the newest; without a tag, if there is no version yet. */
export async function deploy(text: string, etag: string | null): Promise<{ workflow: string; version: number }> {
  const condition: Record<string, string> = etag === null ? { "If-None-Match": "*" } : { "If-Match": etag };
  return given(api.POST("/api/v1/workflows", { body: text as never, bodySerializer: (body: unknown) => body as string, headers: { "Content-Type": "application/yaml", ...condition } }));
}

export interface Translated {
  readonly definition: unknown;
  readonly canvas: unknown;
  readonly mermaid: string | null;
}

/** A definition in any form that the service reads, as it would be stored; null: it has errors. */
export async function translate(text: string): Promise<Translated | null> {
  const answer = await given(api.POST("/api/v1/workflows/validate", { params: { query: { show: ["definition", "mermaid"] } }, body: text as never, bodySerializer: (body: unknown) => body as string, headers: { "Content-Type": "application/yaml" } }));
  const definition = answer.definition as { canvas?: unknown } | null | undefined;
  return definition == null ? null : { definition, canvas: definition.canvas ?? null, mermaid: answer.mermaid ?? null };
}

/** Saves the drawing of a version. Refused when somebody has drawn since. */
export async function draw(name: string, version: number, drawing: Record<string, unknown>, etag: string | null): Promise<{ canvas: unknown; etag: string | null }> {
  const answer = await api.PUT("/api/v1/workflows/{name}/canvas", { params: { path: { name }, query: { version } }, body: drawing as never, ...(etag === null ? {} : { headers: { "If-Match": etag } }) });
  return { canvas: drawing, etag: answer.response.headers.get("etag") };
}
