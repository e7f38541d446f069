// What a person has to know before going on: a draft that was taken up again, a newer version of somebody else.
import { useState } from "react";
import { Button, Time } from "@/ui/parts";
import { useShown } from "./context";
import type { Base, Draft } from "./draft";
import type { Kept } from "./keep";

export function Notices({ draft, kept, newer, onNewer }: { draft: Draft; kept: Kept | null; newer: Base | null; onNewer: () => void }) {
  const { base, text } = useShown();
  const [seen, setSeen] = useState(false);
  const back = () => {
    draft.edit(`back to ${base.version === 0 ? "an empty workflow" : `v${base.version}`}`, () => base.text, { places: base.places, marks: base.marks });
    setSeen(true);
  };
  return (
    <>
      {kept !== null && !seen && text !== base.text && (
        <div className="note ed-notice" role="status">
          <span className="grow">This is your draft, kept on this device <Time at={kept.at} as="relative" />.</span>
          <Button size="sm" onClick={back}>{base.version === 0 ? "Begin anew" : `Back to v${base.version}`}</Button>
          <Button size="sm" kind="ghost" icon="close" aria-label="Close this note" onClick={() => setSeen(true)} />
        </div>
      )}
      {newer !== null && (
        <div className="note ed-notice" data-tone="wait" role="status">
          <span className="grow">v{newer.version} has been deployed since your draft began from v{base.version}.</span>
          <Button size="sm" onClick={onNewer}>Show the difference</Button>
        </div>
      )}
    </>
  );
}
