// Columns of a person's choice: values of inputs. They are kept in this browser; those that a workflow's drawing asks
// for are there from the start while only its runs are listed.
import { useEffect, useState } from "react";
import { api, given } from "@/api/client";
import type { RunItem } from "@/model/run-filter";
import { columnsOf, fieldsOf, templateOf } from "@/model/run-title";
import { Dialog } from "@/ui/dialog";
import { Button } from "@/ui/parts";

const KEY = "treadle.runs.columns";
const MOST = 10;

interface Drawn {
  readonly template: string | null;
  readonly columns: readonly string[];
}

/** What drawings say of names and columns, once for each workflow as long as the page lives. */
const known = new Map<string, Drawn>();

async function learn(name: string): Promise<void> {
  const found = await given(api.GET("/api/v1/workflows/{name}", { params: { path: { name } } })).catch(() => null);
  known.set(name, { template: templateOf(found?.canvas), columns: columnsOf(found?.canvas) });
}

export interface Columns {
  /** What is shown as columns. */
  readonly shown: readonly string[];
  /** All values that the list is asked for. */
  readonly asked: readonly string[];
  readonly templateOf: (workflow: string) => string | null;
  readonly choose: (columns: readonly string[]) => void;
}

function keptColumns(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export function useColumns(workflows: readonly string[]): Columns {
  const [chosen, setChosen] = useState<readonly string[]>(keptColumns);
  const [, setTurn] = useState(0);
  const names = [...new Set(workflows)].sort().join("\n");
  useEffect(() => {
    const missing = names.split("\n").filter((name) => name !== "" && !known.has(name));
    if (missing.length > 0) void Promise.all(missing.map(learn)).then(() => setTurn((turn) => turn + 1));
  }, [names]);
  const drawn = names.split("\n").flatMap((name) => known.get(name) ?? []);
  const own = drawn.length === 1 ? (drawn[0]?.columns ?? []) : [];
  const shown = [...new Set([...own, ...chosen])].slice(0, MOST);
  const asked = [...new Set([...shown, ...drawn.flatMap(({ template }) => (template === null ? [] : fieldsOf(template)))])].slice(0, MOST).sort();
  const choose = (columns: readonly string[]) => {
    localStorage.setItem(KEY, JSON.stringify(columns));
    setChosen(columns);
  };
  return { shown, asked, templateOf: (workflow) => known.get(workflow)?.template ?? null, choose };
}

/** `customer` of `input.customer`: what a column is called. */
export const columnName = (field: string): string => field.replace(/^input\./, "");

export function ColumnsDialog({ columns, rows, onClose }: { columns: Columns; rows: readonly RunItem[]; onClose: () => void }) {
  const [text, setText] = useState(columns.shown.map(columnName).join(", "));
  const apply = () => {
    columns.choose([...new Set(text.split(",").map((one) => one.trim()).filter((one) => one !== "").map((one) => (one.startsWith("input.") ? one : `input.${one}`)))].slice(0, MOST));
    onClose();
  };
  return (
    <Dialog title="Columns" onClose={onClose} foot={<Button kind="primary" onClick={apply}>Show</Button>}>
      <label className="field">
        <span className="label">Values of the input</span>
        <input className="input mono" autoFocus placeholder="customer, order.total" value={text} onChange={(event) => setText(event.target.value)} onKeyDown={(event) => event.key === "Enter" && apply()} />
        <span className="hint">Paths with commas between them, at most {MOST}. They are kept in this browser. {rows.length > 0 ? "A workflow can ask for its own: " : ""}<code className="mono">canvas: {"{"}title: "Order {"{id}"}", columns: [customer]{"}"}</code></span>
      </label>
    </Dialog>
  );
}
