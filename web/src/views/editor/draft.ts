// The document that is edited: its text and the places of its nodes, with one stack of undo over both.
//
// Promises: every edit is kept on this device within a second; what is said about it is true; an edit of the graph
// goes through the text.
import type { Mark, Places } from "@/model/drawing";
import { readFlow, type Flow } from "@/model/flow";
import { Undo } from "@/model/undo";
import { forget, keep } from "./keep";

export type { Mark, Places };

export interface Content {
  readonly text: string;
  readonly places: Places;
  /** Notes and sections. */
  readonly marks: readonly Mark[];
}

/** A deployed version that the draft began from; version 0: there is none. */
export interface Base extends Content {
  readonly version: number;
  /** The whole drawing, so that what others keep in it stays. */
  readonly canvas: unknown;
  readonly etag: string | null;
}

export type Safe = "same" | "keeping" | "kept" | "lost";

export interface Shown extends Content {
  readonly base: Base;
  /** The newest text that could be read as a graph. */
  readonly flow: Flow;
  readonly broken: { message: string; line: number } | null;
  readonly safe: Safe;
  readonly names: { undo: string | null; redo: string | null };
}

/** How long an edit waits for others before all are kept together. Typing on does not make it wait longer. */
const KEEP_MS = 300;
const EMPTY: Flow = { name: "", nodes: [], edges: [], value: {} };

export class Draft {
  private undoing = new Undo<Content>();
  private readonly listeners = new Set<() => void>();
  private timer: ReturnType<typeof setTimeout> | null = null;
  private shown: Shown;

  constructor(
    private workflow: string,
    base: Base,
    start: Content = base,
  ) {
    const { flow, broken } = readFlow(start.text);
    this.shown = { text: start.text, places: start.places, marks: start.marks, base, flow: flow ?? readFlow(base.text).flow ?? EMPTY, broken, safe: start.text === base.text ? "same" : "keeping", names: this.undoing.names };
    if (this.shown.safe === "keeping") this.flush();
  }

  get = (): Shown => this.shown;

  watch = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };

  /** One named edit of the text. */
  edit(name: string, change: (text: string) => string, options: { merge?: boolean; places?: Places; marks?: readonly Mark[] } = {}): void {
    const text = change(this.shown.text);
    const { places, marks } = { ...this.content, ...options };
    if (text === this.shown.text && places === this.shown.places && marks === this.shown.marks) return;
    this.undoing.note(this.content, name, options.merge === true);
    this.take({ text, places, marks });
  }

  move(name: string, places: Places): void {
    this.edit(name, (text) => text, { places: { ...this.shown.places, ...places } });
  }

  /** Changes notes and sections. */
  mark(name: string, marks: readonly Mark[], merge = false): void {
    this.edit(name, (text) => text, { marks, merge });
  }

  undo = (): void => this.go(this.undoing.undo(this.content));
  redo = (): void => this.go(this.undoing.redo(this.content));

  /** The draft is now measured against another version: after a deploy, or when another's version is taken as base. */
  rebase(base: Base, start: Content | null = null): void {
    if (start !== null) this.undoing.note(this.content, `open v${base.version}`);
    this.take(start === null ? this.content : { text: start.text, places: start.places, marks: start.marks }, base);
    if (this.workflow !== this.shown.flow.name && base.version > 0) {
      forget(this.workflow);
      this.workflow = this.shown.flow.name;
    }
  }

  /** Places that were saved in the drawing: the base has them now. */
  drawn(canvas: unknown, etag: string | null): void {
    this.show({ base: { ...this.shown.base, places: this.shown.places, marks: this.shown.marks, canvas, etag } });
  }

  private get content(): Content {
    const { text, places, marks } = this.shown;
    return { text, places, marks };
  }

  private go(content: Content | undefined): void {
    if (content !== undefined) this.take(content);
  }

  private take(content: Content, base: Base = this.shown.base): void {
    const { flow, broken } = readFlow(content.text);
    const same = content.text === base.text && base.version > 0;
    this.show({ ...content, base, flow: flow ?? this.shown.flow, broken, safe: same ? "same" : "keeping", names: this.undoing.names });
    this.timer ??= setTimeout(this.flush, KEEP_MS);
  }

  /** Keeps what is not kept yet, at once. */
  flush = (): void => {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    const { text, places, marks, base, safe } = this.shown;
    if (safe === "same") forget(this.workflow);
    else
      void keep(this.workflow, { base: base.version, text, places, marks, at: Date.now() }).then((isKept) => {
        const { text: now, safe: still } = this.shown;
        if (still !== "same" && (now === text || !isKept)) this.show({ safe: isKept ? "kept" : "lost" });
      });
  };

  private show(change: Partial<Shown>): void {
    this.shown = { ...this.shown, ...change };
    for (const listener of this.listeners) listener();
  }
}
