// The list behind a mark for many: who is at a place, page by page.
import { useState } from "react";
import { api, given } from "@/api/client";
import { addressOf, initialsOf, nameOf, stateLook, type Entity, type PlaceRef } from "@/model/journeys";
import { Dialog } from "@/ui/dialog";
import { Listing } from "@/ui/listing";
import { State, Time } from "@/ui/parts";
import type { Drawn } from "./data";

export function CrowdList({ place, drawn, onChoose, onClose }: { place: PlaceRef; drawn: Drawn; onChoose: (entity: Entity) => void; onClose: () => void }) {
  const [read] = useState(() => (cursor: string | null) => {
    const query = { [place.kind]: place.name, limit: 50, ...(cursor === null ? {} : { cursor }) };
    return given(api.GET("/api/v1/workflows/{name}/positions", { params: { path: { name: drawn.workflow }, query } })) as Promise<{ items: Entity[]; next: string | null }>;
  });
  const kind = place.kind === "node" ? drawn.kinds.get(place.name) : undefined;
  return (
    <Dialog title={`At ${drawn.map.sections.find((one) => place.kind === "section" && one.id === place.name)?.name ?? place.name}`} onClose={onClose} wide>
      <Listing
        what="people" read={read} id={addressOf} empty="Nobody is here any more."
        columns={[
          { head: "Who", width: "44%", cell: (row) => <button type="button" className="link jr-who-link" onClick={() => onChoose(row)}><span className="jr-ent jr-in" aria-hidden="true">{initialsOf(row)}</span>{nameOf(row)}</button> },
          { head: "Address", cell: (row) => <span className="mono">{addressOf(row)}</span> },
          { head: "State", cell: (row) => <State look={stateLook(row.positions[0]?.state ?? null, kind)} /> },
          { head: "Since", cell: (row) => (row.positions[0] === undefined ? "" : <Time at={row.positions[0].since} as="relative" />) },
        ]}
      />
    </Dialog>
  );
}
