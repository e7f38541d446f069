// The inspector: one visit with everything known of it, or all visits of a node, or a fan-out branch by branch.
import type { ReactNode } from "react";
import { Button } from "@/ui/parts";
import { useRunPage, useSeen } from "../context";
import { NodeVisits } from "./node-visits";
import { VisitPanel } from "./visit-panel";

export function Inspector() {
  const { selection } = useRunPage();
  const { state, loaded } = useSeen();
  const visit = selection.visit === null ? undefined : state.visits.get(selection.visit);
  if (visit !== undefined) return <VisitPanel visit={visit} />;
  if (selection.node !== null) return <NodeVisits node={selection.node} />;
  return <Frame title={selection.visit === null ? "Nothing" : `Visit ${selection.visit}`}><div className="empty">{loaded ? "It is not there at this moment of the run." : "Loading…"}</div></Frame>;
}

/** The frame of what the inspector shows. */
export function Frame({ title, side, head, foot, children }: { title: string; side?: ReactNode; head?: ReactNode; foot?: ReactNode; children: ReactNode }) {
  const { select } = useRunPage();
  return (
    <section className="panel run-inspector" aria-label={title} tabIndex={-1}>
      <header className="panel-head">
        <div className="row">
          <h2 className="t4 b clip">{title}</h2>
          {side}
          <span className="push row row-4"><Button kind="ghost" size="sm" icon="close" aria-label="Close" onClick={() => select({ node: null, visit: null, group: null })} /></span>
        </div>
        {head}
      </header>
      {children}
      {foot}
    </section>
  );
}
