// Forms of gates: a JSON Schema as fields that a person fills in, what was filled in as data, and what is wrong with it.
//
// Owns the name and widget of every field and the way back. It is the same reading of a schema as the page behind a
// link has. The service is the judge of an answer: what is checked here is only said sooner. Display keywords
// (`x-order`, `x-widget`, `x-help`) change nothing but the looks.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Schema = { readonly [keyword: string]: unknown };

export type Widget =
  | "text" | "number" | "textarea" | "list" | "json" | "radio" | "select" | "checkbox" | "checkboxes" | "date" | "datetime" | "email" | "url" | "file" | "hidden" | "group";

export interface Choice {
  readonly text: string;
  readonly value: Json;
  readonly label: string;
  readonly help: string | null;
}

export interface Field {
  /** Unique in the form; entries are kept under it. */
  readonly name: string;
  readonly path: readonly string[];
  readonly label: string;
  readonly widget: Widget;
  readonly help: string | null;
  readonly required: boolean;
  readonly default: Json | undefined;
  readonly choices: readonly Choice[];
  readonly fields: readonly Field[];
  /** Of a list: whether its items are numbers. */
  readonly numbers: boolean;
  readonly limits: { readonly min?: number; readonly max?: number; readonly maxLength?: number };
}

/** What a person has entered: texts by the field's name; several of a list. Nothing is lost that cannot be read yet. */
export type Entries = { readonly [name: string]: string | readonly string[] };

const DEPTH_MAX = 4;
const RADIOS_MAX = 5;
const WHOLE = "data";

const isSchema = (value: unknown): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);
const own = (value: Schema, key: string): unknown => (Object.hasOwn(value, key) ? value[key] : undefined);

/** The fields of a form; none for a gate without one. */
export function fieldsOf(form: unknown): Field[] {
  if (!isSchema(form) || Object.keys(form).length === 0) return [];
  const schema = resolved(form, form);
  if (isSchema(schema["properties"]) || schema["type"] === "object") return properties(schema, form, [], 0);
  return [fieldOf([], schema, form, true, 0)];
}

function properties(schema: Schema, root: Schema, path: readonly string[], depth: number): Field[] {
  const known = isSchema(schema["properties"]) ? Object.entries(schema["properties"]) : [];
  const needed = Array.isArray(schema["required"]) ? (schema["required"] as unknown[]) : [];
  const order = Array.isArray(schema["x-order"]) ? (schema["x-order"] as unknown[]) : [];
  const rank = ([name, part]: [string, unknown]): [number, number] => {
    const place = order.indexOf(name);
    const mine = isSchema(part) ? part["x-order"] : undefined;
    return [place < 0 ? Infinity : place, typeof mine === "number" ? mine : Infinity];
  };
  const before = (a: number, b: number) => (a === b ? 0 : a - b);
  return known
    .map((entry) => ({ entry, at: rank(entry) }))
    .sort((a, b) => before(a.at[0], b.at[0]) || before(a.at[1], b.at[1]))
    .map(({ entry: [name, part] }) => fieldOf([...path, name], resolved(part, root), root, needed.includes(name), depth));
}

