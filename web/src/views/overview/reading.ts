// What the overview reads: a handful of lists, at once, and again when something happened, at most every five seconds.
import { useEffect } from "react";
import { api, given } from "@/api/client";
import { follow } from "@/api/live";
import type { components } from "@/api/schema";
import { LIVE, type RunItem } from "@/model/run-filter";
import { useAsk, type Asked } from "@/ui/ask";

type Schemas = components["schemas"];
export interface GateCount {
  readonly workflow: string;
  readonly node: string;
  readonly count: number;
  readonly overdue?: number;
}

export interface Overview {
  readonly at: number;
  readonly live: readonly RunItem[];
  readonly liveMore: boolean;
  /** Runs that started within a day. */
  readonly recent: readonly RunItem[];
  readonly recentMore: boolean;
  readonly gates: readonly GateCount[];
  readonly queues: readonly Schemas["QueueItem"][];
  readonly nodes: readonly Schemas["NodeRow"][];
  readonly schedules: readonly Schemas["ScheduleRow"][];
  readonly letters: readonly Schemas["DeadLetter"][];
  readonly workflows: number;
}

const DAY = 86_400_000;
const PAUSE_MS = 5_000;
const ALL = { params: { query: { limit: 1_000 } } };

async function read(): Promise<Overview> {
  const at = Date.now();
  const runs = (query: object) => given(api.GET("/api/v1/runs", { params: { query: { limit: 1_000, ...query } as never } }));
  const [live, recent, gates, queues, nodes, schedules, letters, workflows] = await Promise.all([
    runs({ status: LIVE }),
    runs({ started_from: at - DAY }),
    given(api.GET("/api/v1/gates", { params: { query: { by: "node" } } })),
    given(api.GET("/api/v1/queues", ALL)),
    given(api.GET("/api/v1/nodes", ALL)),
    given(api.GET("/api/v1/schedules", {})),
    given(api.GET("/api/v1/dead-letters", { params: { query: { limit: 10 } } as never })),
    given(api.GET("/api/v1/workflows", { params: { query: { limit: 1_000 } } })),
  ]);
  return {
    at,
    live: live.items,
    liveMore: live.next !== null,
    recent: recent.items,
    recentMore: recent.next !== null,
    gates: gates.items as unknown as GateCount[],
    queues: (queues as Schemas["QueueList"]).items,
    nodes: (nodes as Schemas["NodeList"]).items,
    schedules: (schedules as Schemas["ScheduleList"]).items,
    letters: (letters as Schemas["DeadLetterList"]).items,
    workflows: workflows.items.length,
  };
}

export function useOverview(): Asked<Overview> {
  const asked = useAsk("overview", read);
  const { again } = asked;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const stop = follow(null, () => {
      timer ??= setTimeout(() => {
        timer = null;
        if (!document.hidden) again();
      }, PAUSE_MS);
    });
    return () => {
      stop();
      if (timer !== null) clearTimeout(timer);
    };
  }, [again]);
  return asked;
}
