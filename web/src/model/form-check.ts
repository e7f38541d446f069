// What is wrong with an answer, at the fields it is wrong at: by the schema while it is written, by the service after.
import { Validator, type Schema } from "@cfworker/json-schema";
import type { Field, Json } from "./form";

export interface Wrong {
  /** Messages by the name of the field. */
  readonly fields: ReadonlyMap<string, string>;
  /** What belongs to no field of the form. */
  readonly rest: readonly string[];
  /** Whether the service will refuse it, too. It may read patterns and formats in another way: then it decides. */
  readonly sure: boolean;
}

export const NOTHING_WRONG: Wrong = { fields: new Map(), rest: [], sure: false };
export const isWrong = (wrong: Wrong): boolean => wrong.fields.size > 0 || wrong.rest.length > 0;

const JOINTS = new Set(["properties", "items", "prefixItems", "additionalProperties", "allOf", "$ref", "if", "then", "else", "dependentSchemas"]);

/** Checks data against a form. A form that this checker does not understand is left to the service. */
export function check(form: unknown, fields: readonly Field[], data: Json): Wrong {
  if (typeof form !== "object" || form === null) return NOTHING_WRONG;
  try {
    const { errors } = new Validator(form as Schema, "2020-12", false).validate(data);
    const found = errors
      .filter((error) => !JOINTS.has(error.keyword))
      .map((error) => {
        const path = pointer(error.instanceLocation);
        const limit = keywordAt(form, pointer(error.keywordLocation));
        const missing = error.keyword === "required" ? /"(.*)"/.exec(error.error)?.[1] : undefined;
        return { path: missing === undefined ? path : [...path, missing], message: sentence(error.keyword, limit, at(data, path), error.error) };
      });
    return { ...placed(fields, found), sure: errors.some((error) => !JOINTS.has(error.keyword) && error.keyword !== "pattern" && error.keyword !== "format") };
  } catch {
    return NOTHING_WRONG;
  }
}

/** The service's own problems (`$.amount`, `$["two words"][0]`) at the fields of the form. */
export function refused(fields: readonly Field[], problems: readonly { place: string | null; message: string }[]): Wrong {
  return placed(fields, problems.map(({ place, message }) => ({ path: steps(place ?? "$"), message: message.slice(0, 1).toUpperCase() + message.slice(1) })));
}

/** A problem belongs to the deepest field that its path leads through; a group passes it to its first field. */
function placed(fields: readonly Field[], problems: readonly { path: readonly string[]; message: string }[]): Wrong {
  const found = new Map<string, string>();
  const rest: string[] = [];
  for (const { path, message } of problems) {
    const field = owner(fields, path);
    if (field === null) rest.push(path.length === 0 ? message : `${path.join(" › ")}: ${message}`);
    else if (!found.has(field.name)) found.set(field.name, message);
  }
  return { fields: found, rest, sure: true };
}

function owner(fields: readonly Field[], path: readonly string[]): Field | null {
  for (const field of fields) {
    if (field.widget === "hidden" || !field.path.every((step, place) => path[place] === step)) continue;
    return field.widget === "group" ? (owner(field.fields, path) ?? (path.length === field.path.length ? (field.fields[0] ?? null) : null)) : field;
  }
  return null;
}

const pointer = (text: string): string[] => text.replace(/^#/, "").split("/").slice(1).map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"));

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, step) => (typeof inner === "object" && inner !== null && Object.hasOwn(inner, step) ? (inner as Record<string, unknown>)[step] : undefined), value);
}

/** The value of a keyword; its place may lead through references. */
function keywordAt(form: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, step) => {
    const next = at(inner, [step]);
    return step === "$ref" && typeof next === "string" ? at(form, pointer(next)) : next;
  }, form);
}

function steps(place: string): string[] {
  return [...place.matchAll(/\.([A-Za-z_][A-Za-z0-9_]*)|\[("(?:[^"\\]|\\.)*"|\d+)\]/g)].map(([, name, inner]) => name ?? String(JSON.parse(inner!)));
}

const TYPES: Record<string, string> = { number: "a number", integer: "a whole number", string: "text", boolean: "yes or no", array: "a list", object: "an object" };

function sentence(keyword: string, limit: unknown, value: unknown, told: string): string {
  const many = (count: unknown, one: string) => `${String(count)} ${count === 1 ? one : `${one}s`}`;
  switch (keyword) {
    case "required":
      return "This is needed.";
    case "type":
      return value === undefined ? "This is needed." : `This must be ${[limit].flat().map((kind) => TYPES[String(kind)] ?? String(kind)).join(" or ")}.`;
    case "enum":
    case "const":
    case "oneOf":
    case "anyOf":
      return value === undefined || value === null ? "This is needed." : "Choose one of the values.";
    case "minimum":
      return `At least ${String(limit)}.`;
    case "maximum":
      return `At most ${String(limit)}.`;
    case "exclusiveMinimum":
      return `More than ${String(limit)}.`;
    case "exclusiveMaximum":
      return `Less than ${String(limit)}.`;
    case "multipleOf":
      return `A multiple of ${String(limit)}.`;
    case "minLength":
      return limit === 1 ? "This is needed." : `At least ${many(limit, "character")}.`;
    case "maxLength":
      return `At most ${many(limit, "character")}.`;
    case "minItems":
      return `At least ${many(limit, "entry").replace("entrys", "entries")}.`;
    case "maxItems":
      return `At most ${many(limit, "entry").replace("entrys", "entries")}.`;
    case "uniqueItems":
      return "Every entry once.";
    case "pattern":
      return `This must match ${String(limit)}.`;
    case "format":
      return `This must be a valid ${String(limit)}.`;
    default:
      return told;
  }
}
