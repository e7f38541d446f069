// What is wrong with the draft: the same problems as at the lines and on the nodes.
import { Icon } from "@/ui/icon";
import { Words } from "@/ui/parts";
import { subjectOf, useEditing, useShown } from "./context";
import type { Finding } from "./load";
import type { Checked } from "./use-check";

export function Problems({ checked }: { checked: Checked }) {
  const { text } = useShown();
  const { findings } = checked;
  const errors = findings.filter((one) => one.error).length;
  const state = checked.error !== null ? "the service cannot be asked" : checked.of === text ? "checked as you type" : "checking…";
  return (
    <section className="ed-problems" aria-label="Problems">
      <header className="ed-dock-head">
        <b>Problems</b>
        {findings.length > 0 && <span className="count" data-tone={errors > 0 ? "fail" : "wait"}>{findings.length}</span>}
        <span className="c2 push" role="status">{state}</span>
      </header>
      <div className="ed-problem-list">
        {findings.length === 0 && checked.of === text && <p className="ed-fine"><span data-tone="done" className="tone"><Icon name="check" /></span>Nothing is wrong.</p>}
        {findings.map((one, at) => <Row key={at} finding={one} />)}
      </div>
    </section>
  );
}

function Row({ finding }: { finding: Finding }) {
  const { select } = useEditing();
  const { flow } = useShown();
  const about = subjectOf(finding);
  const go = () => {
    if (about === null) return;
    if ("node" in about) select({ node: about.node });
    else {
      const edge = flow.edges[about.transition];
      if (edge !== undefined) select({ edge: edge.id });
    }
  };
  return (
    <button type="button" className="ed-problem" data-tone={finding.error ? "fail" : "wait"} onClick={go}>
      <span className="tone"><Icon name={finding.error ? "err" : "info"} /></span>
      <span>
        <b className="mono tone">{finding.code}</b>
        <span className="ed-problem-line"><Words text={finding.message} /></span>
        {finding.hint !== null && <span className="ed-problem-line c2"><Words text={finding.hint} /></span>}
        <span className="ed-problem-line c2 t1">{[finding.place?.replace(/\.(?![^[]*\])/g, " › "), finding.line === null ? null : `line ${finding.line}`].filter(Boolean).join(" · ")}</span>
      </span>
    </button>
  );
}
