// Making and changing a schedule; and looking ahead: its next times, and the runs it has started.
import { useState } from "react";
import { Link } from "wouter";
import { api, given } from "@/api/client";
import type { components } from "@/api/schema";
import { durationGiven, durationWritten, valueGiven, valueWritten } from "@/model/given";
import { useAsk } from "@/ui/ask";
import { Dialog } from "@/ui/dialog";
import { Loading, RunState, Time, Trouble } from "@/ui/parts";
import { AreaField, PickField, SaveDialog, TextField, WorkflowField } from "./fields";

export type Schedule = components["schemas"]["ScheduleRow"];
const OVERLAP = [["skip", "leave this one out"], ["queue", "start it when the other has ended"], ["allow", "let both run"], ["cancel_previous", "cancel the other"]] as const;
const CATCH_UP = [["last", "the last one"], ["all", "all of them"], ["none", "none of them"]] as const;
const ZONES = Intl.supportedValuesOf("timeZone");

export function ScheduleForm({ row, onClose }: { row: Schedule | null; onClose: () => void }) {
  const [name, setName] = useState(row?.name ?? "");
  const [workflow, setWorkflow] = useState(row?.workflow ?? "");
  const [by, setBy] = useState(row?.every_ms != null ? "every" : "cron");
  const [cron, setCron] = useState(row?.cron ?? "0 9 * * *");
  const [every, setEvery] = useState(row?.every_ms == null ? "1h" : durationWritten(row.every_ms));
  const [zone, setZone] = useState(row?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC");
  const [input, setInput] = useState(row === null ? "{}" : valueWritten(row.input));
  const [overlap, setOverlap] = useState<string>(row?.overlap ?? "skip");
  const [catchUp, setCatchUp] = useState<string>(row?.catch_up ?? "last");
  const [jitter, setJitter] = useState(row === null || row.jitter_ms === 0 ? "" : durationWritten(row.jitter_ms));
  const wrong = {
    every: by === "every" && durationGiven(every) === null ? "A duration: 15m, 1h 30m, 2d." : null,
    jitter: jitter !== "" && durationGiven(jitter) === null ? "A duration: 30s, 5m." : null,
    input: wrongInput(input),
  };
  const save = () => {
    const when = by === "cron" ? { cron: cron.trim() } : { every_ms: durationGiven(every) as number };
    const body = { workflow, ...when, timezone: zone, input: valueGiven(input) ?? {}, overlap, catch_up: catchUp, jitter_ms: durationGiven(jitter) ?? 0, paused: row?.paused ?? false };
    return api.PUT("/api/v1/schedules/{schedule}", { params: { path: { schedule: name.trim() } }, body: body as never });
  };
  const isWhole = name.trim() !== "" && workflow !== "" && (by === "every" || cron.trim() !== "") && Object.values(wrong).every((one) => one === null);
  return (
    <SaveDialog title={row === null ? "New schedule" : `Schedule ${row.name}`} act="Save" disabled={!isWhole} save={save} onClose={onClose}>
      <TextField label="Name" value={name} onChange={setName} fixed={row !== null} focus={row === null} />
      <WorkflowField value={workflow} onChange={setWorkflow} />
      <div className="operate-pair">
        <PickField label="When" value={by} onChange={setBy} options={[["cron", "at times of the clock"], ["every", "every so often"]]} />
        {by === "cron" ? <TextField label="Times" mono value={cron} onChange={setCron} hint="Minute, hour, day, month, weekday; or @daily." /> : <TextField label="Every" value={every} onChange={setEvery} wrong={wrong.every} placeholder="1h 30m" />}
      </div>
      <label className="field">
        <span className="label">Time zone</span>
        <input className="input" list="operate-zones" value={zone} onChange={(event) => setZone(event.target.value)} />
        <datalist id="operate-zones">{["UTC", ...ZONES].map((one) => <option key={one} value={one} />)}</datalist>
      </label>
      <AreaField label="Input, as JSON" value={input} onChange={setInput} wrong={wrong.input} />
      <div className="operate-pair">
        <PickField label="If one still runs" value={overlap} onChange={setOverlap} options={OVERLAP} />
        <PickField label="Times that were missed" value={catchUp} onChange={setCatchUp} options={CATCH_UP} />
      </div>
      <TextField label="Spread over" value={jitter} onChange={setJitter} wrong={wrong.jitter} placeholder="none" hint="Each start is late by a part of this, so that not everything starts at once." />
    </SaveDialog>
  );
}

function wrongInput(text: string): string | null {
  try {
    const value = JSON.parse(text.trim() === "" ? "{}" : text) as unknown;
    return value !== null && typeof value === "object" && !Array.isArray(value) ? null : "The input is an object.";
  } catch (problem) {
    return (problem as Error).message;
  }
}

export function Ahead({ row, onClose }: { row: Schedule; onClose: () => void }) {
  const path = { schedule: row.name };
  const next = useAsk(row.name, () => given(api.GET("/api/v1/schedules/{schedule}/upcoming", { params: { path, query: { limit: 10 } } as never })));
  const past = useAsk(row.name, () => given(api.GET("/api/v1/schedules/{schedule}", { params: { path } })));
  const error = next.error ?? past.error;
  return (
    <Dialog title={`Schedule ${row.name}`} onClose={onClose}>
      {error !== undefined && <Trouble error={error} />}
      {next.data === undefined && error === undefined && <Loading what="the next times" />}
      {next.data !== undefined && (
        <section>
          <h3 className="section-title">Next times</h3>
          {next.data.items.length === 0 ? <p className="c2">{row.paused ? "None: it is paused." : "None."}</p> : <ol className="operate-times">{next.data.items.map((one) => <li key={one.due}><Time at={one.starts} /> <span className="c2"><Time at={one.starts} as="relative" /></span></li>)}</ol>}
        </section>
      )}
      {past.data !== undefined && (
        <section>
          <h3 className="section-title">Last runs</h3>
          {past.data.last.length === 0 ? <p className="c2">It has started none yet.</p> : <ol className="operate-times">{past.data.last.map((one) => <li key={one.run}><Link className="link mono" href={`/runs/${encodeURIComponent(one.run)}`}>{one.run.slice(-12)}</Link> <RunState status={one.status} /> <Time at={one.started} as="relative" /></li>)}</ol>}
        </section>
      )}
    </Dialog>
  );
}
