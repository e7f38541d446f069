// What a person does about a gate beside answering: take it on, give it back, pass it on, send a link.
import { useState } from "react";
import { api, given } from "@/api/client";
import { peopleOf, type GateView, type Rights } from "@/model/gates";
import { Dialog } from "@/ui/dialog";
import { Button, Copy, Time, Trouble } from "@/ui/parts";

const pathOf = (gate: GateView) => ({ path: { run: gate.run, visit: String(gate.visit) } });

export function Acts({ gate, rights, onChanged }: { gate: GateView; rights: Rights; onChanged: () => void }) {
  const [dialog, setDialog] = useState<"delegate" | "link" | null>(null);
  const [error, setError] = useState<unknown>(null);
  const perform = async (act: "claim" | "release") => {
    try {
      await given(api.POST(`/api/v1/gates/{run}/{visit}/${act}` as "/api/v1/gates/{run}/{visit}/claim", { params: pathOf(gate), body: {} } as never));
      setError(null);
    } catch (problem) {
      setError(problem);
    }
    onChanged();
  };
  return (
    <>
      <div className="gates-acts">
        {rights.claim && <Button onClick={() => void perform("claim")}>Claim</Button>}
        {rights.release && <Button onClick={() => void perform("release")}>Release</Button>}
        {rights.delegate && <Button onClick={() => setDialog("delegate")}>Delegate…</Button>}
        {rights.link && <Button icon="link" onClick={() => setDialog("link")}>Link…</Button>}
      </div>
      {error !== null && <Trouble error={error} />}
      {dialog === "delegate" && <Delegate gate={gate} onClose={() => setDialog(null)} onChanged={onChanged} />}
      {dialog === "link" && <LinkDialog gate={gate} onClose={() => setDialog(null)} />}
    </>
  );
}

const namesOf = (gate: GateView): string[] => [...new Set([...peopleOf(gate.assign), ...peopleOf(gate.escalated)].filter(({ kind }) => kind !== "group").map(({ name }) => name))];

function Delegate({ gate, onClose, onChanged }: { gate: GateView; onClose: () => void; onChanged: () => void }) {
  const [to, setTo] = useState("");
  const [error, setError] = useState<unknown>(null);
  const send = async () => {
    try {
      await given(api.POST("/api/v1/gates/{run}/{visit}/delegate", { params: pathOf(gate), body: { to: to.trim() } } as never));
      onChanged();
      onClose();
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <Dialog title="Delegate" onClose={onClose} foot={<Button kind="primary" disabled={to.trim() === ""} onClick={() => void send()}>Delegate</Button>}>
      <p>The gate is then claimed by this person: nobody else answers it until they release it.</p>
      <form onSubmit={(event) => { event.preventDefault(); if (to.trim() !== "") void send(); }}>
        <label className="field">
          <span className="label">To</span>
          <input className="input" list="gates-people" value={to} autoComplete="off" onChange={(event) => setTo(event.target.value)} />
        </label>
        <datalist id="gates-people">{namesOf(gate).map((name) => <option key={name} value={name} />)}</datalist>
      </form>
      {error !== null && <Trouble error={error} />}
    </Dialog>
  );
}

const HOUR = 3_600_000;
const SPANS: [string, number][] = [["1 hour", HOUR], ["1 day", 24 * HOUR], ["3 days", 72 * HOUR], ["7 days", 168 * HOUR], ["30 days", 720 * HOUR]];

function LinkDialog({ gate, onClose }: { gate: GateView; onClose: () => void }) {
  const [expires, setExpires] = useState(72 * HOUR);
  const [whom, setWhom] = useState("");
  const [made, setMade] = useState<{ url: string; expires: number } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const make = async () => {
    try {
      const body = { expires_ms: expires, ...(whom.trim() === "" ? {} : { for: whom.trim() }) };
      setMade(await given(api.POST("/api/v1/gates/{run}/{visit}/link", { params: pathOf(gate), body } as never)));
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <Dialog title="One-time link" onClose={onClose} foot={made === null ? <Button kind="primary" onClick={() => void make()}>Make the link</Button> : <Button kind="primary" onClick={onClose}>Done</Button>}>
      {made === null ? (
        <>
          <p>The person who opens the link may answer this gate once, without an account.</p>
          <label className="field">
            <span className="label">Answers as<span className="c2"> optional</span></span>
            <input className="input" list="gates-people" value={whom} autoComplete="off" onChange={(event) => setWhom(event.target.value)} />
            <span className="hint">The name that the history will say.</span>
          </label>
          <datalist id="gates-people">{namesOf(gate).map((name) => <option key={name} value={name} />)}</datalist>
          <label className="field">
            <span className="label">Works for</span>
            <select className="select" value={expires} onChange={(event) => setExpires(Number(event.target.value))}>{SPANS.map(([name, ms]) => <option key={ms} value={ms}>{name}</option>)}</select>
          </label>
        </>
      ) : (
        <>
          <p>Copy it now: it is shown this once. It works until <Time at={made.expires} />.</p>
          <div className="code gates-url"><Copy text={made.url} label="the link" /></div>
        </>
      )}
      {error !== null && <Trouble error={error} />}
    </Dialog>
  );
}
