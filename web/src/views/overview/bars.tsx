// Two small charts over the chosen span: runs that started, failures in their colour; and how long runs took.
import { buckets, durations } from "@/model/overview";
import type { RunItem } from "@/model/run-filter";
import { dayTime, duration, instant } from "@/model/time";

const PARTS = 48;
const HEIGHT = 96;
const WIDTH = 720;
const STEP = WIDTH / PARTS;
const TICKS = [0, 1, 2, 3, 4];

interface ChartProps {
  rows: readonly RunItem[];
  now: number;
  span: number;
}

/** The frame of a chart: its highest value, and times below it. */
function Framed({ top, label, now, span, children }: { top: string; label: string; now: number; span: number; children: React.ReactNode }) {
  return (
    <figure className="overview-bars">
      <span className="overview-top t0 c2" aria-hidden="true">{top}</span>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label} preserveAspectRatio="none">
        <path className="overview-rule" d={`M0 .5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`} />
        {children}
      </svg>
      <figcaption className="t0 c2">{TICKS.map((tick) => <span key={tick} title={instant(now - span + (span * tick) / 4, now)}>{dayTime(now - span + (span * tick) / 4)}</span>)}</figcaption>
    </figure>
  );
}

export function Bars({ rows, now, span }: ChartProps) {
  const parts = buckets(rows, now - span, now, PARTS);
  const most = Math.max(1, ...parts.map((part) => part.started));
  const failed = parts.reduce((sum, part) => sum + part.failed, 0);
  return (
    <Framed top={most.toLocaleString()} now={now} span={span} label={`Runs started per ${duration(span / PARTS)}, ${rows.length} in all, ${failed} failed`}>
      {parts.map((part, at) => {
        const height = (HEIGHT - 4) * (part.started / most);
        const bad = Math.max((HEIGHT - 4) * (part.failed / most), 3);
        return (
          <g key={part.from}>
            <rect className="overview-bar" x={at * STEP} y={HEIGHT - height} width={STEP - 3} height={height} rx="1.5"><title>{`${part.started} started, ${part.failed} failed, from ${instant(part.from, now)}`}</title></rect>
            {part.failed > 0 && <rect className="overview-bad" x={at * STEP} y={HEIGHT - bad} width={STEP - 3} height={bad} rx="1.5" />}
          </g>
        );
      })}
    </Framed>
  );
}

export function Durations({ rows, now, span }: ChartProps) {
  const parts = durations(rows, now - span, now, PARTS);
  if (parts.length === 0) return <p className="overview-none">No run has completed in this time.</p>;
  const most = Math.max(1, ...parts.map((part) => part.p95));
  const at = (from: number, value: number) => [((from - (now - span)) / span) * WIDTH + STEP / 2, HEIGHT - (HEIGHT - 4) * (value / most)] as const;
  const line = (pick: (part: (typeof parts)[number]) => number) => parts.map((part, index) => `${index === 0 ? "M" : "L"}${at(part.from, pick(part)).map((one) => one.toFixed(1)).join(" ")}`).join("");
  const last = parts.at(-1);
  return (
    <Framed top={duration(most)} now={now} span={span} label={`How long runs took: the newest ${duration(last?.p50 ?? 0)} in the middle, ${duration(last?.p95 ?? 0)} at the 95th of a hundred`}>
      <path className="overview-line is-high" d={line((part) => part.p95)} />
      <path className="overview-line" d={line((part) => part.p50)} />
      {parts.map((part) => {
        const [x] = at(part.from, part.p50);
        return <rect key={part.from} className="overview-hit" x={x - STEP / 2} y="0" width={STEP} height={HEIGHT}><title>{`${part.ended} completed from ${instant(part.from, now)}: p50 ${duration(part.p50)}, p95 ${duration(part.p95)}`}</title></rect>;
      })}
      {parts.map((part) => <path key={part.from} className="overview-dot" d={`M${at(part.from, part.p50).join(" ")}h.01`} />)}
    </Framed>
  );
}
