// A button that opens a menu or a popover whose code is fetched when the button is first wanted. The first load of a
// page does not have it; the button looks the same before and after.
import { Suspense, useState, type ReactNode } from "react";

interface Props {
  className: string;
  label?: string;
  opens: "menu" | "dialog";
  /** What the button shows. */
  face: ReactNode;
  /** Fetches the code: called when the button is pointed at or focused. */
  load: () => Promise<unknown>;
  /** The lazy part that takes the button's place, open from the start. */
  children: ReactNode;
}

export function Later({ className, label, opens, face, load, children }: Props) {
  const [used, setUsed] = useState(false);
  const early = () => void load().catch(() => undefined); // a service that does not answer now is asked again by the click
  const button = (
    <button type="button" className={className} aria-label={label} aria-haspopup={opens} aria-expanded={used} onPointerEnter={early} onFocus={early} onClick={() => setUsed(true)}>
      {face}
    </button>
  );
  return used ? <Suspense fallback={button}>{children}</Suspense> : button;
}
