// The names of the runs behind gates: their key or entity, by which people know them. The list of gates does not have
// them, so that live runs are asked for, one request for each workflow; a run that is not among them keeps its id.
import { useEffect, useState } from "react";
import { api, given } from "@/api/client";
import type { GateRow } from "@/model/gates";

const MOST = 200;

export function useRunNames(rows: readonly GateRow[]): ReadonlyMap<string, string> {
  const [names, setNames] = useState<ReadonlyMap<string, string>>(new Map());
  const unnamed = rows.filter((row) => row.over === undefined && !names.has(row.run));
  const workflows = [...new Set(unnamed.map((row) => row.workflow))].sort().join("\n");
  const runs = unnamed.length;
  useEffect(() => {
    if (workflows === "") return undefined;
    let over = false;
    const read = async (workflow: string) => {
      const query = { workflow, status: ["running", "paused"], limit: MOST };
      const page = await given(api.GET("/api/v1/runs", { params: { query: query as never } }));
      const found = page.items.flatMap((run): [string, string][] => (run.key ?? run.entity) === null ? [] : [[run.run, (run.key ?? run.entity)!]]);
      if (!over && found.length > 0) setNames((before) => new Map([...before, ...found]));
    };
    for (const workflow of workflows.split("\n")) void read(workflow).catch(() => {}); // the ids are shown instead
    return () => {
      over = true;
    };
    // A list that was read anew has other rows: the number of those without a name changes with it.
  }, [workflows, rows.length, runs === 0]);
  return names;
}
