// A drawing of a definition as SVG text: what the graph shows, for files and for differences. Everything written by
// people is escaped; nothing in it runs or is fetched.
import type { Mark } from "./drawing";
import type { Flow, FlowEdge } from "./flow";
import { bandsOf, groupsOf } from "./groups";
import type { Place } from "./layout";
import { kindLook } from "./palette";
import { routes, type Wanted } from "./route";

/** Colours by the names of the design tokens, without their dashes. */
export type Colours = Readonly<Record<"canvas" | "card" | "line" | "edge" | "text" | "text-2" | "fail" | "fail-tint" | "done" | "done-tint" | "active" | "active-tint" | "idle-tint" | "wait-tint" | "sunken", string>>;
export type Change = "added" | "removed" | "changed";

export interface Picture {
  readonly flow: Flow;
  readonly places: ReadonlyMap<string, Place>;
  readonly wanted: readonly Wanted[];
  readonly marks: readonly Mark[];
  readonly colours: Colours;
  /** Shapes of icons by name. */
  readonly icons?: ReadonlyMap<string, { readonly box: string; readonly shape: string }>;
  /** What became of nodes by ref, and of transitions by index. */
  readonly nodes?: ReadonlyMap<string, Change>;
  readonly edges?: ReadonlyMap<number, Change>;
}

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
/** Text for a place in SVG; control characters, which XML does not have, are left out. */
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (one) => ESCAPES[one] as string).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "");
const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const words = (x: number, y: number, text: string, look: string): string => `<text x="${x}" y="${y}" ${look}>${escaped(text)}</text>`;
const FONT = `font-family="system-ui, sans-serif"`;
const TONES: Record<Change, "done" | "fail" | "active"> = { added: "done", removed: "fail", changed: "active" };

function lines(text: string, most: number): string[] {
  return text.split("\n").flatMap((line) => {
    const found: string[] = [];
    let now = "";
    for (const word of line.split(" ")) {
      if (now !== "" && now.length + word.length + 1 > most) {
        found.push(now);
        now = word;
      } else now = now === "" ? word : `${now} ${word}`;
    }
    return [...found, now];
  });
}

function markShape({ kind, x, y, width, height, text }: Mark, colours: Colours): string {
  const fill = kind === "note" ? colours["wait-tint"] : colours.sunken;
  const box = `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${kind === "note" ? 6 : 12}" fill="${fill}" stroke="${colours.line}"/>`;
  if (kind === "section") return box + words(x + 14, y + 22, cut(text, Math.floor(width / 7)), `font-size="13" font-weight="600" fill="${colours["text-2"]}"`);
  return box + lines(text, Math.floor((width - 20) / 6.2)).slice(0, Math.max(1, Math.floor((height - 12) / 17))).map((line, at) => words(x + 10, y + 20 + at * 17, line, `font-size="12" fill="${colours.text}"`)).join("");
}

function nodeShape(ref: string, { x, y, width, height }: Place, { flow, colours, icons, nodes }: Picture, isStack: boolean): string {
  const node = flow.nodes.find((one) => one.ref === ref);
  if (node === undefined) return "";
  const change = nodes?.get(ref);
  const [border, fill] = change === undefined ? [colours.line, colours.card] : [colours[TONES[change]], colours[`${TONES[change]}-tint`]];
  const card = (by: number) => `<rect x="${x + by}" y="${y + by}" width="${width}" height="${height}" rx="10" fill="${fill}" stroke="${border}" stroke-width="${change === undefined ? 1 : 1.5}"${change === "removed" ? ' stroke-dasharray="5 4"' : ""}/>`;
  const icon = icons?.get(kindLook(node.kind).icon);
  const begin = icon === undefined ? 14 : 52;
  const tile = icon === undefined ? "" : `<rect x="${x + 10}" y="${y + 14}" width="32" height="32" rx="8" fill="${colours["idle-tint"]}"/><svg x="${x + 18}" y="${y + 22}" width="16" height="16" viewBox="${icon.box}" fill="none" stroke="${colours["text-2"]}" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round">${icon.shape}</svg>`;
  const start = node.start ? `<circle cx="${x - 22}" cy="${y + 30}" r="4" fill="${colours.edge}"/><path d="M${x - 18} ${y + 30}H${x}" stroke="${colours.edge}" stroke-width="1.5"/>` : "";
  const most = Math.floor((width - begin - 8) / 6.4);
  return (
    start + (isStack ? card(8) + card(4) : "") + card(0) + tile +
    words(x + begin, y + 27, cut(ref, most), `font-size="13" font-weight="600" fill="${colours.text}"`) + words(x + begin, y + 44, cut(node.words, most + 1), `font-size="12" fill="${colours["text-2"]}"`)
  );
}

