// A dialog that says first, in numbers, what an act will do; then does it and shows a refusal where it stands. It is
// fetched when the first act is chosen.
import { Dialog } from "@base-ui/react/dialog";
import { useState, type ReactNode } from "react";
import type { Effect } from "@/model/acts";
import { Button, Trouble } from "@/ui/parts";
import { Effects } from "./effects";

export interface Act {
  readonly title: string;
  readonly about: string;
  /** Counted when the act is chosen: a run may have ten thousand visits. */
  readonly effects: () => readonly Effect[];
  readonly confirm: string;
  readonly danger?: boolean;
  /** Asks for a reason, which the history keeps. */
  readonly reason?: boolean;
  readonly form?: (set: (name: string, value: string) => void, values: Record<string, string>) => ReactNode;
  readonly run: (values: Record<string, string>) => Promise<unknown>;
}

export default function ActDialog({ act, onClose }: { act: Act; onClose: () => void }) {
  return (
    <Dialog.Root open onOpenChange={(open) => open || onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="run-scrim" />
        <Dialog.Popup className="run-dialog"><Content act={act} onClose={onClose} /></Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Content({ act, onClose }: { act: Act; onClose: () => void }) {
  const [effects] = useState(act.effects);
  const [values, setValues] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const set = (name: string, value: string) => setValues((before) => ({ ...before, [name]: value }));
  const go = async () => {
    setBusy(true);
    setError(null);
    try {
      await act.run(values);
      onClose();
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className="run-act" onSubmit={(event) => { event.preventDefault(); void go(); }}>
      <Dialog.Title className="t4 b">{act.title}</Dialog.Title>
      <Dialog.Description className="c2">{act.about}</Dialog.Description>
      {act.form?.(set, values)}
      {effects.length > 0 && <Effects effects={effects} />}
      {act.reason && (
        <label className="field">
          <span className="label">Reason <span className="c2 w4">(kept in the history)</span></span>
          <input className="input" value={values["reason"] ?? ""} onChange={(event) => set("reason", event.target.value)} />
        </label>
      )}
      {error !== null && <Trouble error={error} />}
      <div className="row run-act-foot">
        <Dialog.Close className="btn">Leave it</Dialog.Close>
        <Button type="submit" kind={act.danger ? "danger-solid" : "primary"} disabled={busy}>{act.confirm}</Button>
      </div>
    </form>
  );
}
