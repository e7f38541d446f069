// A small picture of an example: what its run looks like on the way. Decoration; the words beside it say the same.
import type { Tone } from "@/model/states";

type Box = readonly [x: number, y: number, tone: Tone, isStack?: boolean];
interface Picture {
  readonly boxes: readonly Box[];
  /** Lines as SVG paths; dashed: not taken; undo: taken back. */
  readonly lines: readonly (readonly [path: string, kind?: "dashed" | "undo" | "fail"])[];
}

const [W, H] = [52, 22];
const PICTURES: Record<string, Picture> = {
  approval: {
    boxes: [[30, 53, "done"], [124, 53, "ask"], [222, 29, "done"], [222, 77, "idle"]],
    lines: [["M82 64H124"], ["M176 64C200 64 198 40 222 40"], ["M176 64C200 64 198 88 222 88", "dashed"]],
  },
  panel: { boxes: [[18, 53, "done"], [100, 53, "active", true], [172, 53, "wait"], [232, 53, "idle"]], lines: [["M70 64H100"], ["M160 64H172"], ["M224 64H232"]] },
  order: {
    boxes: [[14, 40, "done"], [90, 40, "done"], [166, 40, "done"], [232, 40, "fail"]],
    lines: [["M66 51H90"], ["M142 51H166"], ["M218 51H232", "fail"], ["M258 62C258 96 226 98 150 98C74 98 40 96 40 64", "undo"]],
  },
};

export function Sketch({ of }: { of: string }) {
  const picture = PICTURES[of];
  if (picture === undefined) return null;
  return (
    <svg className="first-sketch" viewBox="0 0 300 128" aria-hidden="true">
      {picture.lines.map(([path, kind]) => <path key={path} className={kind === undefined ? "is-line" : `is-line is-${kind}`} d={path} />)}
      {picture.boxes.map(([x, y, tone, isStack]) => (
        <g key={`${x} ${y}`} data-tone={tone} className={tone === "done" || tone === "idle" ? "is-quiet" : ""}>
          {isStack === true && <><rect x={x + 8} y={y - 8} width={W + 8} height={H + 24} rx="5" /><rect x={x + 4} y={y - 10} width={W + 8} height={H + 24} rx="5" /></>}
          <rect x={x} y={isStack === true ? y - 12 : y} width={isStack === true ? W + 8 : W} height={isStack === true ? H + 24 : H} rx="5" />
          <circle cx={x + 13} cy={isStack === true ? y : y + 11} r="3.5" />
          <path className="is-word" d={`M${x + 22} ${isStack === true ? y : y + 11}h20`} />
          {isStack === true && <path className="is-meter" d={`M${x + 10} ${y + 18}h40`} />}
        </g>
      ))}
    </svg>
  );
}
