// The YAML pane: the draft's text in CodeMirror, in step with the graph.
import { forceLinting, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { useEditing, useShown } from "../context";
import { diagnosticsOf, extensions, External, setMarked, smallest } from "./setup";

export default function Code() {
  const { draft, selection, select, findings, fixed } = useEditing();
  const shown = useShown();
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const newest = useRef({ select, selection });
  newest.current = { select, selection };
  useEffect(() => {
    const told = {
      change: (text: string) => draft.edit("type", () => text, { merge: true }),
      cursor: (line: number) => pick(line, draft.get().flow, newest.current),
      undo: draft.undo,
      redo: draft.redo,
    };
    const made = new EditorView({ parent: place.current as HTMLDivElement, state: EditorState.create({ doc: draft.get().text, extensions: extensions(told, fixed) }) });
    view.current = made;
    return () => made.destroy();
  }, [draft, fixed]);
  useEffect(() => {
    const made = view.current;
    const before = made?.state.doc.toString();
    if (made === null || before === undefined || before === shown.text) return;
    made.dispatch({ changes: smallest(before, shown.text), annotations: External.of(true) });
  }, [shown.text]);
  useEffect(() => {
    const made = view.current;
    if (made === null) return;
    made.dispatch(setDiagnostics(made.state, diagnosticsOf(made.state, findings)));
    forceLinting(made);
  }, [findings, fixed]);
  const part = selection === null ? undefined : "node" in selection ? shown.flow.nodes.find((one) => one.ref === selection.node) : "mark" in selection ? undefined : shown.flow.edges.find((one) => one.id === selection.edge);
  const [from, to] = part?.lines ?? [0, 0];
  useEffect(() => {
    const made = view.current;
    if (made === null) return;
    const isSeen = made.hasFocus || from === 0;
    made.dispatch({ effects: [setMarked.of(from === 0 ? null : [from, to]), ...(isSeen ? [] : [EditorView.scrollIntoView(made.state.doc.line(Math.min(from, made.state.doc.lines)).from, { y: "start", yMargin: 40 })])] });
  }, [from, to, selection, fixed]);
  return <div className="ed-code" ref={place} />;
}

interface Parts {
  nodes: readonly { ref: string; lines: readonly [number, number] }[];
  edges: readonly { id: string; lines: readonly [number, number] }[];
}

/** The part of the definition that a line belongs to becomes the selected one. */
function pick(line: number, flow: Parts, { select, selection }: Pick<ReturnType<typeof useEditing>, "select" | "selection">): void {
  const holds = (lines: readonly [number, number]) => lines[0] <= line && line <= lines[1];
  const node = flow.nodes.find((one) => holds(one.lines));
  const edge = node === undefined ? flow.edges.find((one) => holds(one.lines)) : undefined;
  if (node !== undefined && !(selection !== null && "node" in selection && selection.node === node.ref)) select({ node: node.ref });
  else if (edge !== undefined && !(selection !== null && "edge" in selection && selection.edge === edge.id)) select({ edge: edge.id });
}
