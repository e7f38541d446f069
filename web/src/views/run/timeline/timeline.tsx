// The timeline: queue, wait and run apart, one bar for each attempt, virtual rows of fixed height.
import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { rowsOf, type Row } from "@/model/rows";
import { ticksOf, FOLD_PX } from "@/model/timescale";
import { duration } from "@/model/time";
import { useRows } from "@/ui/rows";
import { useRunPage, useSeen } from "../context";
import { newestOf } from "../seen";
import { isOver } from "../graph/summaries";
import { useTime } from "../use-scale";
import { NodeRow, VisitRow } from "./rows";

export const ROW = 30;
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const finest = new Intl.DateTimeFormat(undefined, { minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
const short = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts(new Date()).find((part) => part.type === "timeZoneName")?.value ?? "";
const zoneLong = new Intl.DateTimeFormat(undefined, { timeZoneName: "shortOffset" }).formatToParts(new Date()).find((part) => part.type === "timeZoneName")?.value ?? "";

export function Timeline({ filter }: { filter: string }) {
  const { selection, select } = useRunPage();
  const seen = useSeen();
  const { measure } = useTime();
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const body = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => rowsOf(seen.state, open, filter, seen.span), [seen.turn, open, filter, seen.span]);
  const { total, places, reveal } = useRows(rows.length, ROW, body);
  const flip = useCallback((ref: string) => setOpen((before) => (before.has(ref) ? new Set([...before].filter((one) => one !== ref)) : new Set([...before, ref]))), []);
  useEffect(() => { // the selected visit comes into view, in its opened node
    const visit = selection.visit === null ? undefined : seen.state.visits.get(selection.visit);
    if (visit === undefined) return;
    if ((seen.state.nodes.get(visit.node)?.length ?? 0) > 1 && !open.has(visit.node)) setOpen((before) => new Set([...before, visit.node]));
    const index = rows.findIndex((row) => row.kind === "visit" && row.visit.id === visit.id);
    if (index >= 0) reveal(index);
  }, [selection.visit, rows.length]);
  return (
    <div className="run-tl">
      <Axis measure={measure} />
      <Lines />
      <Over />
      <div className="run-tl-body" ref={body} role="region" aria-label="Timeline" tabIndex={0}>
        <div className="run-tl-rows" style={{ height: total }}>
          {places.map(({ index, slot, top }) => {
            const row = rows[index] as Row;
            return (
              <div key={slot} className="run-tl-place" style={{ transform: `translateY(${top}px)` }}>
                {row.kind === "node" ? (
                  <NodeRow row={row} selected={selection.node === row.ref || (row.visits.length === 1 && row.visits[0]?.id === selection.visit)} onFlip={flip} select={select} />
                ) : (
                  <VisitRow visit={row.visit} sub selected={selection.visit === row.visit.id} select={select} />
                )}
              </div>
            );
          })}
        </div>
        {rows.length === 0 && <div className="empty">{seen.loaded ? "Nothing fits." : "Loading the history…"}</div>}
      </div>
    </div>
  );
}

const Axis = memo(function Axis({ measure }: { measure: (element: HTMLElement | null) => void }) {
  const { scale, now } = useTime();
  const seen = useSeen();
  const [{ status }, { cursor }] = [newestOf(seen), seen];
  const ticks = ticksOf(scale);
  const apart = Math.min(...ticks.slice(1).map((at, index) => at - (ticks[index] as number))); // two beside a fold are further apart
  const format = apart < 1_000 ? finest : apart < 60_000 ? clock : short;
  const over = isOver(status);
  const nowX = scale.x(now);
  return (
    <div className="run-tl-axis">
      <span className="run-tl-zone c2">{zone === zoneLong ? zone : `${zone} (${zoneLong.replace("GMT", "UTC")})`}</span>
      <div className="run-tl-axis-in" ref={measure}>
        {ticks.map((at) => Math.abs(scale.x(at) - nowX) > 46 && <span key={at} className="run-tick" style={{ left: scale.x(at) }}>{format.format(at)}</span>)}
        {scale.folds.map((fold) => <span key={fold.from} className="run-fold-label" style={{ left: fold.x + FOLD_PX / 2 }}>{duration(fold.to - fold.from)}</span>)}
        {cursor === null && <span className={`run-now-label ${over ? "is-end" : ""}`} data-status={status} style={{ left: nowX }}>{over ? "end" : "now"}</span>}
      </div>
    </div>
  );
});

const ZIG = 8;
const TALL = 1_600;
function zigzag(height: number, x: number): string {
  let path = `M${x} 0`;
  for (let y = 0; y < height; y += ZIG * 2) path += `l6 ${ZIG}l-6 ${ZIG}`;
  return path;
}

/** Lines of the grid, behind the bars. */
const Lines = memo(function Lines() {
  const { scale } = useTime();
  return <div className="run-tl-lines" aria-hidden="true">{ticksOf(scale).map((tick) => <i key={tick} className="run-gl" style={{ left: scale.x(tick) }} />)}</div>;
});

/** Folds, and where the shown moment is, before the bars. */
const Over = memo(function Over() {
  const { scale, now } = useTime();
  const seen = useSeen();
  const [{ status }, { cursor, state }] = [newestOf(seen), seen];
  const over = isOver(status);
  const at = cursor === null ? now : state.at;
  const tall = TALL;
  return (
    <div className="run-tl-over" aria-hidden="true">
      {scale.folds.map((fold) => (
        <svg key={fold.from} className="run-fold" width={FOLD_PX} height={tall} style={{ left: fold.x }}>
          <path className="fill" d={`${zigzag(tall, 6)}H28${zigzag(tall, 28).replace("M28 0", "").replaceAll("l6 8l-6 8", "l6 -8l-6 -8")}Z`} />
          <path d={zigzag(tall, 6)} /><path d={zigzag(tall, 28)} />
        </svg>
      ))}
      <i className={`run-now ${over && cursor === null ? "is-end" : ""}`} data-status={status} style={{ left: scale.x(at) }} />
    </div>
  );
});
