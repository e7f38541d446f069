// The lower half: timeline, history and logs by tabs, with what filters them.
import { useState } from "react";
import { useSeen } from "./context";
import { Timeline } from "./timeline/timeline";
import { useTime } from "./use-scale";
import { fetched } from "@/ui/fetched";
import { Icon } from "@/ui/icon";
import { Loading } from "@/ui/parts";

const History = fetched(() => import("./history/history").then((found) => ({ default: found.History })));

export function Lower({ view, onView }: { view: string; onView: (view: string) => void }) {
  const { head } = useSeen();
  const { folding, setFolding } = useTime();
  const [filter, setFilter] = useState("");
  const shown = view === "history" ? "history" : "timeline";
  const tab = (name: string, label: string, count?: number) => (
    <button type="button" className="tab" role="tab" aria-selected={shown === name} onClick={() => onView(name)}>
      {label}
      {count !== undefined && <span className="c2 w4">{count.toLocaleString()}</span>}
    </button>
  );
  return (
    <section className="run-lower">
      <div className="run-lower-head">
        <div className="tabs" role="tablist" aria-label="Views">
          {tab("timeline", "Timeline")}
          {tab("history", "History", head)}
        </div>
        <div className="input-wrap run-filter">
          <Icon name="search" />
          <input className="input input-sm" placeholder={shown === "history" ? "Filter events" : "Filter rows"} aria-label={shown === "history" ? "Filter events" : "Filter rows"} value={filter} onChange={(event) => setFilter(event.target.value)} />
        </div>
        {shown === "timeline" && (
          <>
            <label className="row t1"><input type="checkbox" className="check" checked={folding} onChange={(event) => setFolding(event.target.checked)} /> Fold idle time</label>
            <ul className="run-legend">
              <li><i className="run-sw q" />queue</li>
              <li><i className="run-sw w" />wait</li>
              <li><i className="run-sw r" />run</li>
            </ul>
          </>
        )}
      </div>
      {shown === "history" ? <History filter={filter} meanwhile={<Loading what="the history" />} /> : <Timeline filter={filter} />}
    </section>
  );
}
