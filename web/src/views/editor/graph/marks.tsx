// What is only drawn: bands of groups, sections behind nodes, notes beside them.
import { NodeResizeControl, ViewportPortal, type NodeProps } from "@xyflow/react";
import { memo } from "react";
import type { Mark } from "@/model/drawing";
import type { Band } from "@/model/groups";
import { useEditing } from "../context";

export interface MarkData extends Record<string, unknown> {
  mark: Mark;
}

const SMALLEST = { note: [100, 40], section: [160, 100] } as const;

export const MarkNode = memo(function MarkNode({ data }: NodeProps) {
  const { mark } = data as MarkData;
  const { selection, fixed, draft } = useEditing();
  const selected = selection !== null && "mark" in selection && selection.mark === mark.id;
  const [minWidth, minHeight] = SMALLEST[mark.kind];
  const resized = (size: { x: number; y: number; width: number; height: number }) =>
    draft.mark(`resize ${mark.id}`, draft.get().marks.map((one) => (one.id === mark.id ? { ...one, width: Math.round(size.width), height: Math.round(size.height) } : one)));
  return (
    <>
      <div className={`ed-mark ed-${mark.kind} ${selected ? "is-selected" : ""}`} role="button" tabIndex={0} data-mark={mark.id} aria-pressed={selected} aria-label={`${mark.kind === "note" ? "Note" : "Section"}: ${mark.text || "empty"}`}>
        <span className={mark.kind === "section" ? "clip" : ""}>{mark.text || (mark.kind === "note" ? "Write the note on the right" : "Section")}</span>
      </div>
      {selected && !fixed && <NodeResizeControl className="ed-resize" position="bottom-right" minWidth={minWidth} minHeight={minHeight} onResizeEnd={(_event, size) => resized(size)} />}
    </>
  );
});

export function Bands({ bands }: { bands: readonly Band[] }) {
  return (
    <ViewportPortal>
      {bands.map((band) => (
        <div key={band.name} className="ed-band" style={{ transform: `translate(${band.x}px, ${band.y}px)`, width: band.width, height: band.height }}>
          <span><span className="ed-band-word">group </span><b>{band.name}</b></span>
        </div>
      ))}
    </ViewportPortal>
  );
}
