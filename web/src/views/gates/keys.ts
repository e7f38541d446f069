// The keys of the inbox. A field that is being typed in keeps its keys; only sending and leaving work there.
import { useEffect, useRef } from "react";

export interface KeyActs {
  readonly move: (by: 1 | -1) => void;
  readonly enter: () => void;
  readonly send: () => void;
  readonly select: () => void;
  readonly except: () => void;
  readonly search: () => void;
  readonly refresh: () => void;
  /** Leaves the field, or the batch. */
  readonly leave: (fromField: boolean) => void;
  readonly choose: (nth: number) => boolean;
}

const isText = (target: HTMLElement) => target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName) || (target instanceof HTMLInputElement && !/^(radio|checkbox|button|file)$/.test(target.type));

export function useKeys(acts: KeyActs): void {
  const latest = useRef(acts);
  latest.current = acts;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.defaultPrevented || target.closest("[role=dialog], [role=menu]") !== null) return;
      if (handled(event, target, latest.current)) event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

function handled(event: KeyboardEvent, target: HTMLElement, acts: KeyActs): boolean {
  const { key } = event;
  const did = (act: () => void) => {
    act();
    return true;
  };
  if (key === "Enter" && (event.ctrlKey || event.metaKey)) return did(acts.send);
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const inForm = target.closest("form, fieldset") !== null && target !== document.body;
  if (key === "Escape") return did(() => acts.leave(inForm));
  if (isText(target)) return false;
  const isInput = target instanceof HTMLInputElement;
  if (key === "j" || (key === "ArrowDown" && !isInput)) return did(() => acts.move(1));
  if (key === "k" || (key === "ArrowUp" && !isInput)) return did(() => acts.move(-1));
  if (key === "x") return did(acts.select);
  if (key === "e") return did(acts.except);
  if (key === "n") return did(acts.refresh);
  if (key === "/") return did(acts.search);
  if (/^[1-9]$/.test(key)) return acts.choose(Number(key) - 1);
  const isFree = target === document.body || (target.matches("[data-gate][aria-current]"));
  return key === "Enter" && isFree ? did(acts.enter) : false;
}
