// What an act will do, in numbers: a list that stands beside the act before it is done.
import type { Effect } from "@/model/acts";
import { Glyph } from "@/ui/icon";

export function Effects({ effects }: { effects: readonly Effect[] }) {
  return (
    <div className="run-effects">
      <h3 className="section-title">What will happen</h3>
      <ul>
        {effects.map((one) => (
          <li key={one.words}><span className="tone" data-tone={one.tone}><Glyph name={one.tone} small /></span><span><b>{one.count.toLocaleString()}</b> {one.words}</span></li>
        ))}
      </ul>
    </div>
  );
}
