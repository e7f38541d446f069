// Notices that somebody has deployed a newer version than the one the draft began from.
import { useEffect, useState } from "react";
import type { Base, Draft } from "./draft";
import { loadBase } from "./load";

/** An answer without news is a 304: the browser has the version. */
const EVERY_MS = 8_000;

export function useNewer(draft: Draft, name: string, version: number): [Base | null, (base: Base | null) => void] {
  const [newer, setNewer] = useState<Base | null>(null);
  useEffect(() => {
    if (version === 0) return undefined;
    let here = true;
    const look = () => {
      if (document.hidden) return;
      loadBase(name).then(
        (base) => here && setNewer(base !== null && base.version > draft.get().base.version ? base : null),
        () => undefined, // the check of the text says that the service cannot be reached
      );
    };
    look();
    const timer = setInterval(look, EVERY_MS);
    addEventListener("focus", look);
    return () => {
      here = false;
      clearInterval(timer);
      removeEventListener("focus", look);
    };
  }, [draft, name, version]);
  return [newer !== null && newer.version > version ? newer : null, setNewer];
}
