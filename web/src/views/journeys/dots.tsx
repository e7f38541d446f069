// People as dots: each a button, five or fewer at a place; more are one mark with their number that opens the list. A dot
// is moved by dragging it onto a node or a section, or by M.
import { useRef, useState } from "react";
import { addressOf, initialsOf, nameOf, placeOf, shortCount, stateLook, type Entity, type PlaceRef, type Standing } from "@/model/journeys";
import { relative } from "@/model/time";
import { useJourneys } from "./context";

const FAR = 6; // pixels from where a press becomes a drag

/** The place under the pointer, if somebody can be put there. */
function placeUnder(x: number, y: number): { place: PlaceRef; element: Element } | null {
  for (const element of document.elementsFromPoint(x, y)) {
    const found = element.closest("[data-place]");
    const [kind, ...name] = (found?.getAttribute("data-place") ?? "").split(":");
    if (found !== null && (kind === "node" || kind === "section")) return { place: { kind, name: name.join(":") }, element: found };
  }
  return null;
}

export function Dot({ entity, at }: { entity: Entity; at: readonly [number, number] }) {
  const { drawn, selected, select, move, mayMove } = useJourneys();
  const [drag, setDrag] = useState<readonly [number, number] | null>(null);
  const dragged = useRef(false); // the click that ends a drag selects nobody
  const from = useRef<{ x: number; y: number; scale: number; over: Element | null; far: boolean } | null>(null);
  const here = entity.positions[0];
  const place = here === undefined ? null : placeOf(here);
  const look = stateLook(here?.state ?? null, place?.kind === "node" ? drawn.kinds.get(place.name) : undefined);
  const isSelected = selected === addressOf(entity);
  const end = (x: number, y: number) => {
    const began = from.current;
    from.current = null;
    began?.over?.classList.remove("is-drop");
    setDrag(null);
    if (began === null || !began.far) return;
    dragged.current = true;
    const found = placeUnder(x, y);
    if (found !== null && (found.place.kind !== place?.kind || found.place.name !== place.name)) move(entity, found.place);
  };
  return (
    <button
      type="button" className={`jr-ent nopan nodrag ${isSelected ? "is-selected" : ""} ${drag === null ? "" : "is-dragged"}`} data-tone={look.tone} data-entity={addressOf(entity)} data-initials={initialsOf(entity)}
      style={{ left: at[0] + (drag?.[0] ?? 0), top: at[1] + (drag?.[1] ?? 0) }} aria-pressed={isSelected} title={`${nameOf(entity)} · ${look.word}${here === undefined ? "" : ` · since ${relative(here.since)}`}`}
      aria-label={`${nameOf(entity)}, ${entity.type}, at ${place?.name ?? "nowhere"}, ${look.word}`} aria-keyshortcuts={mayMove ? "M" : undefined}
      onClick={() => (dragged.current ? (dragged.current = false) : select(isSelected ? null : addressOf(entity)))}
      onKeyDown={(event) => {
        if (event.key.toLowerCase() !== "m" || !mayMove || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        move(entity, null);
      }}
      onPointerDown={(event) => {
        if (!mayMove || event.button !== 0) return;
        dragged.current = false;
        const { width } = event.currentTarget.getBoundingClientRect();
        from.current = { x: event.clientX, y: event.clientY, scale: width / event.currentTarget.offsetWidth || 1, over: null, far: false };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const began = from.current;
        if (began === null) return;
        const [dx, dy] = [event.clientX - began.x, event.clientY - began.y];
        began.far ||= Math.hypot(dx, dy) > FAR;
        if (!began.far) return;
        setDrag([dx / began.scale, dy / began.scale]);
        const over = placeUnder(event.clientX, event.clientY)?.element ?? null;
        if (over !== began.over) {
          began.over?.classList.remove("is-drop");
          over?.classList.add("is-drop");
          began.over = over;
        }
      }}
      onPointerUp={(event) => end(event.clientX, event.clientY)}
      onPointerCancel={() => end(-1, -1)}
    />
  );
}

export function Cluster({ standing, at }: { standing: Standing; at: readonly [number, number] }) {
  const { open } = useJourneys();
  const { place, count, look, words } = standing;
  return (
    <button
      type="button" className="jr-ent jr-many nopan nodrag" data-tone={look.tone === "idle" ? undefined : look.tone} style={{ left: at[0], top: at[1] }} title={words || undefined}
      aria-label={`${shortCount(count)} at ${place.name}${words === "" ? "" : `: ${words}`}, open the list`} onClick={() => open(place)}
    >
      {shortCount(count)}
    </button>
  );
}
