// The selection of a batch: gates of one node that get one answer, and the exceptions among them.
import { useCallback, useMemo, useState } from "react";
import type { Field } from "@/model/form";
import { groupKey, type GateRow, type GateView } from "@/model/gates";
import { draftOf, dropDraft, keepDraft } from "./drafts";

/** A form and where its entries are kept. */
export interface Sheet {
  readonly key: string;
  readonly form: unknown;
  readonly fields: readonly Field[];
}

export const draftKey = (gate: Pick<GateView, "gate" | "seq">): string => `${gate.gate}@${gate.seq}`;
const commonKey = (group: string): string => `many ${group.replace("\n", " ")}`;

export interface BatchState {
  /** The node whose gates are selected; null: none is. */
  readonly group: string | null;
  /** Names of runs, for people. */
  readonly names: ReadonlyMap<string, string>;
  readonly rows: readonly GateRow[];
  readonly selected: ReadonlySet<string>;
  readonly exceptions: ReadonlyMap<string, Sheet>;
  readonly common: Sheet | null;
  readonly select: (rows: readonly GateRow[], on: boolean, seed: string | null) => void;
  readonly except: (gate: string, sheet: Sheet | null) => void;
  /** The form of the node, as soon as one of its gates was read. */
  readonly know: (form: unknown, fields: readonly Field[]) => void;
  readonly leave: (sent: boolean) => void;
}

export function useBatch(listed: readonly GateRow[], names: ReadonlyMap<string, string>): BatchState {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [exceptions, setExceptions] = useState<ReadonlyMap<string, Sheet>>(new Map());
  const [kind, setKind] = useState<{ group: string; form: unknown; fields: readonly Field[] } | null>(null);
  const rows = useMemo(() => listed.filter((row) => selected.has(row.gate)), [listed, selected]);
  const group = rows[0] === undefined ? null : groupKey(rows[0]);

  const select = useCallback(
    (chosen: readonly GateRow[], on: boolean, seed: string | null) => {
      const [first] = chosen;
      if (first === undefined) return;
      if (on && selected.size === 0) {
        const begun = seed === null ? null : draftOf(seed);
        const key = commonKey(groupKey(first));
        if (begun !== null) keepDraft(key, begun);
      }
      const next = new Set(selected);
      for (const { gate } of chosen) on ? next.add(gate) : next.delete(gate);
      setSelected(next);
      setExceptions((before) => new Map([...before].filter(([gate]) => next.has(gate))));
    },
    [selected],
  );
  const except = useCallback((gate: string, sheet: Sheet | null) => {
    setExceptions((before) => {
      const next = new Map(before);
      if (sheet === null) next.delete(gate);
      else next.set(gate, sheet);
      return next;
    });
  }, []);
  const know = useCallback((form: unknown, fields: readonly Field[]) => group !== null && setKind({ group, form, fields }), [group]);
  const leave = useCallback(
    (sent: boolean) => {
      if (sent && group !== null) dropDraft(commonKey(group));
      if (sent) for (const { key } of exceptions.values()) dropDraft(key);
      setSelected(new Set());
      setExceptions(new Map());
    },
    [group, exceptions],
  );
  const common = useMemo<Sheet | null>(() => (group !== null && kind?.group === group ? { key: commonKey(group), form: kind.form, fields: kind.fields } : null), [group, kind]);
  return { group, names, rows, selected, exceptions, common, select, except, know, leave };
}
