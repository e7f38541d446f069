// The keys of the run page. None works while something is typed or a dialog is open.
import { useEffect, useRef } from "react";

export type Keys = Readonly<Record<string, () => void>>;

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement);

export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("[role=dialog]:not(.run-sheet), [role=menu]") !== null) return;
      const inRole = event.target instanceof HTMLElement ? event.target.getAttribute("role") : null;
      if ((inRole === "slider" || inRole === "tab" || inRole === "option" || inRole === "row") && event.key.startsWith("Arrow")) return;
      if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.closest("a, button") !== null) return;
      const act = latest.current[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (act === undefined) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
