// How a gate is called in lists.
import { words } from "@/model/form";
import type { GateRow } from "@/model/gates";

type Called = Pick<GateRow, "gate" | "title" | "node" | "run" | "visit">;

/** Its title; without one, its node. */
export const rowTitle = (row: Pick<Called, "title" | "node" | "visit">): string => row.title ?? (row.visit === 0 ? "Out of time" : words(row.node));

/** What tells it from its neighbours: the name of its run, else the end of the run's id. */
export const rowPlace = (row: Called, names: ReadonlyMap<string, string>): string => names.get(row.gate) ?? `${row.run.slice(-8)}/${row.visit}`;

/** Both. */
export const rowName = (row: Called, names: ReadonlyMap<string, string>): string => `${rowTitle(row)} ${rowPlace(row, names)}`;
