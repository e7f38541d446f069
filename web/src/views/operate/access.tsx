// Who may come in: keys (shown once), secrets (written, never read), and the audit of what was done.
import { useState } from "react";
import { Link } from "wouter";
import { api, given } from "@/api/client";
import { aboutOf, actionWords, outcomeWords } from "@/model/audit-words";
import type { components } from "@/api/schema";
import { useAsk } from "@/ui/ask";
import { Dialog } from "@/ui/dialog";
import { Listing } from "@/ui/listing";
import { Button, Copy, State, Time, Trouble } from "@/ui/parts";
import { listGiven } from "@/model/given";
import { PickField, SaveDialog, TextField } from "./fields";

type Key = components["schemas"]["KeyView"];
type Secret = components["schemas"]["SecretView"];
type Entry = components["schemas"]["AuditEntry"];

const ROLES = [
  ["viewer", "reads everything but keys, secrets and the audit"],
  ["operator", "starts, stops and repairs runs, moves entities"],
  ["author", "deploys workflows, makes hooks and subscriptions"],
  ["approver", "answers gates"],
  ["worker", "takes work from queues, and nothing else"],
  ["admin", "everything"],
] as const;
const LIVES = [["", "never"], ["86400000", "in a day"], ["2592000000", "in 30 days"], ["7776000000", "in 90 days"], ["31536000000", "in a year"]] as const;
const page = (cursor: string | null) => ({ params: { query: cursor === null ? {} : { cursor } } }) as never;
const readKeys = (cursor: string | null) => given(api.GET("/api/v1/keys", page(cursor))) as Promise<{ items: Key[]; next: string | null }>;
const readSecrets = (cursor: string | null) => given(api.GET("/api/v1/secrets", page(cursor))) as Promise<{ items: Secret[]; next: string | null }>;
const readAudit = (cursor: string | null) => given(api.GET("/api/v1/audit", page(cursor))) as Promise<{ items: Entry[]; next: string | null }>;

export function Keys() {
  const [turn, setTurn] = useState(0);
  const [making, setMaking] = useState(false);
  return (
    <>
      <div className="operate-head"><p className="grow">A key lets a program or a person in. It is shown once, when it is made.</p><Button kind="primary" icon="plus" onClick={() => setMaking(true)}>New key</Button></div>
      <Listing
        what="keys"
        read={readKeys}
        turn={turn}
        id={(row) => row.id}
        empty="No key."
        columns={[
          { head: "Name", cell: (row) => <b>{row.name}</b> },
          { head: "Person", cell: (row) => row.user },
          { head: "Roles", cell: (row) => row.roles.join(", ") },
          { head: "Workflows", cell: (row) => row.workflows?.join(", ") ?? "all" },
          { head: "Last used", cell: (row) => (row.last_used === null ? "never" : <Time at={row.last_used} as="relative" />) },
          { head: "Expires", cell: (row) => (row.expires === null ? "never" : <Time at={row.expires} />) },
        ]}
        acts={[{ name: "Revoke", danger: true, sure: (row) => `Revoke ${row.name}? It is refused within five seconds, everywhere.`, act: (row) => api.DELETE("/api/v1/keys/{id}", { params: { path: { id: row.id } } }) }]}
      />
      {making && <NewKey onClose={() => { setMaking(false); setTurn((before) => before + 1); }} />}
    </>
  );
}

