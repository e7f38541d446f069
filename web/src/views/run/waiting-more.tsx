// The rest of the waiting line, in a popover. It is fetched when it is first opened.
import { Popover } from "@base-ui/react/popover";
import type { ReactNode } from "react";

export default function WaitingMore({ face, hidden, children }: { face: string; hidden: number; children: ReactNode }) {
  return (
    <Popover.Root defaultOpen>
      <Popover.Trigger className="link t2">{face}</Popover.Trigger>
      <Popover.Portal>
        <Popover.Positioner sideOffset={6}>
          <Popover.Popup className="menu run-wait-list">
            {children}
            {hidden > 0 && <p className="c2 t1">{hidden.toLocaleString()} more wait.</p>}
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}
