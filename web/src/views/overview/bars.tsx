// Starts over the last day as bars; failures stand on top of them in their colour.
import { buckets } from "@/model/overview";
import type { RunItem } from "@/model/run-filter";
import { instant } from "@/model/time";

const DAY = 86_400_000;
const PARTS = 48;
const HEIGHT = 96;
const WIDTH = 720;

export function Bars({ rows, now }: { rows: readonly RunItem[]; now: number }) {
  const parts = buckets(rows, now - DAY, now, PARTS);
  const most = Math.max(1, ...parts.map((part) => part.started));
  const failed = parts.reduce((sum, part) => sum + part.failed, 0);
  const step = WIDTH / PARTS;
  return (
    <figure className="overview-bars">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Runs started per half hour, ${rows.length} in all, ${failed} failed`} preserveAspectRatio="none">
        {parts.map((part, at) => {
          const height = (HEIGHT - 8) * (part.started / most);
          const bad = (HEIGHT - 8) * (part.failed / most);
          return (
            <g key={part.from}>
              <rect className="overview-bar" x={at * step} y={HEIGHT - height} width={step - 3} height={height} rx="1.5"><title>{`${part.started} started, ${part.failed} failed, from ${instant(part.from, now)}`}</title></rect>
              {part.failed > 0 && <rect className="overview-bad" x={at * step} y={HEIGHT - Math.max(bad, 3)} width={step - 3} height={Math.max(bad, 3)} rx="1.5" />}
            </g>
          );
        })}
      </svg>
      <figcaption className="row t1 c2"><span>{instant(now - DAY, now)}</span><span className="push">{instant(now, now)}</span></figcaption>
    </figure>
  );
}