/** A schema with its local reference followed. */
function resolved(schema: unknown, root: Schema): Schema {
  let found = schema;
  for (let steps = 0; isSchema(found) && typeof found["$ref"] === "string" && steps < DEPTH_MAX; steps += 1) {
    const { $ref: reference, ...rest } = found;
    let target: unknown = root;
    for (const step of (reference as string).replace(/^#/, "").split("/").slice(1)) {
      target = isSchema(target) ? own(target, step.replaceAll("~1", "/").replaceAll("~0", "~")) : undefined;
    }
    found = isSchema(target) ? { ...target, ...rest } : rest;
  }
  return isSchema(found) ? found : {};
}

function fieldOf(path: readonly string[], schema: Schema, root: Schema, required: boolean, depth: number): Field {
  const { title } = schema;
  const helps = [schema["description"], schema["x-help"]].filter((text) => typeof text === "string" && text !== "");
  const choices = choicesOf(schema);
  const widget = widgetOf(schema, choices, required, depth);
  return {
    name: path.length === 0 ? WHOLE : path.map((part) => part.replaceAll("~", "~0").replaceAll("/", "~1")).join("/"),
    path,
    label: typeof title === "string" && title !== "" ? title : words(path.at(-1) ?? "Your answer"),
    widget,
    help: helps.join(" ") || null,
    required,
    default: (schema["const"] ?? schema["default"]) as Json | undefined,
    choices,
    fields: widget === "group" ? properties(schema, root, path, depth + 1) : [],
    numbers: isSchema(schema["items"]) && isNumeric(typesOf(schema["items"])),
    limits: limitsOf(schema),
  };
}

/** A key as people read it: `unit_price` → Unit price. */
export function words(key: string): string {
  const text = key.replace(/([a-z])(?=[A-Z])/g, "$1 ").replace(/[_-]+/g, " ").trim() || key;
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function typesOf(schema: Schema): string[] {
  const kind = schema["type"];
  return (Array.isArray(kind) ? (kind as unknown[]) : [kind]).filter((one): one is string => typeof one === "string" && one !== "null");
}

const isNumeric = (kinds: readonly string[]) => kinds.length > 0 && kinds.every((kind) => kind === "integer" || kind === "number");
const isOnly = (kinds: readonly string[], kind: string) => kinds.length === 1 && kinds[0] === kind;

function choicesOf(schema: Schema): Choice[] {
  if (Array.isArray(schema["enum"])) return (schema["enum"] as Json[]).map((value) => choice(value));
  for (const keyword of ["oneOf", "anyOf"]) {
    const parts = schema[keyword];
    if (Array.isArray(parts) && parts.length > 0 && parts.every((part) => isSchema(part) && "const" in part)) {
      return (parts as Schema[]).map((part) => choice(part["const"] as Json, part["title"], part["description"]));
    }
  }
  const kinds = typesOf(schema);
  if (isOnly(kinds, "boolean")) return [choice(true, "Yes"), choice(false, "No")];
  if (isOnly(kinds, "array") && isSchema(schema["items"]) && !typesOf(schema["items"]).includes("boolean")) return choicesOf(schema["items"]);
  return [];
}

function choice(value: Json, label?: unknown, help?: unknown): Choice {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const shown = typeof label === "string" && label !== "" ? label : typeof value === "string" && value !== "" ? words(value) : text;
  return { text, value, label: shown || "(empty)", help: typeof help === "string" ? help : null };
}

const FORMATS: Record<string, Widget> = { date: "date", "date-time": "datetime", email: "email", uri: "url" };

function widgetOf(schema: Schema, choices: readonly Choice[], required: boolean, depth: number): Widget {
  const wanted = schema["x-widget"];
  const kinds = typesOf(schema);
  if (wanted === "hidden" || wanted === "file") return wanted;
  if ("const" in schema && wanted === undefined) return "hidden";
  if (isOnly(kinds, "array")) return choices.length > 0 ? "checkboxes" : isScalar(schema["items"]) ? "list" : "json";
  if (choices.length > 0) {
    if (wanted === "radio" || wanted === "select") return wanted;
    if (isOnly(kinds, "boolean") && !Array.isArray(schema["enum"]) && !required) return "checkbox";
    return choices.length <= RADIOS_MAX ? "radio" : "select";
  }
  if (isOnly(kinds, "object") || "properties" in schema) return isSchema(schema["properties"]) && depth < DEPTH_MAX ? "group" : "json";
  if (isNumeric(kinds)) return "number";
  if (!isOnly(kinds, "string")) return "json";
  if (wanted === "textarea" || wanted === "date") return wanted;
  const long = typeof schema["maxLength"] === "number" && schema["maxLength"] > 200;
  return FORMATS[String(schema["format"])] ?? (long ? "textarea" : "text");
}

const isScalar = (items: unknown) => isSchema(items) && (isOnly(typesOf(items), "string") || isNumeric(typesOf(items)));

function limitsOf(schema: Schema): Field["limits"] {
  const number = (keyword: string) => (typeof schema[keyword] === "number" ? (schema[keyword] as number) : undefined);
  const [min, max, maxLength] = [number("minimum"), number("maximum"), number("maxLength")];
  return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }), ...(maxLength === undefined ? {} : { maxLength }) };
}

