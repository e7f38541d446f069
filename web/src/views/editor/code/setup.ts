// CodeMirror for a definition: YAML in the tokens' colours, problems at their lines, the selected part marked.
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Annotation, RangeSetBuilder, StateEffect, StateField, type EditorState, type Extension } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, type DecorationSet } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Finding } from "../load";
import { complete } from "./complete";

/** Marks a change that comes from outside the pane: it is not told again. */
export const External = Annotation.define<boolean>();

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--syn-key)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--syn-num)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--syn-com)", fontStyle: "italic" },
  { tag: [tags.string, tags.content], color: "var(--text)" },
  { tag: [tags.keyword, tags.meta, tags.labelName], color: "var(--syn-path)" },
]);

export const setMarked = StateEffect.define<readonly [number, number] | null>();

const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, transaction) {
    for (const effect of transaction.effects) if (effect.is(setMarked)) return linesOf(transaction.state, effect.value);
    return value.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

function linesOf(state: EditorState, lines: readonly [number, number] | null): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  if (lines !== null) for (let at = lines[0]; at <= Math.min(lines[1], state.doc.lines); at++) builder.add(state.doc.line(at).from, state.doc.line(at).from, Decoration.line({ class: "ed-line-on" }));
  return builder.finish();
}

/** Problems as the editor marks them. */
export function diagnosticsOf(state: EditorState, findings: readonly Finding[]): Diagnostic[] {
  return findings.flatMap((one) => {
    if (one.line === null) return [];
    const line = state.doc.line(Math.min(Math.max(1, one.line), state.doc.lines));
    const from = Math.min(line.to, line.from + Math.max(0, (one.column ?? 1) - 1));
    const word = /^[^\s,}\]]+/.exec(state.doc.sliceString(from, line.to))?.[0].length ?? 0;
    return [{ from, to: Math.max(from, Math.min(line.to, from + word)), severity: one.error ? ("error" as const) : ("warning" as const), source: one.code, message: one.hint === null ? one.message : `${one.message}\n${one.hint}` }];
  });
}

export interface Told {
  readonly change: (text: string) => void;
  readonly cursor: (line: number) => void;
  readonly undo: () => void;
  readonly redo: () => void;
}

export function extensions(told: Told, fixed: boolean): Extension[] {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
  const does = (act: () => void) => () => {
    act();
    return true;
  };
  return [
    EditorView.cspNonce.of(nonce),
    EditorView.contentAttributes.of({ "aria-label": "Definition as YAML" }),
    lineNumbers(), drawSelection(), highlightActiveLine(), indentOnInput(), bracketMatching(), highlightSelectionMatches(), search({ top: true }), lintGutter(), yaml(),
    syntaxHighlighting(COLOURS), marked,
    keymap.of([{ key: "Mod-z", run: does(told.undo), preventDefault: true }, { key: "Mod-y", run: does(told.redo), preventDefault: true }, { key: "Mod-Shift-z", run: does(told.redo), preventDefault: true }, ...completionKeymap, ...searchKeymap, ...defaultKeymap]),
    fixed ? [] : autocompletion({ override: [complete], icons: false }),
    fixed ? EditorView.editable.of(false) : [],
    EditorView.domEventHandlers({ beforeinput: typeOver }),
    EditorView.updateListener.of((update) => {
      const outside = update.transactions.some((transaction) => transaction.annotation(External) === true);
      if (update.docChanged && !outside) told.change(update.state.doc.toString());
      if (update.selectionSet && !outside && update.view.hasFocus) told.cursor(update.state.doc.lineAt(update.state.selection.main.head).number);
    }),
  ];
}

/** Typing over a selection is done here: Chromium would join the lines by itself, with style attributes that the page's policy refuses. */
function typeOver(event: InputEvent, view: EditorView): boolean {
  if (event.inputType !== "insertText" || event.data === null || event.isComposing || !event.cancelable || view.state.selection.main.empty || view.state.readOnly) return false;
  event.preventDefault();
  view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  return true;
}

/** The smallest change that leads from one text to another. */
export function smallest(before: string, after: string): { from: number; to: number; insert: string } {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let foot = 0;
  while (foot < before.length - head && foot < after.length - head && before[before.length - 1 - foot] === after[after.length - 1 - foot]) foot += 1;
  return { from: head, to: before.length - foot, insert: after.slice(head, after.length - foot) };
}
