// The names of the runs behind gates: by the template of the workflow's drawing, else their key or entity, by which
// people know them. The list of gates does not have them, so that live runs are asked for, one request for each
// workflow; a run that is not among them keeps its id.
import { useEffect, useMemo, useState } from "react";
import { api, given } from "@/api/client";
import type { GateRow } from "@/model/gates";
import { fieldsOf, nameOf, templateOf, titled } from "@/model/run-title";

const MOST = 200;

async function namesIn(workflow: string): Promise<[string, string][]> {
  const found = await given(api.GET("/api/v1/workflows/{name}", { params: { path: { name: workflow } } })).catch(() => null);
  const template = templateOf(found?.canvas);
  const query = { workflow, status: ["running", "paused"], limit: MOST, ...(template === null ? {} : { field: fieldsOf(template).slice(0, 10) }) };
  const page = await given(api.GET("/api/v1/runs", { params: { query: query as never } }));
  return page.items.flatMap((run): [string, string][] => {
    const title = template === null ? null : titled(template, (field) => (run.fields as Record<string, unknown> | undefined)?.[field]);
    return title === null && run.key === null && run.entity === null ? [] : [[run.run, nameOf(run, title)]];
  });
}

/** Names by gate. Where a run has several open gates, the number of the visit tells them apart. */
export function useRunNames(rows: readonly GateRow[]): ReadonlyMap<string, string> {
  const [names, setNames] = useState<ReadonlyMap<string, string>>(new Map());
  const unnamed = rows.filter((row) => row.over === undefined && !names.has(row.run));
  const workflows = [...new Set(unnamed.map((row) => row.workflow))].sort().join("\n");
  const runs = unnamed.length;
  useEffect(() => {
    if (workflows === "") return undefined;
    let over = false;
    const read = async (workflow: string) => {
      const found = await namesIn(workflow);
      if (!over && found.length > 0) setNames((before) => new Map([...before, ...found]));
    };
    for (const workflow of workflows.split("\n")) void read(workflow).catch(() => {}); // the ids are shown instead
    return () => {
      over = true;
    };
    // A list that was read anew has other rows: the number of those without a name changes with it.
  }, [workflows, rows.length, runs === 0]);
  return useMemo(() => {
    const open = new Map<string, number>();
    for (const row of rows) open.set(row.run, (open.get(row.run) ?? 0) + 1);
    return new Map(rows.flatMap((row) => {
      const name = names.get(row.run);
      return name === undefined ? [] : [[row.gate, (open.get(row.run) ?? 0) > 1 ? `${name}/${row.visit}` : name] as const];
    }));
  }, [names, rows]);
}