function edgeShape(edge: FlowEdge, path: string, [x, y]: readonly [number, number], width: number, { colours, edges }: Picture): string {
  const change = edges?.get(edge.index);
  const colour = change !== undefined ? colours[TONES[change]] : edge.look === "fail" ? colours.fail : colours.edge;
  const line = `<path d="${path}" fill="none" stroke="${colour}" stroke-width="${change === undefined ? 1.5 : 2}"${change === "removed" ? ' stroke-dasharray="5 4"' : ""} marker-end="url(#head-${colour.replace(/\W/g, "")})"/>`;
  const text = [edge.tier > 0 ? `${edge.tier}` : "", edge.label === "" && edge.tier > 0 ? "otherwise" : edge.label].filter(Boolean).join(" · ");
  if (text === "") return line;
  return `${line}<rect x="${x - width / 2}" y="${y - 11}" width="${width}" height="22" rx="11" fill="${colours.card}" stroke="${colours.line}"/>${words(x, y + 4, text, `font-size="12" text-anchor="middle" fill="${colour === colours.edge ? colours["text-2"] : colour}"`)}`;
}

/** The whole picture, with a margin around it. */
export function svgOf(picture: Picture): string {
  const { flow, places, wanted, marks, colours } = picture;
  const groups = groupsOf(flow);
  const found = routes(wanted, places);
  const bands = bandsOf(groups, places);
  const stacked = new Set(groups.flatMap(({ members }) => members));
  const boxes = [...places.values(), ...bands, ...marks];
  const [left, top] = [Math.min(0, ...boxes.map((one) => one.x)) - 48, Math.min(0, ...boxes.map((one) => one.y)) - 72];
  const [right, bottom] = [Math.max(0, ...boxes.map((one) => one.x + one.width)) + 48, Math.max(0, ...boxes.map((one) => one.y + one.height)) + 48];
  const heads = [...new Set([colours.edge, colours.fail, colours.done, colours.active])].map((colour) => `<marker id="head-${colour.replace(/\W/g, "")}" viewBox="0 0 8 8" refX="3" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 .5L7.5 4L0 7.5Z" fill="${colour}"/></marker>`);
  const width = new Map(wanted.map((one) => [one.id, one.label]));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${left} ${top} ${right - left} ${bottom - top}" width="${right - left}" height="${bottom - top}" ${FONT}>`,
    `<title>${escaped(flow.name)}</title><defs>${heads.join("")}</defs><rect x="${left}" y="${top}" width="${right - left}" height="${bottom - top}" fill="${colours.canvas}"/>`,
    ...marks.filter((mark) => mark.kind === "section").map((mark) => markShape(mark, colours)),
    ...bands.map((band) => `<rect x="${band.x}" y="${band.y}" width="${band.width}" height="${band.height}" rx="12" fill="${colours.sunken}" stroke="${colours.line}"/>${words(band.x + 12, band.y + 18, `group ${band.name}`, `font-size="12" fill="${colours["text-2"]}"`)}`),
    ...flow.edges.map((edge) => {
      const route = found.get(String(edge.index));
      return route === undefined ? "" : edgeShape(edge, route.path, route.label, width.get(String(edge.index)) ?? 0, picture);
    }),
    ...[...places].map(([ref, place]) => nodeShape(ref, place, picture, stacked.has(ref))),
    ...marks.filter((mark) => mark.kind === "note").map((mark) => markShape(mark, colours)),
    "</svg>",
  ].join("\n");
}
