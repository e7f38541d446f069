// Making and changing a subscription, and sending its events again from a moment on.
import { useState } from "react";
import { api } from "@/api/client";
import type { components } from "@/api/schema";
import { listGiven } from "@/model/given";
import { SaveDialog, TextField } from "./fields";

export type Subscription = components["schemas"]["SubscriptionView"];

export function SubscriptionForm({ row, onClose }: { row: Subscription | null; onClose: () => void }) {
  const [name, setName] = useState(row?.name ?? "");
  const [url, setUrl] = useState(row?.url ?? "");
  const [types, setTypes] = useState(row?.types.join(", ") ?? "run.*");
  const [workflows, setWorkflows] = useState(row?.workflows?.join(", ") ?? "");
  const [secret, setSecret] = useState("");
  const wrongUrl = url !== "" && !/^https?:\/\/\S+$/.test(url) ? "An address that begins with https:// or http://." : null;
  const save = () => {
    const body = { url, types: listGiven(types), workflows: listGiven(workflows).length === 0 ? null : listGiven(workflows), ...(secret === "" ? {} : { secret }) };
    return api.PUT("/api/v1/subscriptions/{name}", { params: { path: { name } }, body: body as never });
  };
  const isWhole = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(name) && url !== "" && wrongUrl === null && listGiven(types).length > 0;
  return (
    <SaveDialog title={row === null ? "New subscription" : `Subscription ${row.name}`} act="Save" disabled={!isWhole} save={save} onClose={onClose}>
      <TextField label="Name" value={name} onChange={setName} fixed={row !== null} focus={row === null} />
      <TextField label="Address" value={url} onChange={setUrl} wrong={wrongUrl} placeholder="https://orders.example/events" hint="Every event that matches is sent there at least once, in the order of its run." />
      <TextField label="Events" mono value={types} onChange={setTypes} hint="Patterns of types: run.*, gate.opened, custom.order.*" />
      <TextField label="Workflows" mono value={workflows} onChange={setWorkflows} placeholder="all" hint="Patterns of names: orders/*" />
      <TextField label="Secret" secret value={secret} onChange={setSecret} placeholder="whsec_…" hint={row?.has_secret ? "Signs the messages. Written, never read back; left empty, it stays as it is." : "Signs the messages: whsec_ and base64. Written, never read back."} />
      {row?.paused != null && <p className="hint">It was paused because its endpoint failed for an hour. Saving lets it go on.</p>}
    </SaveDialog>
  );
}

const localText = (ms: number): string => new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

export function ReplayForm({ name, onClose }: { name: string; onClose: () => void }) {
  const [from, setFrom] = useState(() => localText(Date.now() - 3_600_000));
  const at = new Date(from).getTime();
  const save = () => api.POST("/api/v1/subscriptions/{name}/replay", { params: { path: { name } }, body: { from: at } as never });
  return (
    <SaveDialog title={`Send again to ${name}`} act="Send again" disabled={Number.isNaN(at)} save={save} onClose={onClose}>
      <label className="field"><span className="label">Events since, local time</span><input className="input" type="datetime-local" autoFocus value={from} onChange={(event) => setFrom(event.target.value)} /></label>
      <p className="note"><span>All events since then that match are sent again, also those that were accepted. The receiver knows a repetition by its message id. If the subscription was paused, it goes on.</span></p>
    </SaveDialog>
  );
}