/** Every field that has an entry: those inside of groups, too. */
export const leaves = (fields: readonly Field[]): Field[] => fields.flatMap((field) => (field.widget === "group" ? leaves(field.fields) : [field]));

/** The entries that a form begins with: of data that is given, else the defaults of its schema. */
export function entriesOf(fields: readonly Field[], data?: Json): Entries {
  const found: Record<string, string | string[]> = {};
  for (const field of leaves(fields)) {
    const value = data === undefined ? field.default : valueAt(data, field.path);
    if (value === undefined) continue;
    const several = Array.isArray(value) && (field.widget === "list" || field.widget === "checkboxes");
    found[field.name] = several ? (value as Json[]).map(textOf) : textOf(value);
  }
  return found;
}

const valueAt = (data: Json, path: readonly string[]): Json | undefined =>
  path.reduce<Json | undefined>((here, key) => (typeof here === "object" && here !== null && Object.hasOwn(here, key) ? (here as { [key: string]: Json })[key] : undefined), data);

const textOf = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));

/** The data that entries stand for. A field that was left empty is not part of it. */
export function dataOf(fields: readonly Field[], entries: Entries): Json {
  const [only] = fields;
  if (fields.length === 1 && only !== undefined && only.path.length === 0) return valueOf(only, entries) ?? null;
  return objectOf(fields, entries);
}

function objectOf(fields: readonly Field[], entries: Entries): { [key: string]: Json } {
  const pairs = fields.flatMap((field): [string, Json][] => {
    const key = field.path.at(-1)!;
    if (field.widget === "group") {
      const inner = objectOf(field.fields, entries);
      return field.required || Object.keys(inner).length > 0 ? [[key, inner]] : [];
    }
    const value = valueOf(field, entries);
    return value === undefined ? [] : [[key, value]];
  });
  return Object.fromEntries(pairs);
}

function valueOf(field: Field, entries: Entries): Json | undefined {
  const entry = own(entries, field.name) as string | string[] | undefined;
  const texts = Array.isArray(entry) ? entry : entry === undefined ? [] : [entry];
  if (field.widget === "checkboxes") return entry === undefined && !field.required ? undefined : texts.map((text) => chosen(field, text));
  if (field.widget === "list") {
    const items = texts.map((text) => text.trim()).filter((text) => text !== "");
    return items.length === 0 && !field.required ? undefined : items.map((text) => (field.numbers ? parsed(text) : text));
  }
  if (field.widget === "hidden") return field.default;
  const text = texts[0] ?? "";
  if (text.trim() === "") return undefined;
  if (field.choices.length > 0) return chosen(field, text);
  if (field.widget === "number" || field.widget === "json") return parsed(text);
  if (field.widget === "datetime" && /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(text)) return new Date(text).toISOString();
  return text;
}

/** A number or other JSON; what cannot be read stays text, which the schema then refuses. */
function parsed(text: string): Json {
  try {
    return JSON.parse(text.trim().replace(/^\+/, "")) as Json;
  } catch {
    return text;
  }
}

const chosen = (field: Field, text: string): Json => field.choices.find((one) => one.text === text)?.value ?? (field.choices.some((one) => one.text === text) ? null : text);

/** Data in a line, for lists of what was answered: `Refund, 100`. */
export function summary(fields: readonly Field[], data: unknown): string {
  const shown = (field: Field | null, value: unknown): string => {
    const known = field?.choices.find((one) => JSON.stringify(one.value) === JSON.stringify(value));
    if (known !== undefined) return field!.widget === "checkbox" || known.label === "Yes" || known.label === "No" ? `${field!.label}: ${known.label.toLowerCase()}` : known.label;
    return typeof value === "string" ? value : JSON.stringify(value);
  };
  if (data === null || data === undefined) return "nothing";
  if (!isSchema(data)) return shown(fields[0] ?? null, data);
  const parts = Object.entries(data).map(([key, value]) => {
    const field = fields.find((one) => one.path.at(-1) === key) ?? null;
    const text = shown(field, value);
    return field === null || field.widget === "number" ? `${field?.label ?? words(key)}: ${text}` : text;
  });
  return parts.join(", ") || "nothing";
}
