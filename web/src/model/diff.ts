// What changed in a run between two of its states: data by place, and things by kind. Pure.
import type { viewOf } from "./fold";

type View = ReturnType<typeof viewOf>;

export interface Change {
  readonly place: string;
  readonly kind: "added" | "removed" | "changed";
  readonly before: unknown;
  readonly after: unknown;
}

const isObject = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === "object" && !Array.isArray(value);

/** Equal as JSON. */
export function isEqual(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((value, index) => isEqual(value, other[index]));
  if (!isObject(one) || !isObject(other)) return false;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && isEqual(one[key], other[key]));
}

/** Changes of data. Lists are compared as a whole: a position says nothing about which element it was. */
export function dataChanges(before: unknown, after: unknown, place: string): Change[] {
  if (isEqual(before, after)) return [];
  if (!isObject(before) || !isObject(after)) return [{ place, kind: "changed", before, after }];
  const found: Change[] = [];
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const here = `${place}.${key}`;
    if (!Object.hasOwn(before, key)) found.push({ place: here, kind: "added", before: undefined, after: after[key] });
    else if (!Object.hasOwn(after, key)) found.push({ place: here, kind: "removed", before: before[key], after: undefined });
    else found.push(...dataChanges(before[key], after[key], here));
  }
  return found;
}

function listChanges(before: readonly object[], after: readonly object[], key: string, name: string): Change[] {
  const index = (list: readonly object[]) => new Map(list.map((one) => [String((one as Record<string, unknown>)[key]), one]));
  const [old, next] = [index(before), index(after)];
  const found: Change[] = [];
  for (const [id, one] of next) {
    const was = old.get(id);
    if (was === undefined) found.push({ place: `${name} ${id}`, kind: "added", before: undefined, after: one });
    else found.push(...dataChanges(was, one, `${name} ${id}`));
  }
  for (const [id, one] of old) if (!next.has(id)) found.push({ place: `${name} ${id}`, kind: "removed", before: one, after: undefined });
  return found;
}

/** Everything that is another in the second state. */
export function changesBetween(before: View, after: View): Change[] {
  const scopes = (view: View) => new Map([view.scope, ...view.branches].map((scope) => [scope.group === null ? "" : `branch ${scope.group}.${scope.branch} `, scope]));
  const [old, next] = [scopes(before), scopes(after)];
  const data = [...new Set([...old.keys(), ...next.keys()])].flatMap((name) =>
    (["state", "output", "nodes"] as const).flatMap((root) => dataChanges(old.get(name)?.[root] ?? {}, next.get(name)?.[root] ?? {}, `${name}${root}`)),
  );
  const own = (["status", "output", "error"] as const).flatMap((field) => dataChanges(before[field], after[field], `run.${field}`));
  return [
    ...own, ...data,
    ...listChanges(before.visits, after.visits, "visit", "visit"), ...listChanges(before.groups, after.groups, "group", "group"),
    ...listChanges(before.joins, after.joins, "join", "join"), ...listChanges(before.gates, after.gates, "visit", "gate"), ...listChanges(before.timers, after.timers, "timer", "timer"),
  ];
}
