// People on a journey: who stands where and in which state, how many went on, and how long they stayed. Pure.
import type { components } from "@/api/schema";
import { WORST, type Look, type Tone } from "./states";

type Schemas = components["schemas"];
export type Entity = Schemas["EntityView"];
export type EntityPlace = Schemas["EntityPlace"];
export type Crowd = Schemas["Crowd"];
export type Conversion = Schemas["ConversionView"];
export type Leg = Schemas["Leg"];
export type JourneyMove = Schemas["JourneyMove"];

/** More than these at one place are drawn as one mark with their number. */
export const CLUSTER_ABOVE = 5;

export const addressOf = ({ type, id }: { type: string; id: string }): string => `${type}/${id}`;
export const nameOf = (entity: { name: string | null; id: string }): string => entity.name ?? entity.id;

/** `HL` for Hanna Lindqvist, `8` for 8841. */
export function initialsOf(entity: { name: string | null; id: string }): string {
  const words = nameOf(entity).split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const first = [...(words[0] ?? "?")][0] ?? "?";
  const last = words.length > 1 ? ([...(words.at(-1) as string)][0] ?? "") : "";
  return `${first}${last}`.toUpperCase();
}

/** `1,204` short: `1.2k`. */
export const shortCount = (count: number): string => (count < 1_000 ? String(count) : count < 100_000 ? `${(Math.floor(count / 100) / 10).toString()}k` : `${Math.floor(count / 1_000)}k`);

const look = (tone: Tone, word: string, glyph: Look["glyph"] = tone): Look => ({ tone, word, glyph });
const STATES: Record<string, Look> = {
  running: look("active", "at work"),
  waiting_for_user: look("ask", "waits for the user"),
  paused: look("stop", "paused", "pause"),
  completed: look("done", "completed"),
  cancelled: look("stop", "cancelled"),
  failed: look("fail", "failed"),
};

/** How a state of the canvas is shown. At a node that waits, a run at work waits for time, a signal or another run. */
export function stateLook(state: string | null, nodeKind?: string): Look {
  if (state === "running" && nodeKind === "waits") return look("wait", "waits for time");
  if (state === "running" && nodeKind === "signal") return look("wait", "waits for a signal");
  if (state === "running" && nodeKind === "calls") return look("wait", "waits for another");
  return STATES[state ?? ""] ?? look("idle", "rests here");
}

/** Kinds of places, and the name of each. */
export interface PlaceRef {
  readonly kind: "node" | "edge" | "section";
  readonly name: string;
}

export const keyOf = ({ kind, name }: PlaceRef): string => `${kind}:${name}`;

export function placeOf(place: { node: string | null; edge: string | null; section: string | null }): PlaceRef | null {
  if (place.node != null) return { kind: "node", name: place.node };
  if (place.edge != null) return { kind: "edge", name: place.edge };
  return place.section != null ? { kind: "section", name: place.section } : null;
}

export interface Standing {
  readonly place: PlaceRef;
  readonly count: number;
  readonly look: Look;
  /** `2 wait for the user, 1 at work`, for who cannot see the colour. */
  readonly words: string;
  /** Each of them, if there are five or fewer and all are known; else they are one mark. */
  readonly people: readonly Entity[] | null;
}

/** Who stands where. A mark for many wears the worst of their states. */
export function standings(crowds: readonly Crowd[], items: readonly Entity[], kinds: ReadonlyMap<string, string>): Standing[] {
  const here = new Map<string, Entity[]>();
  for (const entity of items) {
    const place = placeOf(entity.positions[0] ?? { node: null, edge: null, section: null });
    if (place !== null) here.set(keyOf(place), [...(here.get(keyOf(place)) ?? []), entity]);
  }
  return crowds.flatMap((crowd) => {
    const place = placeOf(crowd);
    if (place === null) return [];
    const kind = place.kind === "node" ? kinds.get(place.name) : undefined;
    const looks = Object.entries(crowd.states ?? {}).map(([state, count]) => [stateLook(state, kind), count] as const);
    const worst = [...looks].sort(([a], [b]) => WORST.indexOf(a.tone) - WORST.indexOf(b.tone))[0]?.[0] ?? stateLook(null);
    const people = [...(here.get(keyOf(place)) ?? [])].sort((a, b) => a.positions[0]!.since - b.positions[0]!.since);
    const words = looks.map(([one, count]) => `${count} ${one.word}`).join(", ");
    return [{ place, count: crowd.count, look: worst, words, people: crowd.count <= CLUSTER_ABOVE && people.length === crowd.count ? people : null }];
  });
}

/** How many are in each section: at its nodes, and in the section itself. */
export function countsBySection(crowds: readonly Crowd[], sectionOf: ReadonlyMap<string, string>, edgeFrom: ReadonlyMap<string, string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const crowd of crowds) {
    const place = placeOf(crowd);
    const section = place === null ? undefined : place.kind === "section" ? place.name : sectionOf.get(place.kind === "node" ? place.name : (edgeFrom.get(place.name) ?? ""));
    if (section !== undefined) counts.set(section, (counts.get(section) ?? 0) + crowd.count);
  }
  return counts;
}

export interface Share {
  readonly entered: number;
  /** Of those who entered its source, the share that went this way; null while nobody has. */
  readonly percent: number | null;
}

export function sharesOf(conversion: Conversion | undefined, edges: readonly { id: string; source: string }[]): Map<string, Share> {
  const entered = new Map((conversion?.nodes ?? []).map((one) => [one.node, one.entered]));
  const taken = new Map((conversion?.edges ?? []).map((one) => [one.edge, one.entered]));
  return new Map(edges.map(({ id, source }) => {
    const [count, from] = [taken.get(id) ?? 0, entered.get(source) ?? 0];
    return [id, { entered: count, percent: from === 0 ? null : Math.min(100, (100 * count) / from) }];
  }));
}

/** `68 %`, `1.2 %`. */
export const percentText = (percent: number): string => `${percent > 0 && percent < 10 && percent % 1 !== 0 ? percent.toFixed(1) : Math.round(percent)} %`;

const UNITS: [ms: number, name: string][] = [[365 * 86_400_000, "y"], [30 * 86_400_000, "mo"], [86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1_000, "s"]];

/** How long somebody stays, in the largest unit that fits: `12 d`, `2 d 6 h`, `4 s`, `0 s`. */
export function stayText(ms: number): string {
  const at = UNITS.findIndex(([unit]) => ms >= unit);
  if (at === -1) return ms < 100 ? "0 s" : `${(ms / 1_000).toFixed(1)} s`;
  const [unit, name] = UNITS[at] as [number, string];
  const [whole, next] = [Math.floor(ms / unit), UNITS[at + 1]];
  const rest = next === undefined ? 0 : Math.floor((ms % unit) / next[0]);
  return whole < 10 && rest > 0 && name !== "s" ? `${whole} ${name} ${rest} ${(next as [number, string])[1]}` : `${whole} ${name}`;
}
