// Saving places: of a deployed version that is otherwise unchanged they go to its drawing, without a new version.
import { useEffect, useState } from "react";
import { problemOf } from "@/api/problem";
import type { Draft, Shown } from "./draft";
import { drawingOf } from "@/model/drawing";
import { draw } from "./load";

const AFTER_MS = 600;

export type Saving = { readonly kind: "idle" } | { readonly kind: "saving" } | { readonly kind: "saved"; readonly at: number } | { readonly kind: "refused"; readonly why: string };

export function useSaving(draft: Draft, shown: Shown, fixed: boolean): Saving {
  const [saving, setSaving] = useState<Saving>({ kind: "idle" });
  const { places, marks, base, flow, safe } = shown;
  const wanted = !fixed && base.version > 0 && safe === "same" && (places !== base.places || marks !== base.marks);
  useEffect(() => {
    if (!wanted) return undefined;
    setSaving({ kind: "saving" });
    const timer = setTimeout(() => {
      const kept = (base.canvas as { text?: unknown } | null)?.text;
      const drawing = drawingOf(base.canvas, places, marks, typeof kept === "string" ? kept : base.text);
      draw(flow.name, base.version, drawing, base.etag).then(
        ({ canvas, etag }) => {
          draft.drawn(canvas, etag);
          setSaving({ kind: "saved", at: Date.now() });
        },
        (error: unknown) => setSaving({ kind: "refused", why: problemOf(error).message }),
      );
    }, AFTER_MS);
    return () => clearTimeout(timer);
  }, [wanted, places, marks]);
  return saving;
}
