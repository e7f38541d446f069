// The input of a run as a form, by the JSON Schema of its workflow. The service is the judge; what is wrong is said sooner.
import { useEffect, useMemo, useState } from "react";
import { check } from "@/model/form-check";
import { dataOf, entriesOf, type Field, type Json } from "@/model/form";
import { Fields } from "../gates/fields";
import "../gates/gates.css";

interface InputFormProps {
  schema: unknown;
  fields: readonly Field[];
  /** What it begins with; undefined: the defaults of the schema. */
  input: unknown;
  onChange: (input: Json) => void;
}

export default function InputForm({ schema, fields, input, onChange }: InputFormProps) {
  const [entries, setEntries] = useState(() => entriesOf(fields, input as Json | undefined));
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const data = useMemo(() => dataOf(fields, entries), [fields, entries]);
  useEffect(() => onChange(data), [data]);
  const wrong = useMemo(() => new Map([...check(schema, fields, data).fields].filter(([name]) => touched.has(name))), [schema, fields, data, touched]);
  const set = (name: string, value: string | readonly string[]) => {
    setEntries((before) => ({ ...before, [name]: value }));
    setTouched((before) => new Set(before).add(name));
  };
  return <div className="gates-fields"><Fields fields={fields} state={{ entries, wrong, set, keep: null, disabled: false, keyed: null }} /></div>;
}
