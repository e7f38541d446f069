// Which pages of a history are read next: from both ends at once, so that the newest events are there first and the state
// of any moment soon. Pure.

export const PAGE = 1_000;

export interface Ask {
  /** The page begins behind this event. */
  readonly after: number;
  readonly limit: number;
}

/** The next pages. `front`: events that are there from the beginning; `end`: the number of the first event that is there
 * of the end; null: only the beginning is read, up to whatever is the newest event by then. */
export function nextPages(front: number, end: number | null): Ask[] {
  if (end === null) return [{ after: front, limit: PAGE }];
  const missing = end - 1 - front;
  if (missing <= 0) return [];
  const before = Math.min(PAGE, missing);
  const behind = Math.min(PAGE, missing - before);
  const newest = { after: end - 1 - behind, limit: behind };
  return [...(behind > 0 ? [newest] : []), { after: front, limit: before }];
}
