// Whether the window is wide enough for something.
import { useSyncExternalStore } from "react";

export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (told) => {
      const media = matchMedia(query);
      media.addEventListener("change", told);
      return () => media.removeEventListener("change", told);
    },
    () => matchMedia(query).matches,
  );
}
