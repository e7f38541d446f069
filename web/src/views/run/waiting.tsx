// The waiting line: one sentence for each token that waits, gathered where several wait for the same. Each selects it.
import { lazy, useRef } from "react";
import { api, given } from "@/api/client";
import type { components } from "@/api/schema";
import type { RunState } from "@/model/fold";
import { queuedWords, type Queued } from "@/model/queue";
import { visitLook } from "@/model/states";
import { duration, instant, soon } from "@/model/time";
import { useAsk } from "@/ui/ask";
import { useNow } from "@/ui/parts";
import { Glyph } from "@/ui/icon";
import { Later } from "@/ui/later";
import { useRunPage, useSeen } from "./context";

const loadMore = () => import("./waiting-more");
const WaitingMore = lazy(loadMore);

const LINE_MS = 5_000; // places in the line have no events of their own

type Wait = components["schemas"]["WaitView"];

export interface Sentence {
  readonly key: string;
  readonly tone: ReturnType<typeof visitLook>;
  readonly words: string;
  readonly visits: readonly number[];
  readonly title: string;
}

/** `quorum needs 13 more of 36`. */
function joinWords(ends: Wait["ends_by"][number] | undefined): string | null {
  const counted = /^(\d+) of (\d+) branches/.exec(ends?.words ?? "");
  return counted === null || ends?.join == null ? null : `${ends.join.replace(/^\d+:/, "")} needs ${Number(counted[2]) - Number(counted[1])} more of ${counted[2]}`;
}

function wordsOf(wait: Wait, count: number, now: number, again: boolean): string {
  const what = count > 1 ? `${count} × ${wait.node}` : wait.visit === 0 ? "the run" : wait.node;
  const ends = wait.ends_by[0];
  const title = (wait.detail as { title?: unknown } | null)?.title;
  if (wait.visit === 0 && typeof title === "string") return `${title} since ${soon(wait.since, now)}`;
  const who = ends?.by === "answer" && ends.who != null ? String(Array.isArray(ends.who) ? ends.who.join(", ") : typeof ends.who === "string" ? ends.who : JSON.stringify(ends.who)) : null;
  if (wait.for === "human") return `${what} on ${who ?? "anybody"} since ${soon(wait.since, now)}`;
  if (wait.for === "siblings" && joinWords(ends) !== null) return joinWords(ends) as string;
  if (wait.for === "siblings") return ends?.words !== undefined ? `${what}: ${ends.words}` : `${what} for siblings`;
  if (again && wait.until != null) return `${what} tries again ${instant(wait.until, now)}`;
  if (wait.until !== null && wait.until !== undefined) return `${what} until ${soon(wait.until, now)}`;
  if (wait.for === "queue") return `${what} in ${ends?.queue ?? "a queue"} for ${duration(now - wait.since)}`;
  return `${what}: ${ends?.words ?? wait.for}`;
}

const backsOff = (wait: Wait, state: RunState): boolean => wait.for === "timer" && (state.visits.get(wait.visit)?.error ?? null) !== null;

/** Waits of the same node for the same thing make one sentence. People first, then what is due, then the rest. */
export function sentencesOf(waits: readonly Wait[], now: number, state: RunState): Sentence[] {
  const groups = new Map<string, Wait[]>();
  for (const wait of waits) {
    const key = `${wait.node} ${wait.for}`;
    groups.set(key, [...(groups.get(key) ?? []), wait]);
  }
  const order = (wait: Wait) => (wait.visit === 0 ? -1 : wait.for === "human" ? 0 : wait.for === "queue" ? 3 : wait.for === "siblings" ? 2 : 1);
  return [...groups].sort(([, a], [, b]) => order(a[0] as Wait) - order(b[0] as Wait)).map(([key, list]) => {
    const wait = list[0] as Wait;
    return {
      key, tone: visitLook("waiting", backsOff(wait, state) ? "backoff" : wait.for), words: wordsOf(wait, list.length, now, backsOff(wait, state)), visits: list.map((one) => one.visit),
      title: wait.ends_by.map((one) => one.words).join("; or "),
    };
  });
}

const overBudget = (part: string): Sentence => ({
  key: "budget", tone: visitLook("waiting", "human"), words: `the run is over its budget (${part.replace("elapsed_ms", "time")}): somebody raises it or aborts the run`, visits: [], title: "",
});

export function Waiting() {
  const { select } = useRunPage();
  const { detail, cursor, state } = useSeen();
  const now = useNow(5_000);
  if (detail !== null && cursor === null && detail.status === "queued") return <InLine workflow={detail.workflow} />;
  const spent = detail?.budget?.exceeded ?? null;
  if (detail === null || cursor !== null || (detail.waiting.length === 0 && spent === null)) return null;
  const sentences = [...(spent === null || detail.waiting.some((wait) => wait.visit === 0) ? [] : [overBudget(spent)]), ...sentencesOf(detail.waiting, now, state)];
  const shown = sentences.slice(0, 3);
  const rest = sentences.slice(3);
  const more = `+${rest.length + detail.waiting_more}`;
  const choose = (sentence: Sentence) => {
    const visit = sentence.visits[0] ?? 0;
    if (visit !== 0) select({ node: null, visit, group: null });
  };
  return (
    <section className="run-waiting" aria-label="Waiting">
      <b>Waiting</b>
      {shown.map((one) => <Item key={one.key} sentence={one} onChoose={() => choose(one)} />)}
      {(rest.length > 0 || detail.waiting_more > 0) && (
        <Later className="link t2" opens="dialog" face={more} load={loadMore}>
          <WaitingMore face={more} hidden={detail.waiting_more}>{rest.map((one) => <Item key={one.key} sentence={one} onChoose={() => choose(one)} />)}</WaitingMore>
        </Later>
      )}
    </section>
  );
}

/** Why a queued run has not started, and its place in the line. */
function InLine({ workflow }: { workflow: string }) {
  const { store } = useRunPage();
  const now = useNow(1_000);
  const asked = useAsk(`${workflow} ${Math.floor(now / LINE_MS)}`, () => given(api.GET("/api/v1/workflows/{name}/queue", { params: { path: { name: workflow }, query: { limit: 1_000 } } })));
  const kept = useRef<Queued | undefined>(undefined);
  kept.current = asked.data === undefined ? kept.current : (asked.data.items.find((one) => one.run === store.run) as Queued | undefined);
  return (
    <section className="run-waiting" aria-label="Waiting" data-tone="queued">
      <b>Queued</b>
      <span className="row row-4"><span className="tone"><Glyph name="queued" small /></span><span className="clip">{kept.current === undefined ? "it waits for its start" : queuedWords(kept.current, now)}</span></span>
      {kept.current !== undefined && <span className="c2">since {soon(kept.current.since, now)}{kept.current.priority === 0 ? "" : ` · priority ${kept.current.priority}`}</span>}
    </section>
  );
}

function Item({ sentence, onChoose }: { sentence: Sentence; onChoose: () => void }) {
  return (
    <button type="button" className="run-wait" data-tone={sentence.tone.tone} onClick={onChoose} title={sentence.title}>
      <span className="tone"><Glyph name={sentence.tone.glyph} small /></span>
      <span className="clip">{sentence.words}</span>
    </button>
  );
}