function NewKey({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [user, setUser] = useState("");
  const [roles, setRoles] = useState<readonly string[]>(["viewer"]);
  const [groups, setGroups] = useState("");
  const [workflows, setWorkflows] = useState("");
  const [lives, setLives] = useState("");
  const [made, setMade] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const make = async () => {
    setError(null);
    try {
      const patterns = listGiven(workflows);
      const body = { name, roles, groups: listGiven(groups), ...(user === "" ? {} : { user }), ...(patterns.length === 0 ? {} : { workflows: patterns }), ...(lives === "" ? {} : { expires: Date.now() + Number(lives) }) };
      setMade((await given(api.POST("/api/v1/keys", { body: body as never }))).key);
    } catch (problem) {
      setError(problem);
    }
  };
  if (made !== null) {
    return (
      <Dialog title={`The key of ${name}`} onClose={onClose} foot={<Button kind="primary" onClick={onClose}>Done</Button>}>
        <p>Copy it now: it is not shown again.</p>
        <div className="operate-shown"><Copy text={made} label="the key" /></div>
      </Dialog>
    );
  }
  return (
    <Dialog title="New key" onClose={onClose} foot={<Button kind="primary" disabled={name.trim() === "" || roles.length === 0} onClick={() => void make()}>Make the key</Button>}>
      {error !== null && <Trouble error={error} />}
      <TextField label="Name" value={name} onChange={setName} focus />
      <TextField label="Person" value={user} onChange={setUser} hint="Whom gates see. Without one: the name of the key." />
      <fieldset className="field"><legend className="label">Roles</legend>{ROLES.map(([role, about]) => <label key={role} className="row"><input type="checkbox" className="check" checked={roles.includes(role)} onChange={() => setRoles(roles.includes(role) ? roles.filter((one) => one !== role) : [...roles, role])} />{role}<span className="c2 t1">{about}</span></label>)}</fieldset>
      <TextField label="Groups" value={groups} onChange={setGroups} placeholder="none" hint="Gates may be asked of a group." />
      <TextField label="Workflows" mono value={workflows} onChange={setWorkflows} placeholder="all" hint="Patterns of names: orders/*" />
      <PickField label="Expires" value={lives} onChange={setLives} options={LIVES} />
    </Dialog>
  );
}

export function Secrets() {
  const [turn, setTurn] = useState(0);
  const [making, setMaking] = useState<Secret | "new" | null>(null);
  return (
    <>
      <div className="operate-head"><p className="grow">A secret is written here and never read back; steps use it by its name.</p><Button kind="primary" icon="plus" onClick={() => setMaking("new")}>New secret</Button></div>
      <Listing
        what="secrets"
        read={readSecrets}
        turn={turn}
        id={(row) => row.name}
        empty="No secret."
        columns={[
          { head: "Name", cell: (row) => <b className="mono">{row.name}</b> },
          { head: "May go to", cell: (row) => row.hosts?.join(", ") ?? "anywhere" },
          { head: "Last used", cell: (row) => (row.last_used === null ? "never" : <Time at={row.last_used} as="relative" />) },
          { head: "Changed", cell: (row) => <Time at={row.changed} as="relative" /> },
        ]}
        acts={[{ name: "Write anew", act: async (row) => setMaking(row) }, { name: "Delete", danger: true, sure: (row) => `Delete the secret ${row.name}? Steps that use it fail from then on.`, act: (row) => api.DELETE("/api/v1/secrets/{name}", { params: { path: { name: row.name } } }) }]}
      />
      {making !== null && <NewSecret row={making === "new" ? null : making} onClose={() => { setMaking(null); setTurn((before) => before + 1); }} />}
    </>
  );
}

function NewSecret({ row, onClose }: { row: Secret | null; onClose: () => void }) {
  const [name, setName] = useState(row?.name ?? "");
  const [value, setValue] = useState("");
  const [hosts, setHosts] = useState(row?.hosts?.join(", ") ?? "");
  const keep = () => {
    const named = listGiven(hosts);
    return api.PUT("/api/v1/secrets/{name}", { params: { path: { name } }, body: { value, hosts: named.length === 0 ? null : named } });
  };
  return (
    <SaveDialog title={row === null ? "New secret" : `Secret ${row.name}`} act="Keep it" disabled={name === "" || value === ""} save={keep} onClose={onClose}>
      <TextField label="Name" mono value={name} onChange={setName} fixed={row !== null} focus={row === null} />
      <TextField label="Value" secret value={value} onChange={setValue} focus={row !== null} hint={row === null ? "Written, never read back." : "The value it has is never shown: to change its hosts, write the value again."} />
      <TextField label="Hosts it may go to" value={hosts} onChange={setHosts} placeholder="api.example.com" hint="Without any it may go anywhere." />
    </SaveDialog>
  );
}

/** What an entry was about, out of its path: a run leads to its page. */
function About({ row }: { row: { action: string; path: string; about: string | null } }) {
  const { run, rest } = aboutOf(row);
  return <>{run !== null && <Link className="link mono" href={`/runs/${encodeURIComponent(run)}`}>{run.slice(-12)}</Link>}{run !== null && rest !== "" && " · "}{rest}</>;
}

export function Audit() {
  const verdict = useAsk("verify", () => given(api.GET("/api/v1/audit/verify")));
  return (
    <>
      <div className="operate-head">
        <p className="grow">Every write, refusal, sign-in and key. Entries are chained, so that none can be changed or taken away unnoticed.</p>
        {verdict.data !== undefined && <State look={verdict.data.ok ? { tone: "done", word: `${verdict.data.checked === 1 ? "1 entry holds" : `${verdict.data.checked.toLocaleString()} entries hold`}`, glyph: "done" } : { tone: "fail", word: verdict.data.problems.join("; "), glyph: "fail" }} />}
      </div>
      <Listing
        what="the audit"
        read={readAudit}
        id={(row) => String(row.id)}
        empty="Nothing was done yet."
        columns={[
          { head: "At", width: "190px", cell: (row) => <Time at={row.at} /> },
          { head: "Who", cell: (row) => row.user || row.name || row.who || "–" },
          { head: "What", width: "30%", cell: (row) => <span title={`${row.action}\n${row.path}`}>{actionWords(row.action)}</span> },
          { head: "About", width: "18%", cell: (row) => <About row={row} /> },
          { head: "Outcome", width: "20%", cell: (row) => <span title={`${row.status} ${row.code ?? ""}`.trim()}><State look={{ tone: row.status < 400 ? "done" : "fail", word: outcomeWords(row.status, row.code, row.about), glyph: row.status < 400 ? "done" : "fail" }} /></span> },
          { head: "From", cell: (row) => row.address },
        ]}
      />
    </>
  );
}
