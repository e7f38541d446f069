// Views of the list: some that everybody needs, and those a person has saved on this device.
import { useState } from "react";
import { FAILED, LIVE, writeClauses, type Clause } from "@/model/run-filter";
import { Dialog } from "@/ui/dialog";
import { Icon } from "@/ui/icon";
import { Button } from "@/ui/parts";

interface View {
  readonly name: string;
  readonly clauses: readonly Clause[];
}

const DAY = "86400000";
const HOUR = "3600000";
const BUILT_IN: readonly View[] = [
  { name: "All", clauses: [] },
  { name: "Live", clauses: [{ field: "status", not: false, values: LIVE }] },
  { name: "Retrying", clauses: [{ field: "waiting", not: false, values: ["retry"] }] },
  { name: "Stuck over 1 h", clauses: [{ field: "stuck", not: false, values: [HOUR] }] },
  { name: "Failed today", clauses: [{ field: "status", not: false, values: FAILED }, { field: "started", not: false, values: [DAY] }] },
];
const KEY = "treadle.runs.views";

const kept = (): View[] => JSON.parse(localStorage.getItem(KEY) ?? "[]") as View[];

export function Views({ clauses, onChange }: { clauses: readonly Clause[]; onChange: (clauses: readonly Clause[]) => void }) {
  const [saved, setSaved] = useState(kept);
  const [naming, setNaming] = useState<string | null>(null);
  const here = writeClauses(clauses);
  const keep = (views: View[]) => {
    localStorage.setItem(KEY, JSON.stringify(views));
    setSaved(views);
  };
  const views = [...BUILT_IN, ...saved];
  const isKnown = views.some((view) => writeClauses(view.clauses) === here);
  return (
    <div className="runs-views">
      <div className="tabs tabs-scroll grow" role="group" aria-label="Views">
        {views.map((view) => (
          <button key={view.name} type="button" className="tab" aria-current={writeClauses(view.clauses) === here ? "true" : undefined} onClick={() => onChange(view.clauses)}>{view.name}</button>
        ))}
      </div>
      {!isKnown && <Button kind="ghost" size="sm" icon="plus" onClick={() => setNaming("")}>Save view</Button>}
      {saved.some((view) => writeClauses(view.clauses) === here) && (
        <Button kind="ghost" size="sm" onClick={() => keep(saved.filter((view) => writeClauses(view.clauses) !== here))}><Icon name="close" size={14} />Remove view</Button>
      )}
      {naming !== null && (
        <Dialog
          title="Save this view"
          onClose={() => setNaming(null)}
          foot={<Button kind="primary" disabled={naming.trim() === ""} onClick={() => { keep([...saved.filter((view) => view.name !== naming.trim()), { name: naming.trim(), clauses }]); setNaming(null); }}>Save</Button>}
        >
          <label className="field"><span className="label">Name</span><input className="input" autoFocus value={naming} onChange={(event) => setNaming(event.target.value)} /></label>
          <p className="hint">It is kept in this browser.</p>
        </Dialog>
      )}
    </div>
  );
}
