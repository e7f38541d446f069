// What the parts of the screen share: the map, who stands where, who is selected, and how to move somebody.
import { createContext, useContext } from "react";
import type { Share, Standing, PlaceRef, Entity, Conversion } from "@/model/journeys";
import type { Drawn } from "./data";

export interface JourneysPage {
  readonly drawn: Drawn;
  readonly standings: readonly Standing[];
  readonly counts: ReadonlyMap<string, number>;
  readonly shares: ReadonlyMap<string, Share>;
  readonly conversion: Conversion | undefined;
  readonly view: "people" | "numbers";
  /** The address of the selected entity. */
  readonly selected: string | null;
  /** That entity where it stands on this map. */
  readonly chosen: Entity | null;
  readonly select: (address: string | null) => void;
  /** The edges that the selected entity has gone over. */
  readonly way: ReadonlySet<string>;
  readonly open: (place: PlaceRef) => void;
  readonly mayMove: boolean;
  /** Asks for the reason, then moves. Without a place it asks where to. */
  readonly move: (entity: Entity, to: PlaceRef | null) => void;
}

export const JourneysContext = createContext<JourneysPage | null>(null);

export function useJourneys(): JourneysPage {
  const page = useContext(JourneysContext);
  if (page === null) throw new Error("outside of the journeys");
  return page;
}
