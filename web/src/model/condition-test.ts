// A condition against a sample: a workflow of two nodes whose transition has the condition, for the service to play.

export interface Sample {
  readonly state: Record<string, unknown>;
  readonly input: unknown;
}

/** The definition that is played: `probe` writes the sample's state, `taken` is reached if the condition holds. */
export function probeOf(condition: unknown, { state }: Sample): Record<string, unknown> {
  const keys = Object.keys(state);
  const probe = keys.length === 0 ? {} : { action: { kind: "set", values: Object.fromEntries(keys.map((key) => [key, { literal: state[key] }])) }, output_mapping: Object.fromEntries(keys.map((key) => [`state.${key}`, `$.${key}`])) };
  return { workflow: "condition", start: "probe", nodes: { probe: { ...probe, on_no_match: "end" }, taken: {} }, transitions: [{ from: "probe", to: "taken", condition }] };
}

/** The first names that a condition reads below `state`, with nothing in them. */
export function sampleState(condition: string): Record<string, null> {
  return Object.fromEntries([...condition.matchAll(/\bstate\.([A-Za-z_]\w*)/g)].map((found) => [found[1] as string, null]));
}
