// Fields by the schema, whatever they are: plain ones, and parts with fields of their own. A field that the language gains
// appears here by itself, with its help.
import { setField } from "@/model/flow-edit";
import { ACTIONS, kindLook } from "@/model/palette";
import { setIn, type Path } from "@/model/yaml-edit";
import { Button } from "@/ui/parts";
import { useEditing } from "../context";
import { actionSchema, fieldsOf, type Field as FieldGiven, type Schema } from "../schema";
import { Field, nameOf } from "./field";

type Values = Record<string, unknown>;
const isValues = (value: unknown): value is Values => value !== null && typeof value === "object" && !Array.isArray(value);
const DEEPEST = 3;

interface FieldsProps {
  root: Schema;
  fields: readonly FieldGiven[];
  path: Path;
  value: Values;
  depth?: number;
}

export function Fields({ root, fields, path, value, depth = 0 }: FieldsProps) {
  return <>{fields.map((field) => <AnyField key={field.name} root={root} field={field} path={[...path, field.name]} value={value[field.name]} depth={depth} />)}</>;
}

/** A field as one control, or as a part that is there or not. */
function AnyField({ root, field, path, value, depth }: { root: Schema; field: FieldGiven; path: Path; value: unknown; depth: number }) {
  const asPart = field.part !== null && depth < DEEPEST && (isValues(value) || (field.onlyPart && value == null));
  if (!asPart) return <Field field={field} path={path} value={value} />;
  return <Part root={root} schema={field.part as Schema} title={nameOf(field.name)} help={field.help} path={path} value={value} depth={depth} />;
}

interface PartProps {
  root: Schema;
  schema: Schema;
  title: string;
  help: string;
  path: Path;
  value: unknown;
  depth?: number;
  /** What it begins with when it is added. */
  begin?: unknown;
  /** It stands by itself in a section, and its title is the section's. */
  isSection?: boolean;
}

export function Part({ root, schema, title, help, path, value, depth = 0, begin = {}, isSection = false }: PartProps) {
  const { draft, fixed } = useEditing();
  const has = isValues(value);
  const words = title.toLowerCase();
  const toggle = () => draft.edit(`${has ? "remove" : "add"} ${words}`, (text) => setField(text, path, has ? undefined : begin));
  const isAction = schema.allOf?.some((one) => one.if?.properties?.kind !== undefined) === true;
  return (
    <div className="ed-part-whole" role="group" aria-label={title}>
      <div className="ed-part-head">{isSection ? <h3>{title}</h3> : <span>{title}</span>}{!fixed && <Button kind="ghost" size="sm" className="push ed-add" aria-label={`${has ? "Remove" : "Add"} ${words}`} onClick={toggle}>{has ? "Remove" : "Add"}</Button>}</div>
      <p className="hint">{help}</p>
      {has && <div className={isSection ? "ed-part-own" : "ed-part"}>{isAction ? <ActionFields root={root} path={path} action={value} depth={depth + 1} /> : <Fields root={root} fields={fieldsOf(root, schema)} path={path} value={value} depth={depth + 1} />}</div>}
    </div>
  );
}

/** The kind of an action, and the fields of this kind. */
export function ActionFields({ root, path, action, depth = 0 }: { root: Schema; path: Path; action: Values; depth?: number }) {
  const { draft, fixed } = useEditing();
  const kind = typeof action["kind"] === "string" ? action["kind"] : "";
  const schema = actionSchema(root, kind);
  const all = (root.$defs?.["Action"]?.properties?.["kind"]?.anyOf?.[0]?.enum ?? ACTIONS.map((one) => one.kind)).map(String);
  const change = (next: string) => draft.edit(`change kind of ${String(path[1])}`, (text) => setIn(text, path, ACTIONS.find((one) => one.kind === next)?.node["action"] ?? { kind: next }));
  return (
    <>
      <label className="field ed-field">
        <span className="ed-field-label">Kind</span>
        <select className="select input-sm" disabled={fixed} value={kind} onChange={(event) => change(event.target.value)}>
          {!all.includes(kind) && <option value={kind}>{kind || "–"}</option>}
          {all.map((one) => <option key={one} value={one}>{kindLook(one).name}</option>)}
        </select>
        <span className="hint">{schema.description ?? "What the node does."}</span>
      </label>
      <Fields root={root} fields={fieldsOf(root, schema).filter((field) => field.name !== "kind")} path={path} value={action} depth={depth} />
    </>
  );
}
