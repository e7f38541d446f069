// Fields of the forms of this screen, and the dialog around them: what was typed stays when the service refuses.
import { useId, useState, type ReactNode } from "react";
import { api, given } from "@/api/client";
import { valueGiven } from "@/model/given";
import { useAsk } from "@/ui/ask";
import { Dialog } from "@/ui/dialog";
import { Button, Trouble } from "@/ui/parts";

interface FieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  hint?: ReactNode;
  /** Why the value cannot be taken; shown at the field. */
  wrong?: string | null;
  placeholder?: string;
  fixed?: boolean;
  focus?: boolean;
  mono?: boolean;
}

/** A field with its label; the hint or the error describes it, and is not a part of its name. */
function Field({ label, hint, wrong, children }: { label: string; hint?: ReactNode; wrong?: string | null | undefined; children: (ids: { id: string; "aria-describedby": string | undefined; "aria-invalid": true | undefined }) => ReactNode }) {
  const id = useId();
  const about = wrong ? <span id={`${id}-about`} className="field-error" role="alert">{wrong}</span> : hint === undefined ? null : <span id={`${id}-about`} className="hint">{hint}</span>;
  return (
    <div className="field">
      <label className="label" htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": about === null ? undefined : `${id}-about`, "aria-invalid": wrong ? true : undefined })}
      {about}
    </div>
  );
}

export function TextField({ label, value, onChange, hint, wrong, placeholder, fixed = false, focus = false, mono = false, secret = false }: FieldProps & { secret?: boolean }) {
  const classes = ["input", mono ? "mono" : "", wrong ? "is-invalid" : ""].filter(Boolean).join(" ");
  return (
    <Field label={label} hint={hint} wrong={wrong}>
      {(ids) => <input {...ids} className={classes} type={secret ? "password" : "text"} autoComplete="off" placeholder={placeholder} readOnly={fixed} autoFocus={focus} value={value} onChange={(event) => onChange(event.target.value)} />}
    </Field>
  );
}

export function AreaField({ label, value, onChange, hint, wrong, placeholder, rows = 3 }: FieldProps & { rows?: number }) {
  return (
    <Field label={label} hint={hint} wrong={wrong}>
      {(ids) => <textarea {...ids} className={wrong ? "textarea mono is-invalid" : "textarea mono"} rows={rows} spellCheck={false} placeholder={placeholder} value={value} onChange={(event) => onChange(event.target.value)} />}
    </Field>
  );
}

export function PickField({ label, value, onChange, options, hint }: Omit<FieldProps, "wrong"> & { options: readonly (readonly [value: string, name: string])[] }) {
  return (
    <Field label={label} hint={hint}>
      {(ids) => <select {...ids} className="select" value={value} onChange={(event) => onChange(event.target.value)}>{options.map(([one, name]) => <option key={one} value={one}>{name}</option>)}</select>}
    </Field>
  );
}

export function WorkflowField({ value, onChange, label = "Workflow" }: { value: string; onChange: (value: string) => void; label?: string }) {
  const names = useAsk("workflows", async () => (await given(api.GET("/api/v1/workflows", { params: { query: { limit: 1_000 } } }))).items.map((one) => one.workflow));
  const all = [...new Set([...(value === "" ? [] : [value]), ...(names.data ?? [])])].sort();
  return <PickField label={label} value={value} onChange={onChange} options={[["", "Choose one"], ...all.map((name) => [name, name] as const)]} />;
}

/** Why a text is neither JSON nor a path; null: it can be taken. */
export function wrongValue(text: string): string | null {
  try {
    valueGiven(text);
    return null;
  } catch (problem) {
    return (problem as Error).message;
  }
}

/** A dialog that saves: it closes when the service has taken everything. */
export function SaveDialog({ title, act, disabled, save, onClose, children }: { title: string; act: string; disabled: boolean; save: () => Promise<unknown>; onClose: () => void; children: ReactNode }) {
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const go = async () => {
    setBusy(true);
    setError(null);
    try {
      await save();
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose} foot={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" disabled={disabled || busy} onClick={() => void go()}>{act}</Button></>}>
      {error !== null && <Trouble error={error} />}
      {children}
    </Dialog>
  );
}
