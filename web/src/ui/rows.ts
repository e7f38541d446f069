// A long list of rows of one height: only those in sight exist, and scrolling gives the same elements other rows.
//
// The rows in sight follow from the scroll offset alone. An element belongs to a slot, not to a row: a fling changes what
// the elements show and makes none, because making and dropping hundreds of them is what stutters.
import { useCallback, useEffect, useState, type RefObject } from "react";
import { flushSync } from "react-dom";

export interface RowPlace {
  readonly index: number;
  /** The key of its element. */
  readonly slot: number;
  readonly top: number;
}

interface Sight {
  readonly first: number;
  readonly count: number;
}

const SPARE = 4; // rows above and below, so that a focused row does not vanish at the edge

export function useRows(count: number, height: number, body: RefObject<HTMLElement | null>): { total: number; places: readonly RowPlace[]; reveal: (index: number) => void } {
  const [sight, setSight] = useState<Sight>({ first: 0, count: 30 });
  useEffect(() => {
    const element = body.current;
    if (element === null) return undefined;
    const look = (before: Sight): Sight => {
      const next = { first: Math.max(0, Math.floor(element.scrollTop / height) - SPARE), count: Math.ceil(element.clientHeight / height) + 2 * SPARE + 1 };
      return next.first === before.first && next.count === before.count ? before : next;
    };
    const scrolled = () => flushSync(() => setSight(look)); // in this frame: later would show a gap
    const sized = new ResizeObserver(() => setSight(look));
    element.addEventListener("scroll", scrolled, { passive: true });
    sized.observe(element);
    return () => {
      element.removeEventListener("scroll", scrolled);
      sized.disconnect();
    };
  }, [body, height]);
  const reveal = useCallback((index: number) => {
    const element = body.current;
    if (element === null) return;
    const [top, bottom] = [index * height, (index + 1) * height];
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  }, [body, height]);
  const first = Math.max(0, Math.min(sight.first, count - sight.count));
  const places = Array.from({ length: Math.min(sight.count, count) }, (_, at) => ({ index: first + at, slot: (first + at) % sight.count, top: (first + at) * height }));
  return { total: count * height, places, reveal };
}
