// Files that the editor gives to the browser: the text, and pictures of the graph as it is drawn.
import { base } from "@/api/base";
import { svgOf, type Change, type Colours } from "@/model/picture";
import type { Flow } from "@/model/flow";
import type { Mark, Places } from "@/model/drawing";
import { rectsOf, wantedOf } from "./graph/places";

/** Gives the browser a file. */
export function download(name: string, content: string | Blob, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type }) : content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}

const NAMES = ["canvas", "card", "line", "edge", "text", "text-2", "fail", "fail-tint", "done", "done-tint", "active", "active-tint", "idle-tint", "wait-tint", "sunken"] as const;

/** The colours of the page as it is shown now. */
export function coloursNow(): Colours {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim() || "#888888"])) as Colours;
}

type Icons = ReadonlyMap<string, { readonly box: string; readonly shape: string }>;
let asked: Promise<Icons> | null = null;

/** The shapes of the icons, from the sprite. */
function icons(): Promise<Icons> {
  asked ??= fetch(`${base}icons.svg`).then(async (answer) => {
    const sprite = new DOMParser().parseFromString(await answer.text(), "image/svg+xml");
    return new Map([...sprite.querySelectorAll("symbol")].map((one) => [one.id.replace(/^i-/, ""), { box: one.getAttribute("viewBox") ?? "0 0 16 16", shape: one.innerHTML.replaceAll(' xmlns="http://www.w3.org/2000/svg"', "") }]));
  });
  return asked;
}

export interface Drawn {
  readonly flow: Flow;
  readonly places: Places;
  readonly marks: readonly Mark[];
  readonly nodes?: ReadonlyMap<string, Change>;
  readonly edges?: ReadonlyMap<number, Change>;
}

export async function pictureOf({ flow, places, marks, ...changes }: Drawn): Promise<string> {
  return svgOf({ flow, places: rectsOf(flow, places), wanted: wantedOf(flow), marks, colours: coloursNow(), icons: await icons(), ...changes });
}

/** Pixels for each pixel of the drawing: sharp on paper and on fine screens, unless it becomes too large for a canvas. */
const SCALE = 2;
const LARGEST = 8_000;

export async function pngOf(svg: string): Promise<Blob> {
  const image = new Image();
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    image.src = address;
    await image.decode();
    const scale = Math.min(SCALE, LARGEST / Math.max(image.width, image.height));
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.round(image.width * scale), Math.round(image.height * scale)];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => canvas.toBlob((blob) => (blob === null ? reject(new Error("the browser made no picture")) : resolve(blob)), "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}
