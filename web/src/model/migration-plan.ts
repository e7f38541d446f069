// A plan to move runs to another version: what the service says of each run, gathered for reading. Pure.

export interface MigrationResult {
  readonly run: string;
  readonly ok: boolean;
  readonly outcome: string;
  readonly problem?: { readonly detail: string; readonly problems?: readonly { readonly message?: string; readonly place?: string | null }[] | null } | null;
}

export interface Obstacle {
  readonly words: string;
  /** The runs that it is in the way of. */
  readonly runs: readonly string[];
}

/** Everything in the way of one run. */
export function inTheWay({ problem }: MigrationResult): string[] {
  const lines = (problem?.problems ?? []).map((one) => one.message ?? "").filter((words) => words !== "");
  return lines.length > 0 ? lines : problem == null ? [] : [problem.detail];
}

/** What is in the way, with the runs that it stops; what stops most runs first. */
export function obstaclesOf(results: readonly MigrationResult[]): Obstacle[] {
  const found = new Map<string, string[]>();
  for (const result of results) for (const words of inTheWay(result)) found.set(words, [...(found.get(words) ?? []), result.run]);
  return [...found].map(([words, runs]) => ({ words, runs })).sort((a, b) => b.runs.length - a.runs.length);
}

/** Nodes of the versions that runs have which the wanted version does not have: those that may need a mapping. */
export const goneNodes = (have: readonly string[], wanted: readonly string[]): string[] => [...new Set(have)].filter((node) => !wanted.includes(node));
