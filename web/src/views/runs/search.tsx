// Search in ids, keys, tags and entities. It asks when typing stops, and at once on Enter: nothing typed is lost.
import { useEffect, useRef, useState } from "react";
import type { Clause } from "@/model/run-filter";
import { Icon } from "@/ui/icon";

const PAUSE_MS = 300;

export function Search({ clauses, onChange }: { clauses: readonly Clause[]; onChange: (clauses: readonly Clause[]) => void }) {
  const shown = clauses.find((one) => one.field === "text" && !one.not)?.values[0] ?? "";
  const [text, setText] = useState(shown);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => setText(shown), [shown]);
  const apply = (value: string) => {
    const rest = clauses.filter((one) => one.field !== "text");
    if (value !== shown) onChange(value === "" ? rest : [...rest, { field: "text", not: false, values: [value] }]);
  };
  const latest = useRef(apply);
  latest.current = apply;
  useEffect(() => {
    const timer = setTimeout(() => latest.current(text.trim()), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test((event.target as HTMLElement).tagName)) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <form className="input-wrap runs-search" role="search" onSubmit={(event) => { event.preventDefault(); apply(text.trim()); }}>
      <Icon name="search" />
      <input ref={field} className="input" placeholder="Key, id, tag or entity" aria-label="Search runs" value={text} onChange={(event) => setText(event.target.value)} />
      <span className="kbd" aria-hidden="true">/</span>
    </form>
  );
}
