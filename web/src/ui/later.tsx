// A button that opens a menu or a popover whose code is fetched when the button is first wanted. The first load of a
// page does not have it; the button looks the same before and after.
import { useState, type ReactNode } from "react";
import type { Fetched } from "./fetched";

interface Props {
  className: string;
  label?: string;
  opens: "menu" | "dialog";
  /** What the button shows. */
  face: ReactNode;
  /** The part that takes the button's place, open from the start: fetched when the button is pointed at or focused. */
  part: Fetched<never>;
  /** That part with its properties, given the button to show meanwhile. */
  children: (button: ReactNode) => ReactNode;
}

export function Later({ className, label, opens, face, part, children }: Props) {
  const [used, setUsed] = useState(false);
  const early = () => void part.fetch().catch(() => undefined); // a service that does not answer now is asked again by the click
  const button = (
    <button type="button" className={className} aria-label={label} aria-haspopup={opens} aria-expanded={used} onPointerEnter={early} onFocus={early} onClick={() => setUsed(true)}>
      {face}
    </button>
  );
  return used ? children(button) : button;
}
