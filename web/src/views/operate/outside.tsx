// Other systems: what could not be delivered, hooks that come in, subscriptions that go out, each with its deliveries.
import { useState } from "react";
import { Link } from "wouter";
import { base } from "@/api/base";
import { api, given } from "@/api/client";
import type { components } from "@/api/schema";
import { useMay } from "@/api/session";
import { Dialog } from "@/ui/dialog";
import { Listing } from "@/ui/listing";
import { Button, Copy, State, Time } from "@/ui/parts";
import { HookForm, type Hook } from "./hook-form";
import { ReplayForm, SubscriptionForm, type Subscription } from "./subscription-form";

type Letter = components["schemas"]["DeadLetter"];
type Delivery = components["schemas"]["DeliveryView"];
type Sent = components["schemas"]["SentView"];

const page = (cursor: string | null) => (cursor === null ? {} : { cursor });
const readLetters = (cursor: string | null) => given(api.GET("/api/v1/dead-letters", { params: { query: page(cursor) } as never })) as Promise<{ items: Letter[]; next: string | null }>;
const ALL = { params: { query: { limit: 1_000 } } };
const readHooks = () => given(api.GET("/api/v1/hooks", ALL)) as Promise<{ items: Hook[] }>;
const readSubscriptions = () => given(api.GET("/api/v1/subscriptions", ALL)) as Promise<{ items: Subscription[] }>;

export function DeadLetters() {
  const mayAct = useMay("operator");
  return (
    <Listing
      what="dead letters"
      read={readLetters}
      everyMs={10_000}
      id={(row) => String(row.id)}
      empty="Nothing was left undelivered."
      columns={[
        { head: "What", cell: (row) => <b>{row.what ?? "effect"}</b> },
        { head: "Run", cell: (row) => <Link className="link mono" href={`/runs/${encodeURIComponent(row.run)}${row.visit == null ? "" : `?visit=${row.visit}`}`}>{row.run.slice(-12)}</Link> },
        { head: "Why", width: "44%", cell: (row) => <span title={row.reason ?? ""}>{row.reason ?? "–"}</span> },
      ]}
      acts={
        mayAct
          ? [
              { name: "Send again", act: (row) => api.POST("/api/v1/dead-letters/{id}/requeue", { params: { path: { id: String(row.id) } } } as never) },
              { name: "Drop", danger: true, sure: () => "Drop this letter for good? What it asked for is never done.", act: (row) => api.DELETE("/api/v1/dead-letters/{id}", { params: { path: { id: String(row.id) } } } as never) },
            ]
          : []
      }
    />
  );
}

/** A path of the service as an address that can be given away. */
const addressOf = (path: string): string => new URL(`${base.replace(/\/$/, "")}${path}`, location.origin).href;

export function Hooks() {
  const [open, setOpen] = useState<string | null>(null);
  const [editing, setEditing] = useState<Hook | "new" | null>(null);
  const [turn, setTurn] = useState(0);
  return (
    <>
      <div className="operate-head"><p className="grow">A hook is an address of this service. What other systems deliver there starts a run or sends a signal.</p><Button kind="primary" icon="plus" onClick={() => setEditing("new")}>New hook</Button></div>
      <Listing
        what="hooks"
        read={readHooks}
        turn={turn}
        id={(row) => row.slug}
        empty="No hook."
        columns={[
          { head: "Hook", cell: (row) => <b>{row.slug}</b> },
          { head: "Address", width: "36%", cell: (row) => <Copy text={addressOf(row.url)} shown={row.url} label="the address" /> },
          { head: "Signed as", cell: (row) => row.source },
          { head: "Does", cell: (row) => (row.workflow == null ? `sends ${(row.signal as { name?: string } | null)?.name ?? "a signal"}` : `starts ${row.workflow}`) },
        ]}
        acts={[
          { name: "Deliveries", act: async (row) => setOpen(row.slug) },
          { name: "Edit", act: async (row) => setEditing(row) },
          { name: "Delete", danger: true, sure: (row) => `Delete the hook ${row.slug}? Its address answers 404 from then on.`, act: (row) => api.DELETE("/api/v1/hooks/{slug}", { params: { path: { slug: row.slug } } }) },
        ]}
      />
      {open !== null && <Deliveries slug={open} onClose={() => setOpen(null)} />}
      {editing !== null && <HookForm row={editing === "new" ? null : editing} onClose={() => { setEditing(null); setTurn((before) => before + 1); }} />}
    </>
  );
}

function Deliveries({ slug, onClose }: { slug: string; onClose: () => void }) {
  const [read] = useState(() => (cursor: string | null) => given(api.GET("/api/v1/hooks/{slug}/deliveries", { params: { path: { slug }, query: page(cursor) } } as never)) as Promise<{ items: Delivery[]; next: string | null }>);
  return (
    <Dialog title={`Deliveries to ${slug}`} onClose={onClose} wide>
      <Listing
        what="deliveries"
        read={read}
        id={(row) => String(row.id)}
        empty="Nothing was delivered yet."
        columns={[
          { head: "At", cell: (row) => <Time at={row.at} /> },
          { head: "Outcome", width: "44%", cell: (row) => <Outcome row={row} /> },
          { head: "Size", num: true, cell: (row) => `${row.size} B` },
        ]}
        acts={[{ name: "Replay", shown: (row) => (row.outcome as Taken | null)?.status !== 401, act: (row) => api.POST("/api/v1/hooks/{slug}/deliveries/{id}/replay", { params: { path: { slug, id: String(row.id) } } } as never) }]}
      />
    </Dialog>
  );
}

