// The frame of a change to a run: what is typed is sent to the service as a dry run, which tells in numbers what will
// happen, or why it cannot. Only what the service has foretold can be done.
import { useEffect, useRef, useState, type ReactNode } from "react";
import type { Effect } from "@/model/acts";
import { Dialog } from "@/ui/dialog";
import { Button, Trouble } from "@/ui/parts";
import { Effects } from "../acts/effects";

const PAUSE_MS = 300;

type Foretold = { kind: "asking" } | { kind: "known"; effects: readonly Effect[] } | { kind: "refused"; error: unknown };

interface Props<Body> {
  title: string;
  about: string;
  confirm: string;
  danger?: boolean;
  wide?: boolean;
  /** What is asked for; null: what is typed cannot be sent. */
  body: Body | null;
  /** Asks what would happen. */
  foretell: (body: Body) => Promise<readonly Effect[]>;
  perform: (body: Body) => Promise<unknown>;
  /** Asks for a reason, which the history keeps. */
  reason?: boolean;
  onClose: () => void;
  children?: ReactNode;
  /** Shown below the effects. */
  more?: ReactNode;
}

export function ChangeFrame<Body extends object>({ title, about, confirm, danger = false, wide = false, body, foretell, perform, reason = true, onClose, children, more }: Props<Body>) {
  const [why, setWhy] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const known = useForetold(body, foretell);
  const go = async () => {
    if (body === null) return;
    setBusy(true);
    setError(null);
    try {
      await perform(reason && why.trim() !== "" ? { ...body, reason: why.trim() } : body);
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title} onClose={onClose} wide={wide}
      foot={<><Button onClick={onClose}>Leave it</Button><Button kind={danger ? "danger-solid" : "primary"} disabled={busy || known?.kind !== "known"} onClick={() => void go()}>{confirm}</Button></>}
    >
      <p className="c2">{about}</p>
      {children}
      {reason && <label className="field"><span className="label">Reason <span className="c2 w4">(kept in the history)</span></span><input className="input" value={why} onChange={(event) => setWhy(event.target.value)} /></label>}
      <div className="run-foretold" aria-live="polite">
        {known?.kind === "known" && (known.effects.length > 0 ? <Effects effects={known.effects} /> : <p className="c2 t2">Nothing would change.</p>)}
        {known?.kind === "asking" && <p className="c2 t2">Asking the service what would happen…</p>}
        {known?.kind === "refused" && <Trouble error={known.error} />}
        {more}
      </div>
      {error !== null && <Trouble error={error} />}
    </Dialog>
  );
}

/** What the service foretells of the newest body; asked when typing stops. */
function useForetold<Body>(body: Body | null, foretell: (body: Body) => Promise<readonly Effect[]>): Foretold | null {
  const [known, setKnown] = useState<Foretold | null>(null);
  const latest = useRef(foretell);
  latest.current = foretell;
  const key = body === null ? null : JSON.stringify(body);
  const isFirst = useRef(true);
  useEffect(() => {
    if (key === null) {
      setKnown(null);
      return undefined;
    }
    setKnown({ kind: "asking" });
    let over = false;
    const timer = setTimeout(() => {
      latest.current(JSON.parse(key) as Body).then((effects) => over || setKnown({ kind: "known", effects }), (error: unknown) => over || setKnown({ kind: "refused", error }));
    }, isFirst.current ? 0 : PAUSE_MS);
    isFirst.current = false;
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [key]);
  return known;
}
