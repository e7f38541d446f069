// @vitest-environment node
// The picture that the service gives of a run, against the fold of the same history: nodes and edges must show the same.
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { edgeSummary, type EdgeGiven } from "@/model/edges";
import { Folding, type Event, type Shape } from "@/model/fold";
import { stateFrom, type RunPicture } from "@/model/fold/from-picture";
import { summarise, type NodeGiven, type NodeSummary } from "@/model/summary";

const GOLDEN = new URL("./golden/", import.meta.url);

interface Case {
  scenario: string;
  run: string;
  versions: Record<string, { meetings: Shape["meetings"]; edges: [id: string, source: string, target: string, triggered: boolean, group: string | null][] }>;
  history: Event[];
  pictures: RunPicture[];
}

const shapesOf = ({ versions }: Case): [number, Shape][] =>
  Object.entries(versions).map(([version, { meetings, edges }]) => [Number(version), { meetings, edges: new Map(edges.map(([id, source, target, triggered, group]) => [id, { source, target, triggered, group }])) }]);

const files = readdirSync(GOLDEN).filter((name) => name.endsWith(".json"));
const cases = files.flatMap((file) => (JSON.parse(readFileSync(new URL(file, GOLDEN), "utf-8")) as Case[]).map((one) => [`${file}: ${one.scenario} (${one.run})`, one] as const));

/** What a node can show in a run of this version. */
function nodesOf(shape: Shape): NodeGiven[] {
  const refs = new Set([...shape.edges.values()].flatMap(({ source, target }) => [source, target]));
  return [...refs].map((ref) => ({
    ref, words: "", reachable: true, meetings: shape.meetings.map(([group, node]) => ({ group, node, words: `all of ${group}` })),
    replicated: new Set([...shape.edges].filter(([, edge]) => edge.target === ref).map(([id]) => id)),
  }));
}

test.each(cases)("4 · the picture shows what the history does: %s", (_name, given) => {
  const shapes = shapesOf(given);
  for (const picture of given.pictures) {
    const folding = new Folding(shapes);
    folding.add(given.history.slice(0, picture.seq));
    const known = folding.newest;
    const shape = new Map(shapes).get(known.version) as Shape;
    const drawn = stateFrom(picture, shape);
    const now = known.at + 1_000;
    // A fork counts the times of inherited visits for the other run; the service's picture does so, too.
    const plain = ({ signature }: NodeSummary) => ({ ...JSON.parse(signature), ...(known.forkedFrom === null ? {} : { value: "", histogram: null, tail: 0, times: null }) }) as unknown;
    for (const node of nodesOf(shape)) expect(plain(summarise(drawn, node, now)), `${node.ref} at ${picture.seq}`).toEqual(plain(summarise(known, node, now)));
    for (const [id, edge] of shape.edges) {
      const asked = { id, ...edge, on: "success", condition: null, tier: 1, loop_max: null, replicates: false, back: true, words: [] } as EdgeGiven;
      expect(edgeSummary(drawn, asked), `${id} at ${picture.seq}`).toEqual(edgeSummary(known, asked));
    }
    expect(Object.fromEntries([...drawn.counts].sort())).toEqual(Object.fromEntries([...known.counts].sort()));
    expect([drawn.status, drawn.version, drawn.workflow, drawn.started]).toEqual([known.status, known.version, known.workflow, known.started]);
  }
});
