// The time slider: moves all views to any moment of the run. Linear in time except in folds, with marks of what matters.
import { memo, useEffect, useMemo, useRef, useState } from "react";
import type { Event, Folding } from "@/model/fold";
import type { Look } from "@/model/states";
import { instant, otherDay, timeOfDay } from "@/model/time";
import { timeScale, type TimeScale } from "@/model/timescale";
import { Button } from "@/ui/parts";
import { Glyph } from "@/ui/icon";
import { useActDialog, useRunOffers } from "./acts/use-acts";
import { useRunPage, useSeen } from "./context";
import { useTime } from "./use-scale";
import { isOver } from "./graph/summaries";

const MARKS: Record<string, Look["glyph"]> = {
  "token.failed": "fail", "token.timed_out": "fail", "join.failed": "fail", "run.failed": "fail", "gate.opened": "ask", "gate.completed": "done", "join.fired": "done", "run.completed": "done",
  "run.paused": "pause", "run.cancelled": "stop", "token.retry_scheduled": "retry", "compensation.started": "undo",
};
const WEIGHT: Partial<Record<Look["glyph"], number>> = { fail: 3, ask: 2, done: 1 };

interface Mark {
  readonly x: number;
  readonly glyph: Look["glyph"];
}

const SLOT = 3; // pixels

/** Events that have a mark, of a history that grows: only what is new is looked at. */
const marked = new WeakMap<Folding, { upTo: number; events: Event[] }>();
function markedOf(folding: Folding): readonly Event[] {
  const known = marked.get(folding) ?? { upTo: 0, events: [] };
  for (; known.upTo < folding.length; known.upTo++) {
    const event = folding.events[known.upTo] as Event;
    if (MARKS[event.type] !== undefined) known.events.push(event);
  }
  marked.set(folding, known);
  return known.events;
}

/** Marks that matter, none closer than 13 pixels to another: the graver one stays. Ticks say how much happened. */
export function marksOf(folding: Folding, scale: TimeScale): { marks: Mark[]; ticks: Tick[] } {
  const slots = new Map<number, Mark>();
  for (const event of markedOf(folding)) {
    const glyph = MARKS[event.type] as Look["glyph"];
    const x = scale.x(event.at);
    const slot = Math.floor(x / 16);
    if ((WEIGHT[glyph] ?? 0) >= (WEIGHT[slots.get(slot)?.glyph ?? "idle"] ?? -1)) slots.set(slot, { x, glyph });
  }
  const ticks: Tick[] = [];
  for (let [x, before] = [0, 0]; x < scale.width && before < folding.length; x += SLOT) {
    const upTo = folding.seqAt(scale.at(x + SLOT / 2));
    const count = upTo - before;
    if (count > 0) ticks.push({ x, height: count > 20 ? 8 : count > 4 ? 6 : 4 });
    before = upTo;
  }
  const marks: Mark[] = [];
  for (const [, mark] of [...slots].sort(([a], [b]) => a - b)) if (mark.x - (marks.at(-1)?.x ?? -99) >= 13) marks.push(mark);
  return { marks, ticks };
}

const SPEEDS = [1, 8, 64];

/** Plays the run from the shown moment; folded time is passed over. */
function usePlay(scale: TimeScale): { playing: boolean; speed: number; toggle: () => void; faster: () => void } {
  const { store } = useRunPage();
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(8);
  const latest = useRef(scale);
  latest.current = scale;
  useEffect(() => {
    if (!playing) return undefined;
    const { folding, cursor } = store.get();
    let at = cursor === null ? folding.newest.started : (folding.events[cursor - 1]?.at ?? folding.newest.started);
    if (cursor === null) store.seek(1);
    const timer = setInterval(() => {
      at += 50 * speed;
      const fold = latest.current.folds.find((one) => at > one.from && at < one.to);
      if (fold !== undefined) at = fold.to;
      const seq = store.get().folding.seqAt(at);
      store.seek(seq);
      if (seq >= store.get().folding.length) setPlaying(false);
    }, 50);
    return () => clearInterval(timer);
  }, [playing, speed, store]);
  return { playing, speed, toggle: () => setPlaying((on) => !on), faster: () => setSpeed((now) => SPEEDS[(SPEEDS.indexOf(now) + 1) % SPEEDS.length] as number) };
}

