// The versions that a run has had: each is read once, and taught to the fold.
import { api, given } from "@/api/client";
import type { components } from "@/api/schema";
import type { Event, Folding, Shape } from "@/model/fold";

export type DrawnGraph = components["schemas"]["DrawnGraph"];

/** One version of the workflow, as far as the page draws it. */
export interface Drawn {
  readonly graph: DrawnGraph;
  readonly canvas: unknown;
  readonly shape: Shape;
}

const shapeOf = (graph: DrawnGraph): Shape => ({
  meetings: graph.meetings.map((one) => [one.group, one.node, one.timed ?? false] as const),
  edges: new Map(graph.transitions.map(({ id, source, target, triggered, group }) => [id, { source, target, triggered, group: group ?? null }])),
});

/** The versions that events lead to. */
export const versionsOf = (events: readonly Event[]): number[] =>
  events.flatMap((event) => (event.type === "run.migrated" ? [event["to"] as number] : event.type === "run.started" || event.type === "run.queued" ? [event["version"] as number] : []));

async function read(workflow: string, version: number): Promise<Drawn> {
  const path = { name: workflow, version: String(version) };
  const [graph, definition] = await Promise.all([
    given(api.GET("/api/v1/workflows/{name}/graph", { params: { path: { name: workflow }, query: { version } } })) as Promise<DrawnGraph>,
    given(api.GET("/api/v1/workflows/{name}/versions/{version}", { params: { path } })).catch(() => null),
  ]);
  return { graph, canvas: definition?.canvas ?? null, shape: shapeOf(graph) };
}

export class Versions {
  private readonly asked = new Map<number, Promise<Drawn>>();
  private readonly drawn = new Map<number, Drawn>();

  of = (version: number): Drawn | undefined => this.drawn.get(version);

  /** Reads one version, once. */
  async draw(workflow: string, version: number): Promise<Drawn> {
    const asked = this.asked.get(version) ?? read(workflow, version);
    this.asked.set(version, asked);
    try {
      const drawn = await asked;
      this.drawn.set(version, drawn);
      return drawn;
    } catch (error) {
      this.asked.delete(version); // the next one asks again
      throw error;
    }
  }

  /** Reads the versions that these events lead to, so that they can be folded. */
  async learn(workflow: string, events: readonly Event[], folding: Folding): Promise<void> {
    for (const version of versionsOf(events)) if (!folding.knows(version)) folding.learn(version, (await this.draw(workflow, version)).shape);
  }
}
