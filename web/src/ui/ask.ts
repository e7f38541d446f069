// Reading from the service in a component: one request at a time, the newest wins, and a way to ask again.
import { useCallback, useEffect, useRef, useState } from "react";

export interface Asked<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly busy: boolean;
  /** Asks again; what is shown stays until the answer is there. */
  readonly again: () => void;
}

/** Calls `ask` when `key` changes. An answer to an older key is dropped. */
export function useAsk<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const [state, setState] = useState<{ key: string | null; data?: T; error?: unknown; busy: boolean }>({ key: null, busy: true });
  const [turn, setTurn] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (key === null) return undefined;
    const stop = new AbortController();
    setState((before) => (before.key === key ? { ...before, busy: true } : { key, busy: true }));
    latest.current(stop.signal).then(
      (data) => stop.signal.aborted || setState({ key, data, busy: false }),
      (error: unknown) => stop.signal.aborted || setState((before) => ({ ...before, key, error, busy: false })),
    );
    return () => stop.abort();
  }, [key, turn]);
  const again = useCallback(() => setTurn((before) => before + 1), []);
  const mine = state.key === key;
  return { data: mine ? state.data : undefined, error: mine ? state.error : undefined, busy: state.busy, again };
}