const RESULTS: Record<string, string> = { started: "started", signalled: "signalled", seen: "seen before", not_wanted: "not wanted", signature: "signature refused" };

interface Taken {
  result?: string;
  status?: number;
  code?: string | null;
  detail?: string | null;
  run?: string | null;
  runs?: readonly string[] | null;
}

/** What became of a delivery: the run it started, or why it was refused. */
function Outcome({ row }: { row: Delivery }) {
  const taken = (row.outcome ?? null) as Taken | null;
  const again = row.replay_of == null ? "" : ` · again, of ${row.replay_of}`;
  if (taken?.result === "not_wanted") return <State look={{ tone: "idle", word: `not wanted${again}`, glyph: "idle" }} />;
  if (taken === null) return <State look={{ tone: "wait", word: `unfinished${again}`, glyph: "wait" }} />;
  if ((taken.status ?? 200) >= 400) return <span title={taken.detail ?? ""}><State look={{ tone: "fail", word: `${taken.status} ${taken.detail ?? taken.code ?? ""}${again}`, glyph: "fail" }} /></span>;
  const runs = taken.run == null ? (taken.runs ?? []) : [taken.run];
  return (
    <span className="row">
      <State look={{ tone: "done", word: `${RESULTS[taken.result ?? ""] ?? taken.result ?? "accepted"}${again}`, glyph: "done" }} />
      {runs.slice(0, 3).map((run) => <Link key={run} className="link mono" href={`/runs/${encodeURIComponent(run)}`}>{run.slice(-12)}</Link>)}
    </span>
  );
}

export function Subscriptions() {
  const [open, setOpen] = useState<string | null>(null);
  const [editing, setEditing] = useState<Subscription | "new" | null>(null);
  const [replaying, setReplaying] = useState<string | null>(null);
  const [turn, setTurn] = useState(0);
  const again = () => setTurn((before) => before + 1);
  return (
    <>
      <div className="operate-head"><p className="grow">A subscription sends events of runs to an address of another system, signed, in order, until they are accepted.</p><Button kind="primary" icon="plus" onClick={() => setEditing("new")}>New subscription</Button></div>
      <Listing
        what="subscriptions"
        read={readSubscriptions}
        turn={turn}
        everyMs={10_000}
        id={(row) => row.name}
        empty="No subscription."
        columns={[
          { head: "Subscription", cell: (row) => <b>{row.name}</b> },
          { head: "Address", width: "30%", cell: (row) => <span className="mono" title={row.url}>{row.url}</span> },
          { head: "Events", cell: (row) => row.types.join(", ") },
          { head: "State", cell: (row) => <Health row={row} /> },
        ]}
        acts={[
          { name: "Deliveries", act: async (row) => setOpen(row.name) },
          { name: "Replay…", act: async (row) => setReplaying(row.name) },
          { name: "Edit", act: async (row) => setEditing(row) },
          { name: "Delete", danger: true, sure: (row) => `Delete the subscription ${row.name}? What was not sent yet is never sent.`, act: (row) => api.DELETE("/api/v1/subscriptions/{name}", { params: { path: { name: row.name } } }) },
        ]}
      />
      {open !== null && <SentTo name={open} onClose={() => setOpen(null)} />}
      {editing !== null && <SubscriptionForm row={editing === "new" ? null : editing} onClose={() => { setEditing(null); again(); }} />}
      {replaying !== null && <ReplayForm name={replaying} onClose={() => { setReplaying(null); again(); }} />}
    </>
  );
}

function Health({ row }: { row: Subscription }) {
  if (row.paused != null) return <span title={row.error ?? ""}><State look={{ tone: "stop", word: "paused", glyph: "pause" }} /></span>;
  if (row.failing_since != null) return <span title={row.error ?? ""}><State look={{ tone: "fail", word: "failing", glyph: "fail" }} /> <Time at={row.failing_since} as="relative" /></span>;
  return <State look={{ tone: "done", word: "delivering", glyph: "done" }} />;
}

function SentTo({ name, onClose }: { name: string; onClose: () => void }) {
  const [read] = useState(() => (cursor: string | null) => given(api.GET("/api/v1/subscriptions/{name}/deliveries", { params: { path: { name }, query: page(cursor) } } as never)) as Promise<{ items: Sent[]; next: string | null }>);
  return (
    <Dialog title={`Sent to ${name}`} onClose={onClose} wide>
      <Listing
        what="deliveries"
        read={read}
        id={(row) => String(row.id)}
        empty="Nothing was sent yet."
        columns={[
          { head: "At", cell: (row) => <Time at={row.at} /> },
          { head: "Event", cell: (row) => row.type ?? "–" },
          { head: "Result", cell: (row) => row.result },
          { head: "Run", cell: (row) => (row.run == null ? "–" : <Link className="link mono" href={`/runs/${encodeURIComponent(row.run)}`}>{row.run.slice(-12)}</Link>) },
          { head: "Detail", width: "30%", cell: (row) => <span title={row.detail ?? ""}>{row.detail ?? ""}</span> },
        ]}
        acts={[{ name: "Replay from here", shown: (row) => row.position != null, sure: () => "Send this event again, and all that came after it? The receiver knows a repetition by its message id.", act: (row) => api.POST("/api/v1/subscriptions/{name}/replay", { params: { path: { name } }, body: { from: row.position } as never }) }]}
      />
    </Dialog>
  );
}
