// Making and changing a hook: how deliveries are signed, and what each becomes. The secret is written and never read back.
import { useState } from "react";
import { api } from "@/api/client";
import type { components } from "@/api/schema";
import { valueGiven, valueWritten } from "@/model/given";
import { AreaField, PickField, SaveDialog, TextField, WorkflowField, wrongValue } from "./fields";

export type Hook = components["schemas"]["HookView"];
const SOURCES = [["generic", "HMAC-SHA256 of the body"], ["standard", "Standard Webhooks"], ["github", "GitHub"], ["stripe", "Stripe"], ["slack", "Slack"], ["none", "not signed: anybody who knows the address"]] as const;

/** A condition as it was typed: the service keeps it with its language. */
const conditionWritten = (when: unknown): string => {
  const { type, expr } = (when ?? {}) as { type?: unknown; expr?: unknown };
  return type === "cel" && typeof expr === "string" ? expr : valueWritten(when);
};

interface Named {
  name?: unknown;
  key?: unknown;
  type?: string;
  id?: unknown;
  attributes?: unknown;
}

export function HookForm({ row, onClose }: { row: Hook | null; onClose: () => void }) {
  const signal = (row?.signal ?? null) as Named | null;
  const entity = (row?.entity ?? null) as Named | null;
  const [fields, setFields] = useState({
    slug: row?.slug ?? "", source: row?.source ?? "standard", secret: "", does: signal === null ? "start" : "signal", workflow: row?.workflow ?? "", signal: String(signal?.name ?? ""), signalKey: valueWritten(signal?.key),
    input: valueWritten(row?.input), key: valueWritten(row?.key), when: conditionWritten(row?.when), respond: row?.respond ?? "accepted", type: entity?.type ?? "", id: valueWritten(entity?.id), name: valueWritten(entity?.name),
  });
  const set = (name: keyof typeof fields) => (value: string) => setFields((before) => ({ ...before, [name]: value }));
  const starts = fields.does === "start";
  const needsSecret = fields.source !== "none" && !(row?.has_secret ?? false);
  const texts = [fields.input, fields.key, fields.when, fields.signalKey, fields.id, fields.name];
  const isWhole = /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(fields.slug) && (starts ? fields.workflow !== "" : fields.signal !== "") && (!needsSecret || fields.secret !== "") && texts.every((text) => wrongValue(text) === null) && (fields.type === "") === (fields.id === "");
  const save = () => {
    const some = (name: string, text: string) => (valueGiven(text) === undefined ? {} : { [name]: valueGiven(text) });
    const about = starts && fields.type !== "" ? { entity: { type: fields.type, id: valueGiven(fields.id), ...some("name", fields.name), ...(entity?.attributes == null ? {} : { attributes: entity.attributes }) } } : {};
    const what = starts ? { workflow: fields.workflow, ...some("input", fields.input), ...about } : { signal: { name: fields.signal, ...some("key", fields.signalKey) }, ...some("input", fields.input) };
    const body = { source: fields.source, respond: starts ? fields.respond : "accepted", ...(fields.secret === "" ? {} : { secret: fields.secret }), ...what, ...some("key", fields.key), ...some("when", fields.when) };
    return api.PUT("/api/v1/hooks/{slug}", { params: { path: { slug: fields.slug } }, body: body as never });
  };
  return (
    <SaveDialog title={row === null ? "New hook" : `Hook ${row.slug}`} act="Save" disabled={!isWhole} save={save} onClose={onClose}>
      <TextField label="Name in the address" mono value={fields.slug} onChange={set("slug")} fixed={row !== null} focus={row === null} hint={<>Deliveries go to <code className="mono">/hooks/{fields.slug || "NAME"}</code>.</>} />
      <PickField label="Deliveries are signed as" value={fields.source} onChange={set("source")} options={SOURCES} />
      {fields.source !== "none" && <TextField label="Secret" secret value={fields.secret} onChange={set("secret")} hint={row?.has_secret ? "Written, never read back. Left empty, it stays as it is." : "Shared with the sender. Written, never read back."} />}
      <PickField label="A delivery" value={fields.does} onChange={set("does")} options={[["start", "starts a run"], ["signal", "sends a signal to runs that wait for it"]]} />
      {starts ? <WorkflowField value={fields.workflow} onChange={set("workflow")} /> : (
        <div className="operate-pair"><TextField label="Signal" value={fields.signal} onChange={set("signal")} /><TextField label="Only runs that wait for" mono value={fields.signalKey} onChange={set("signalKey")} wrong={wrongValue(fields.signalKey)} placeholder="$.body.order" /></div>
      )}
      <AreaField label={starts ? "Input" : "Data"} value={fields.input} onChange={set("input")} wrong={wrongValue(fields.input)} placeholder={'{"order": "$.body.order"}'} hint="A mapping or one path. Left empty: the whole body." />
      <div className="operate-pair">
        <TextField label="Counts once by" mono value={fields.key} onChange={set("key")} wrong={wrongValue(fields.key)} placeholder="$.body.id" />
        <TextField label="Only when" mono value={fields.when} onChange={set("when")} wrong={wrongValue(fields.when)} placeholder="body.amount > 0" />
      </div>
      {starts && (
        <>
          <div className="operate-pair">
            <TextField label="About: type" value={fields.type} onChange={set("type")} placeholder="lead" />
            <TextField label="About: id" mono value={fields.id} onChange={set("id")} wrong={wrongValue(fields.id)} placeholder="$.body.customer" />
          </div>
          {fields.type !== "" && <TextField label="About: name" mono value={fields.name} onChange={set("name")} wrong={wrongValue(fields.name)} placeholder="$.body.name" />}
          <PickField label="The sender is answered" value={fields.respond} onChange={set("respond")} options={[["accepted", "at once"], ["result", "with the result of the run, for up to 30 s"]]} />
        </>
      )}
    </SaveDialog>
  );
}
