// The panel while nobody is selected: travellers that moved last, so that every dot also stands in a list.
import { addressOf, nameOf, initialsOf, placeOf, stateLook, stayText, type Entity } from "@/model/journeys";
import { useNow } from "@/ui/parts";
import { Glyph } from "@/ui/icon";
import type { Drawn } from "./data";

const SHOWN = 100;

export function Everybody({ items, total, drawn, onChoose }: { items: readonly Entity[]; total: number; drawn: Drawn; onChoose: (entity: Entity) => void }) {
  const now = useNow(10_000);
  const newest = [...items].sort((a, b) => (b.positions[0]?.since ?? 0) - (a.positions[0]?.since ?? 0)).slice(0, SHOWN);
  return (
    <aside className="panel jr-panel jr-all" aria-label="Travellers">
      <header className="jr-all-head"><h2>Moved last</h2><span className="c2 t1">{newest.length < total ? `${newest.length} of ${total.toLocaleString()}` : total.toLocaleString()}</span></header>
      <ul className="jr-scroll" tabIndex={0} aria-label="Who moved last">
        {newest.map((entity) => {
          const here = entity.positions[0];
          const place = here === undefined ? null : placeOf(here);
          const look = stateLook(here?.state ?? null, place?.kind === "node" ? drawn.kinds.get(place.name) : undefined);
          const where = place?.kind === "section" ? (drawn.map.sections.find((one) => one.id === place.name)?.name ?? place.name) : (place?.name ?? "nowhere");
          return (
            <li key={addressOf(entity)}>
              <button type="button" onClick={() => onChoose(entity)}>
                <span className="jr-ent jr-in" data-tone={look.tone} data-initials={initialsOf(entity)} aria-hidden="true" />
                <span className="grow clip"><b>{nameOf(entity)}</b><span className="jr-all-where tone" data-tone={look.tone}><Glyph name={look.glyph} small />{where} · {look.word}</span></span>
                <span className="c2 t1 nowrap">{here === undefined ? "" : `${stayText(Math.max(0, now - here.since))} ago`}</span>
              </button>
            </li>
          );
        })}
      </ul>
    </aside>
  );
}
