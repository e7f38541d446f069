// The picker of a loop's iteration: pins one, and graph, timeline, history and slider follow. The address keeps it.
import { useEffect, useMemo } from "react";
import { loopsOf, type Loop } from "@/model/loops";
import { Button } from "@/ui/parts";
import { Icon } from "@/ui/icon";
import { useRunPage, useSeen } from "../context";
import { useSelection } from "../use-selection";

export function LoopBar() {
  const { store } = useRunPage();
  const { folding, graph, loaded, turn } = useSeen();
  const { query, set } = useSelection();
  const loops = useMemo(() => (graph === null || !loaded ? [] : loopsOf(folding.newest, graph.transitions)), [graph, folding, loaded, turn]);
  const [key, number] = splitPin(query.get("iteration"));
  const loop = loops.find((one) => one.key === key) ?? loops[0];
  const pinned = loop !== undefined && key === loop.key && number <= loop.iterations.length ? number : null;
  const span = pinned === null ? null : (loop?.iterations[pinned - 1] ?? null);
  useEffect(() => {
    if (loop !== undefined) store.pin(span);
  }, [store, loop === undefined, span?.from, span?.to]);
  if (loop === undefined) return null;
  const go = (to: Loop, next: number | null) => set({ iteration: next === null ? null : `${to.key}~${next}` });
  const count = loop.iterations.length;
  return (
    <div className="run-loop float" role="group" aria-label="Iteration">
      <Icon name="loop" size={14} />
      {loops.length === 1 ? <span className="clip">{loop.node}{loop.branch}</span> : (
        <select className="select input-sm" aria-label="Loop" value={loop.key} onChange={(event) => go(loops.find((one) => one.key === event.target.value) as Loop, 1)}>
          {loops.slice(0, 200).map((one) => <option key={one.key} value={one.key}>{one.node}{one.branch}</option>)}
        </select>
      )}
      <Button kind="ghost" size="sm" icon="left" aria-label="Previous iteration" disabled={pinned === 1} onClick={() => go(loop, pinned === null ? count : pinned - 1)} />
      <span className="t1 nowrap" role="status">{pinned === null ? `all ${count} iterations` : `iteration ${pinned} of ${count}`}</span>
      <Button kind="ghost" size="sm" icon="right" aria-label="Next iteration" disabled={pinned === count} onClick={() => go(loop, pinned === null ? 1 : pinned + 1)} />
      {pinned !== null && <Button kind="ghost" size="sm" onClick={() => go(loop, null)}>All</Button>}
    </div>
  );
}

function splitPin(text: string | null): [key: string, number: number] {
  const found = /^(.*)~(\d+)$/.exec(text ?? "");
  return found === null ? ["", 0] : [found[1] as string, Number(found[2])];
}
