// Schedules with their next times, queues with those who serve them, nodes with their shards.
import { useState } from "react";
import { Link } from "wouter";
import { api, given } from "@/api/client";
import type { components } from "@/api/schema";
import { useMay } from "@/api/session";
import { duration } from "@/model/time";
import { Glyph } from "@/ui/icon";
import { Listing } from "@/ui/listing";
import { Button, State, Time } from "@/ui/parts";
import { Ahead, ScheduleForm, type Schedule } from "./schedule-form";

type Queue = components["schemas"]["QueueItem"];
type Node = components["schemas"]["NodeRow"];

const readSchedules = (cursor: string | null) => given(api.GET("/api/v1/schedules", { params: { query: cursor === null ? {} : { cursor } } as never })) as Promise<{ items: Schedule[]; next: string | null }>;
const ALL = { params: { query: { limit: 1_000 } } };
const readQueues = () => given(api.GET("/api/v1/queues", ALL)) as Promise<{ items: Queue[]; next: string | null }>;
const readNodes = () => given(api.GET("/api/v1/nodes", ALL)) as Promise<{ items: Node[]; next: string | null }>;

export function Schedules() {
  const mayAct = useMay("operator");
  const path = (row: Schedule) => ({ params: { path: { schedule: row.name } } });
  const [editing, setEditing] = useState<Schedule | "new" | null>(null);
  const [ahead, setAhead] = useState<Schedule | null>(null);
  const [turn, setTurn] = useState(0);
  return (
    <>
      <div className="operate-head"><p className="grow">A schedule starts runs of a workflow at times of the clock, or every so often.</p>{mayAct && <Button kind="primary" icon="plus" onClick={() => setEditing("new")}>New schedule</Button>}</div>
      <Listing
        what="schedules"
        read={readSchedules}
        turn={turn}
        everyMs={10_000}
        id={(row) => row.name}
        empty="No schedule."
        columns={[
          { head: "Schedule", cell: (row) => <button type="button" className="link b" onClick={() => setAhead(row)}>{row.name}</button> },
          { head: "Workflow", cell: (row) => <Link className="link" href={`/runs?workflow=${encodeURIComponent(row.workflow)}`}>{row.workflow}</Link> },
          { head: "When", cell: (row) => <span className="mono">{row.cron ?? (row.every_ms === null ? "" : `every ${duration(row.every_ms)}`)}</span> },
          { head: "Zone", cell: (row) => row.timezone },
          { head: "Next", width: "26%", cell: (row) => (row.paused ? <State look={{ tone: "stop", word: "paused", glyph: "pause" }} /> : row.next === null ? "–" : <span><Time at={row.next} as="short" /> <span className="c2">(<Time at={row.next} as="relative" />)</span></span>) },
        ]}
        acts={
          mayAct
            ? [
                { name: "Edit", act: async (row) => setEditing(row) },
                { name: "Fire now", act: (row) => api.POST("/api/v1/schedules/{schedule}/fire", path(row)) },
                { name: (row) => (row.paused ? "Resume" : "Pause"), act: (row) => (row.paused ? api.POST("/api/v1/schedules/{schedule}/resume", path(row)) : api.POST("/api/v1/schedules/{schedule}/pause", path(row))) },
                { name: "Delete", danger: true, sure: (row) => `Delete the schedule ${row.name}? Runs that it started go on.`, act: (row) => api.DELETE("/api/v1/schedules/{schedule}", path(row)) },
              ]
            : []
        }
      />
      {editing !== null && <ScheduleForm row={editing === "new" ? null : editing} onClose={() => { setEditing(null); setTurn((before) => before + 1); }} />}
      {ahead !== null && <Ahead row={ahead} onClose={() => setAhead(null)} />}
    </>
  );
}

export function Queues() {
  return (
    <Listing
      what="queues"
      read={readQueues}
      everyMs={5_000}
      id={(row) => row.queue}
      empty="No queue has work, rules or workers."
      columns={[
        { head: "Queue", cell: (row) => <b>{row.queue}</b> },
        { head: "Waiting", num: true, cell: (row) => row.waiting.toLocaleString() },
        { head: "Oldest", num: true, cell: (row) => (row.waiting === 0 ? "–" : duration(row.oldest_ms)) },
        { head: "Claimed", num: true, cell: (row) => row.claimed.toLocaleString() },
        { head: "Held back", num: true, cell: (row) => row.held.toLocaleString() },
        { head: "Served by", width: "34%", cell: (row) => <Served row={row} /> },
        { head: "At once", num: true, cell: (row) => row.rules.concurrency ?? "any" },
      ]}
    />
  );
}

function Served({ row }: { row: Queue }) {
  const all = [...row.workers, ...row.outside];
  if (all.length === 0) return <span className="state" data-tone={row.waiting > 0 ? "fail" : "idle"}><Glyph name={row.waiting > 0 ? "fail" : "idle"} />Nobody serves this queue</span>;
  return <span title={all.join(", ")}>{all.join(", ")}</span>;
}

export function Nodes() {
  return (
    <Listing
      what="nodes"
      read={readNodes}
      everyMs={5_000}
      id={(row) => row.owner}
      empty="No node coordinates or executes: nothing moves until one is started (treadle serve, treadle engine)."
      columns={[
        { head: "Node", cell: (row) => <b>{row.node}</b> },
        { head: "Does", width: "18%", cell: (row) => (row.coordinates ? "coordinates and executes" : "executes") },
        { head: "Queues", cell: (row) => (row.queues === null ? "all" : row.queues.join(", ") || "none") },
        { head: "Shards", num: true, cell: (row) => row.shards.length },
        { head: "Requests waiting", num: true, cell: (row) => row.requests },
        { head: "Timers due", num: true, cell: (row) => row.timers_due },
        { head: "Since", cell: (row) => <Time at={row.since} /> },
        { head: "Heard of", cell: (row) => (row.silent_ms === null ? "–" : `${duration(row.silent_ms)} ago`) },
      ]}
    />
  );
}
