// The workflows that are deployed: their runs by state, and the way into the editor.
import { useState } from "react";
import { Link } from "wouter";
import { api, given } from "@/api/client";
import type { components } from "@/api/schema";
import { useMay } from "@/api/session";
import { runLook } from "@/model/states";
import { Listing } from "@/ui/listing";
import { Page, State, Time } from "@/ui/parts";
import { FirstMinute } from "@/views/runs/first";
import { StartRun } from "@/views/runs/start";
import "@/views/operate/operate.css";

type Row = components["schemas"]["WorkflowRow"];
const read = (cursor: string | null) => given(api.GET("/api/v1/workflows", { params: { query: cursor === null ? {} : { cursor } } })) as Promise<{ items: Row[]; next: string | null }>;

export default function Workflows() {
  const [starting, setStarting] = useState<string | null>(null);
  const mayWrite = useMay("author");
  const mayRun = useMay("operator");
  return (
    <Page title="Workflows" className="operate scroll" actions={mayWrite && <Link className="btn btn-primary" href="/workflows/new">New workflow</Link>}>
      <Listing
        what="workflows"
        read={read}
        id={(row) => row.workflow}
        empty={mayWrite ? <FirstMinute title="No workflow is deployed yet" /> : "No workflow is deployed yet."}
        columns={[
          { head: "Workflow", width: "30%", cell: (row) => <Link className="link b" href={`/workflows/${encodeURIComponent(row.workflow)}`}>{row.workflow}</Link> },
          { head: "Version", cell: (row) => `v${row.version}` },
          { head: "Deployed", cell: (row) => (row.deployed === null ? "–" : <Time at={row.deployed} as="relative" />) },
          { head: "Runs", width: "40%", cell: (row) => <Counts row={row} /> },
        ]}
        {...(mayRun ? { acts: [{ name: "Start", act: async (row: Row) => setStarting(row.workflow) }] } : {})}
      />
      {starting !== null && <StartRun workflow={starting} onClose={() => setStarting(null)} />}
    </Page>
  );
}

function Counts({ row }: { row: Row }) {
  const counts = Object.entries(row.runs).filter(([, count]) => count > 0);
  if (counts.length === 0) return <span className="c2">none yet</span>;
  return (
    <span className="row">
      {counts.map(([status, count]) => {
        const look = runLook(status);
        return <Link key={status} href={`/runs?workflow=${encodeURIComponent(row.workflow)}&status=${status}`}><State look={{ ...look, word: `${count.toLocaleString()} ${look.word}` }} /></Link>;
      })}
    </span>
  );
}

