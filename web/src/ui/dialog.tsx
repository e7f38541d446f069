// A dialog: a title, what it is about, and the acts at its foot. Escape and the cross close it; focus comes back.
import { Dialog as Base } from "@base-ui/react/dialog";
import type { ReactNode } from "react";
import { Icon } from "./icon";

export function Dialog({ title, children, foot, onClose, wide = false }: { title: string; children: ReactNode; foot?: ReactNode; onClose: () => void; wide?: boolean }) {
  return (
    <Base.Root open onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="dialog-back" />
        <Base.Popup className={wide ? "dialog dialog-wide" : "dialog"}>
          <header className="dialog-head">
            <Base.Title className="t4 b">{title}</Base.Title>
            <Base.Close className="btn btn-ghost btn-icon btn-sm push" aria-label="Close"><Icon name="close" /></Base.Close>
          </header>
          <div className="dialog-body">{children}</div>
          {foot !== undefined && <footer className="dialog-foot">{foot}</footer>}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
