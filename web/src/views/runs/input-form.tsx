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
  /** Whether it was sent: then all that is wrong is said, not only what was touched. */
  tried: boolean;
  /** `isWrong`: the service would refuse it. */
  onChange: (input: Json, isWrong: boolean) => void;
}

export default function InputForm({ schema, fields, input, tried, onChange }: InputFormProps) {
  const [entries, setEntries] = useState(() => entriesOf(fields, input as Json | undefined));
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const data = useMemo(() => dataOf(fields, entries), [fields, entries]);
  const found = useMemo(() => check(schema, fields, data), [schema, fields, data]);
  useEffect(() => onChange(data, found.sure && found.fields.size > 0), [data, found]);
  const wrong = useMemo(() => new Map([...found.fields].filter(([name]) => tried || touched.has(name))), [found, touched, tried]);
  const set = (name: string, value: string | readonly string[]) => {
    setEntries((before) => ({ ...before, [name]: value }));
    setTouched((before) => new Set(before).add(name));
  };
  return <div className="gates-fields"><Fields fields={fields} state={{ entries, wrong, set, keep: null, disabled: false, keyed: null }} /></div>;
}