export function Slider({ compact = false }: { compact?: boolean }) {
  const { store } = useRunPage();
  const seen = useSeen();
  const { scale, now } = useTime();
  const play = usePlay(scale);
  const [dialog, open] = useActDialog();
  const offer = useRunOffers().find((one) => "change" in one.act && one.act.change === "fork" && seen.cursor !== null);
  const step = (by: number) => store.seek(Math.max(1, (seen.cursor ?? seen.folding.length) + by));
  const shown = seen.cursor ?? seen.folding.length;
  const at = seen.cursor === null ? now : seen.state.at;
  if (compact) {
    return (
      <section className="run-p-slider" aria-label="Time travel">
        <button type="button" className="run-p-icon" aria-label="Previous event" disabled={shown <= 1} onClick={() => step(-1)}>‹</button>
        <div className="run-slider-in"><Track own /></div>
        <button type="button" className="run-p-icon" aria-label="Next event" disabled={seen.cursor === null} onClick={() => step(1)}>›</button>
      </section>
    );
  }
  return (
    <section className="run-slider" aria-label="Time travel">
      <div className="run-slider-ctl" role="group" aria-label="Step">
        <Button kind="ghost" size="sm" icon="left" aria-label="Previous event" disabled={shown <= 1} onClick={() => step(-1)} />
        <Button kind="ghost" size="sm" icon={play.playing ? "pause" : "play"} aria-label={play.playing ? "Stop" : "Replay"} onClick={play.toggle} />
        <Button kind="ghost" size="sm" icon="right" aria-label="Next event" disabled={seen.cursor === null} onClick={() => step(1)} />
        <Button kind="ghost" size="sm" aria-label={`${play.speed}× speed`} onClick={play.faster}>{play.speed}×</Button>
        {offer !== undefined && <Button kind="ghost" size="sm" icon="split" aria-label={offer.name} title={offer.name} onClick={() => open(offer.act)} />}
        {dialog}
      </div>
      <div className="run-slider-in"><Track /></div>
      <div className="run-slider-read"><b title={instant(at)}>{timeOfDay(at)}</b><span className="c2">{otherDay(at) === null ? "" : `${otherDay(at)} · `}seq {shown.toLocaleString()} of {seen.head.toLocaleString()}</span></div>
    </section>
  );
}

interface Tick {
  readonly x: number;
  readonly height: number;
}

const Ticks = memo(function Ticks({ ticks }: { ticks: readonly Tick[] }) {
  return <div className="run-minor" aria-hidden="true">{ticks.map((tick) => <i key={tick.x} style={{ left: tick.x, height: tick.height }} />)}</div>;
});

const Marks = memo(function Marks({ marks }: { marks: readonly Mark[] }) {
  return marks.map((mark) => <span key={mark.x} className="run-ev" data-tone={mark.glyph === "pause" ? "stop" : mark.glyph === "timeout" ? "fail" : mark.glyph} style={{ left: mark.x }}><Glyph name={mark.glyph} small /></span>);
});

/** `own`: it stands under no timeline and is as wide as it is. */
function Track({ own = false }: { own?: boolean }) {
  const { store } = useRunPage();
  const seen = useSeen();
  const { scale: shared, now } = useTime();
  const track = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(300);
  const scale = useMemo(() => (own ? timeScale(shared.from, now + 1, width, shared.folds.map((fold) => [fold.from, fold.to] as const)) : shared), [own, shared, width]);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => entry !== undefined && setWidth(entry.contentRect.width));
    watch.observe(track.current as HTMLDivElement);
    return () => watch.disconnect();
  }, []);
  const { folding, cursor, state } = seen;
  const { marks, ticks } = useMemo(() => marksOf(folding, scale), [scale, folding, Math.floor(folding.length / 50), seen.loaded]);
  const shown = cursor ?? folding.length;
  const at = cursor === null ? now : state.at;
  const drag = (event: React.PointerEvent) => {
    if (event.type === "pointermove" && !event.currentTarget.hasPointerCapture(event.pointerId)) return;
    if (event.type === "pointerdown") event.currentTarget.setPointerCapture(event.pointerId);
    const left = (track.current as HTMLDivElement).getBoundingClientRect().left;
    const when = scale.at(event.clientX - left);
    store.seek(when >= now ? null : Math.max(1, folding.seqAt(when)));
  };
  const keys: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: 50, PageDown: -50 };
  const press = (event: React.KeyboardEvent) => {
    if (event.key === "Home") store.seek(1);
    else if (event.key === "End") store.seek(null);
    else if (keys[event.key] !== undefined) store.seek(Math.max(1, shown + (keys[event.key] as number)));
    else return;
    event.preventDefault();
  };
  const end = cursor === null && isOver(folding.newest.status) ? folding.newest.status : "";
  return (
    <div className="run-track" ref={track} onPointerDown={drag} onPointerMove={drag}>
      <Ticks ticks={ticks} />
      <div className="run-rail-line" style={{ width: scale.x(now) }}>{scale.folds.map((fold) => <span key={fold.from} className="run-brk" style={{ left: fold.x + 20 }} />)}</div>
      <Marks marks={marks} />
      <span
        className="run-thumb" role="slider" tabIndex={0} data-status={end} aria-label="Moment of the run" aria-valuemin={1} aria-valuemax={Math.max(1, folding.length)} aria-valuenow={shown}
        aria-valuetext={`${instant(state.at || Date.now())}, event ${shown}`} style={{ left: scale.x(at) }} onKeyDown={press}
      />
    </div>
  );
}
