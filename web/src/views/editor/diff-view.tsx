// Two texts of a definition side by side: what became of nodes and transitions, and of lines.
import { useEffect, useMemo, useState } from "react";
import { graphDiff, lineDiff, union, type Line, type Part } from "@/model/definition-diff";
import type { Content } from "./draft";
import { pictureOf } from "./files";
import { beside, tidy } from "./graph/places";

const CONTEXT = 3;

export function GraphDiffView({ before, after }: { before: string; after: string }) {
  const diff = useMemo(() => graphDiff(before, after), [before, after]);
  const nothing = [diff.nodes, diff.transitions].every((part) => part.added.length + part.removed.length + part.changed.length === 0) && diff.settings.length === 0;
  return (
    <ul className="ed-changes" aria-label="Changes of the graph">
      {nothing && <li className="c2">The graph is the same; only its text differs.</li>}
      <Changes what="node" part={diff.nodes} />
      <Changes what="transition" part={diff.transitions} />
      {diff.settings.map((field) => <li key={field}><span className="badge" data-tone="active">changed</span> setting <b className="mono">{field}</b></li>)}
    </ul>
  );
}

function Changes({ what, part }: { what: string; part: Part }) {
  return (
    <>
      {part.added.map((ref) => <li key={`+${ref}`}><span className="badge" data-tone="done">added</span> {what} <b>{ref}</b></li>)}
      {part.removed.map((ref) => <li key={`-${ref}`}><span className="badge" data-tone="fail">removed</span> {what} <b>{ref}</b></li>)}
      {part.changed.map(({ ref, fields }) => <li key={ref}><span className="badge" data-tone="active">changed</span> {what} <b>{ref}</b> <span className="c2">{fields.join(", ")}</span></li>)}
    </>
  );
}

/** Lines that differ, with some around them. */
export function LineDiffView({ before, after }: { before: string; after: string }) {
  const shown = useMemo(() => around(lineDiff(before, after)), [before, after]);
  return (
    <div className="ed-diff mono" role="group" aria-label="Changes of the text" tabIndex={0}>
      {shown.map((line, at) =>
        line === null ? (
          <div key={at} className="ed-diff-gap" aria-hidden="true">⋯</div>
        ) : (
          <div key={at} className={`ed-diff-line is-${line.kind}`}>
            <span className="ed-diff-number" aria-hidden="true">{line.number}</span>
            <span aria-label={line.kind === "same" ? undefined : line.kind} className="ed-diff-sign">{line.kind === "added" ? "+" : line.kind === "removed" ? "−" : " "}</span>
            <span>{line.text}</span>
          </div>
        ),
      )}
    </div>
  );
}

function around(lines: readonly Line[]): (Line | null)[] {
  const near = lines.map((_line, at) => lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some((one) => one.kind !== "same"));
  return lines.flatMap((line, at) => (near[at] === true ? [line] : at > 0 && near[at - 1] === true ? [null] : []));
}

/** Both graphs in one picture: what was added, removed and changed wears its colour. */
export function DrawnDiff({ before, after }: { before: Content; after: Content }) {
  const [picture, setPicture] = useState<string | null>(null);
  useEffect(() => {
    let here = true;
    const { flow, nodes, edges } = union(before.text, after.text);
    if (nodes.size === 0 && edges.size === 0) return undefined;
    const places: Record<string, { x: number; y: number }> = { ...before.places, ...after.places };
    for (const { ref } of flow.nodes) places[ref] ??= beside(places, flow.edges.find((edge) => edge.target === ref && places[edge.source] !== undefined)?.source ?? null);
    const known = Object.keys(before.places).length + Object.keys(after.places).length > 0 ? Promise.resolve(places) : tidy(flow);
    void known.then((drawn) => pictureOf({ flow, places: drawn, marks: [], nodes, edges })).then((svg) => here && setPicture(`data:image/svg+xml;utf8,${encodeURIComponent(svg)}`));
    return () => {
      here = false;
    };
  }, [before.text, after.text]);
  if (picture === null) return null;
  return (
    <figure className="ed-drawn-diff">
      <img src={picture} alt="The graph with its changes" />
      <figcaption className="t1 c2"><span data-tone="done" className="tone b">added</span> · <span data-tone="active" className="tone b">changed</span> · <span data-tone="fail" className="tone b">removed, dashed</span></figcaption>
    </figure>
  );
}
