// Sibling groups of a definition, as the drawing shows them: which nodes their branches go through, and where they meet.
import type { Flow, FlowEdge } from "./flow";
import type { Place } from "./layout";

export interface Group {
  readonly name: string;
  /** Nodes that branches of the group visit. */
  readonly members: readonly string[];
  /** How many branches, if the definition says so. */
  readonly count: string;
}

const partOf = (value: unknown): Record<string, unknown> => (value !== null && typeof value === "object" ? (value as Record<string, unknown>) : {});
export const groupOf = (edge: FlowEdge): string => String(edge.value["sibling_group"] ?? edge.id);
const joined = (edge: FlowEdge): string | null => {
  const join = partOf(edge.value["synchronization"] ?? edge.value["join"]);
  const name = join["sibling_group"] ?? join["joins_transition"];
  return name === undefined ? null : String(name);
};

function reach(from: readonly string[], next: (ref: string) => readonly string[]): Set<string> {
  const seen = new Set(from);
  const todo = [...from];
  while (todo.length > 0)
    for (const ref of next(todo.pop() as string))
      if (!seen.has(ref)) {
        seen.add(ref);
        todo.push(ref);
      }
  return seen;
}

const countOf = (edge: FlowEdge): string => {
  const count = edge.value["spawn_count"];
  return typeof count === "number" && count > 1 ? `×${count}` : "";
};

/** The groups, larger ones first, so that inner ones are drawn over them. */
export function groupsOf(flow: Flow): Group[] {
  const fans = new Map<string, FlowEdge[]>();
  for (const edge of flow.edges) if (edge.look === "fan" || edge.value["sibling_group"] !== undefined) fans.set(groupOf(edge), [...(fans.get(groupOf(edge)) ?? []), edge]);
  const groups = [...fans].map(([name, edges]): Group => {
    const names = new Set([name, ...edges.map((edge) => edge.id), ...edges.map((edge) => edge.source)]);
    const isJoin = (edge: FlowEdge) => names.has(joined(edge) ?? "");
    const inner = flow.edges.filter((edge) => !isJoin(edge) && !edges.includes(edge));
    const begin = edges.map((edge) => edge.target);
    const ahead = reach(begin, (ref) => inner.filter((edge) => edge.source === ref).map((edge) => edge.target));
    const meet = flow.edges.filter(isJoin).map((edge) => edge.source);
    const back = reach(meet, (ref) => inner.filter((edge) => edge.target === ref).map((edge) => edge.source));
    const members = meet.length === 0 ? begin : flow.nodes.map((node) => node.ref).filter((ref) => (ahead.has(ref) && back.has(ref)) || begin.includes(ref));
    return { name, members: [...new Set(members)], count: edges.map(countOf).find((one) => one !== "") ?? "" };
  });
  return groups.sort((a, b) => b.members.length - a.members.length);
}

export interface Band extends Place {
  readonly name: string;
}

/** The rectangles behind the nodes of groups; one around another has room for it. */
export function bandsOf(groups: readonly Group[], places: ReadonlyMap<string, Place>): Band[] {
  return groups.flatMap(({ name, members }, at) => {
    const held = members.flatMap((ref) => places.get(ref) ?? []);
    if (held.length === 0) return [];
    const within = groups.slice(at + 1).filter((other) => other.members.every((ref) => members.includes(ref))).length;
    const pad = 20 + 14 * within;
    const [x, y] = [Math.min(...held.map((one) => one.x)) - pad, Math.min(...held.map((one) => one.y)) - pad - 12 - 10 * within];
    return [{ name, x, y, width: Math.max(...held.map((one) => one.x + one.width)) + pad - x, height: Math.max(...held.map((one) => one.y + one.height)) + pad - y }];
  });
}
