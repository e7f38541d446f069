// The history: every event, filtered by words, type and visit; what changed at each, and between any two.
import { useEffect, useMemo, useRef, useState } from "react";
import { eventGlyph, eventWords, subjectOf } from "@/model/event-words";
import type { Event, RunState } from "@/model/fold";
import { instant } from "@/model/time";
import { Button } from "@/ui/parts";
import { Glyph } from "@/ui/icon";
import { useRows } from "@/ui/rows";
import { useRunPage, useSeen } from "../context";
import { Changes } from "./changes";

const ROW = 30;
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" });

/** Stands for the events between both ends of a history that is still being read. */
const GAP: Event = { seq: 0, at: 0, type: "" };

function useFiltered(filter: string, type: string, visit: number | null): readonly Event[] {
  const { folding, turn, span } = useSeen();
  return useMemo(() => {
    const wanted = filter.trim().toLowerCase();
    const known = folding.ahead.length === 0 ? folding.events : [...folding.events, GAP, ...folding.ahead];
    if (wanted === "" && type === "" && visit === null && span === null) return known;
    return known.filter((event) => {
      if (event === GAP) return true;
      if (span !== null && (event.seq < span.from || event.seq > span.to)) return false;
      if (type !== "" && event.type !== type) return false;
      if (visit !== null && event["token"] !== visit) return false;
      return wanted === "" || event.type.includes(wanted) || subjectOf(event, folding.newest).toLowerCase().includes(wanted) || eventWords(event).toLowerCase().includes(wanted);
    });
  }, [folding, folding.known, turn >> 2, filter, type, visit, span]);
}

export function History({ filter }: { filter: string }) {
  const { store, selection, select } = useRunPage();
  const seen = useSeen();
  const { folding, cursor } = seen;
  const [type, setType] = useState("");
  const [mine, setMine] = useState(false);
  const [base, setBase] = useState<number | null>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  const events = useFiltered(filter, type, mine ? selection.visit : null);
  const body = useRef<HTMLDivElement>(null);
  const { total, places, reveal } = useRows(events.length, ROW, body);
  const types = useMemo(() => [...new Set(folding.events.map((event) => event.type))].sort(), [folding, Math.floor(folding.length / 200), seen.loaded]);
  const shown = cursor ?? chosen;
  useEffect(() => {
    if (cursor === null) return;
    const index = events.findIndex((event) => event.seq >= cursor);
    if (index >= 0) reveal(index);
  }, [cursor]);
  const pick = (event: Event) => {
    setChosen(event.seq);
    store.seek(event.seq);
    if (typeof event["token"] === "number" && event["token"] > 0) select({ node: null, visit: event["token"], group: null });
  };
  return (
    <div className="run-hy">
      <div className="run-hy-list">
        <div className="run-hy-tools">
          <select className="select input-sm" aria-label="Type of event" value={type} onChange={(event) => setType(event.target.value)}>
            <option value="">All types</option>
            {types.map((one) => <option key={one}>{one}</option>)}
          </select>
          <label className="row t1"><input type="checkbox" className="check" checked={mine} disabled={selection.visit === null} onChange={(event) => setMine(event.target.checked)} /> {selection.visit === null ? "Only the selected visit" : `Only visit ${selection.visit}`}</label>
          <span className="c2 t1 push">{(events.length - (folding.ahead.length > 0 ? 1 : 0)).toLocaleString()} of {seen.head.toLocaleString()}</span>
        </div>
        <div className="run-hy-body" ref={body} role="listbox" aria-label="Events" tabIndex={0}>
          <div style={{ height: total, position: "relative" }}>
            {places.map(({ index, slot, top }) => {
              const event = events[index] as Event;
              if (event === GAP) return <div key={slot} className="run-hy-row c2" style={{ transform: `translateY(${top}px)` }}><span /><span className="clip run-hy-gap">{(seen.head - folding.known).toLocaleString()} events between are being read…</span></div>;
              return <Line key={slot} event={event} state={seen.loaded ? folding.newest : seen.state} top={top} selected={event.seq === shown} past={cursor !== null && event.seq > cursor} base={event.seq === base} onPick={() => pick(event)} />;
            })}
          </div>
          {events.length === 0 && <div className="empty">{seen.loaded ? "No event fits." : "Loading the history…"}</div>}
        </div>
      </div>
      <aside className="run-hy-side" aria-label="What changed">
        {shown === null ? <div className="empty">Choose an event to see what it changed.</div> : (
          <>
            <div className="row run-hy-head">
              <b className="t2">{base === null ? `Event ${shown.toLocaleString()}` : `Between ${Math.min(base, shown).toLocaleString()} and ${Math.max(base, shown).toLocaleString()}`}</b>
              <span className="c2 t1 clip">{base === null ? instant(folding.event(shown)?.at ?? 0) : ""}</span>
              <span className="push">{base === null ? <Button size="sm" onClick={() => setBase(shown)}>Compare from here</Button> : <Button size="sm" onClick={() => setBase(null)}>Clear</Button>}</span>
            </div>
            {shown > folding.length && <div className="empty">What it changed is known once the events before it are read.</div>}
            {shown <= folding.length && <Changes from={base === null ? shown - 1 : Math.min(base, shown)} to={base === null ? shown : Math.max(base, shown)} event={base === null ? folding.events[shown - 1] : undefined} />}
          </>
        )}
      </aside>
    </div>
  );
}

function Line({ event, state, top, selected, past, base, onPick }: { event: Event; state: RunState; top: number; selected: boolean; past: boolean; base: boolean; onPick: () => void }) {
  const glyph = eventGlyph(event.type);
  const tone = glyph === "pause" ? "stop" : glyph === "timeout" ? "fail" : glyph;
  return (
    <button type="button" role="option" aria-selected={selected} className={`run-hy-row ${past ? "is-past" : ""} ${base ? "is-base" : ""}`} style={{ transform: `translateY(${top}px)` }} onClick={onPick}>
      <span className="c2 num">{event.seq.toLocaleString()}</span>
      <span className="c2" title={instant(event.at)}>{clock.format(event.at)}</span>
      <span className="row row-4"><span className="tone" data-tone={tone}><Glyph name={glyph} small /></span><span className="mono clip">{event.type}</span></span>
      <span className="clip">{subjectOf(event, state)}</span>
      <span className="c2 clip">{eventWords(event)}</span>
    </button>
  );
}
