// The JSON Schema of the language, read as a person reads it: which fields a thing has, and what each is for.

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly { if?: { properties?: { kind?: { const?: string } } }; then?: Schema }[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly $defs?: Readonly<Record<string, Schema>>;
}

export interface Field {
  readonly name: string;
  readonly help: string;
  readonly choices: readonly string[] | null;
  readonly form: "text" | "long" | "number" | "flag" | "choice" | "value";
  readonly preset: unknown;
  /** The schema of its fields, if it can be written as an object with fields of its own. */
  readonly part: Schema | null;
  /** It can only be written as that. */
  readonly onlyPart: boolean;
  /** Words that it may be, beside other forms. */
  readonly suggest: readonly string[];
}

let asked: Promise<Schema> | null = null;

export const loadSchema = (): Promise<Schema> => (asked ??= import("../../../../src/treadle/language/treadle.schema.json").then((file) => file.default as unknown as Schema));

/** What a schema means behind its references, without the alternative "nothing". */
export function plain(root: Schema, schema: Schema | undefined): Schema {
  let here = schema ?? {};
  for (let step = 0; step < 8; step++) {
    if (here.$ref !== undefined) here = { ...follow(root, here.$ref), ...(here.description === undefined ? {} : { description: here.description }) };
    else if (here.anyOf !== undefined) {
      const some = here.anyOf.filter((one) => one.type !== "null");
      if (some.length !== 1) return here;
      here = { ...some[0], ...(here.description === undefined ? {} : { description: here.description }), ...(here.default === undefined ? {} : { default: here.default }) };
    } else return here;
  }
  return here;
}

const follow = (root: Schema, ref: string): Schema => ref.replace(/^#\//, "").split("/").reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], root) as Schema;

/** The schema of an action of a kind. */
export function actionSchema(root: Schema, kind: string): Schema {
  const one = root.$defs?.["Action"]?.allOf?.find((each) => each.if?.properties?.kind?.const === kind);
  return plain(root, one?.then);
}

/** Everything that a schema allows, alternative by alternative, without "nothing". */
export function options(root: Schema, schema: Schema | undefined): Schema[] {
  const here = plain(root, schema);
  return here.anyOf === undefined ? (here.type === "null" ? [] : [here]) : here.anyOf.flatMap((one) => options(root, one));
}

const isPart = (schema: Schema): boolean => Object.keys(schema.properties ?? {}).length > 0 || schema.allOf?.some((one) => one.if?.properties?.kind !== undefined) === true;

const LONG = new Set(["template", "prompt", "system", "description"]);

function formOf(name: string, schema: Schema): Field["form"] {
  const types = [schema.type ?? []].flat();
  if (schema.enum !== undefined) return "choice";
  if (types.includes("boolean")) return "flag";
  if (types.includes("integer") || types.includes("number")) return "number";
  if (types.includes("string")) return LONG.has(name) ? "long" : "text";
  return "value";
}

/** The fields of an object; other spellings of a field are left out. */
export function fieldsOf(root: Schema, schema: Schema): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, given]) => {
    if (given.description?.startsWith("Another spelling") === true) return [];
    const [meant, all] = [plain(root, given), options(root, given)];
    const shared = { name, help: given.description ?? meant.description ?? "", preset: meant.default ?? given.default };
    const suggest = [...new Set(all.flatMap((one) => one.enum ?? []).map(String))];
    return [{ ...shared, choices: meant.enum?.map(String) ?? null, form: formOf(name, meant), part: all.find(isPart) ?? null, onlyPart: all.length > 0 && all.every(isPart), suggest: meant.enum === undefined ? suggest : [] }];
  });
}

/** The schema at a path of a definition. */
export function schemaAt(root: Schema, path: readonly (string | number)[], kindAt: (path: readonly (string | number)[]) => string | null): Schema {
  let here = plain(root, root.$defs?.["Workflow"]);
  path.forEach((key, at) => {
    const options = here.anyOf === undefined ? [here] : here.anyOf.map((one) => plain(root, one));
    const next = options.map((one) => (typeof key === "number" ? one.items : (one.properties?.[key] ?? (typeof one.additionalProperties === "object" ? one.additionalProperties : undefined)))).find((one) => one !== undefined);
    here = plain(root, next);
    if (here.anyOf !== undefined) here = here.anyOf.map((one) => plain(root, one)).find((one) => one.properties !== undefined) ?? here;
    if (here.allOf?.some((one) => one.if?.properties?.kind !== undefined) === true) {
      const kind = kindAt(path.slice(0, at + 1));
      here = kind === null ? here : { ...actionSchema(root, kind) };
    }
  });
  return here;
}
