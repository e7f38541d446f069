// Icons and state glyphs, by name, from one sprite that the browser fetches once.
import { base } from "@/api/base";
import type { Tone } from "@/model/states";

const SPRITE = `${base}icons.svg`;

/** A line icon. It is decoration: the control around it has the name. */
export function Icon({ name, size = 16 }: { name: string; size?: 14 | 16 | 20 | 24 }) {
  return (
    <svg className={`i i-${size}`} aria-hidden="true">
      <use href={`${SPRITE}#i-${name}`} />
    </svg>
  );
}

/** The glyph of a state. A word stands beside it, so that colour and form are never alone. */
export function Glyph({ name, small = false }: { name: Tone | "timeout" | "pause"; small?: boolean }) {
  return (
    <svg className={small ? "g g-12" : "g"} aria-hidden="true">
      <use href={`${SPRITE}#g-${name}`} />
    </svg>
  );
}
