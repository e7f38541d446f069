// One stack of edits, 200 deep. Each step has a name; typing that goes on is one step.

export const DEPTH = 200;
const TOGETHER_MS = 700;

export interface Step<T> {
  readonly value: T;
  /** What led from this value to the next. */
  readonly name: string;
}

export class Undo<T> {
  private past: Step<T>[] = [];
  private future: Step<T>[] = [];
  private lastName = "";
  private lastAt = Number.NEGATIVE_INFINITY;

  /** Notes that `before` was changed by `name`. Steps that `merge` and follow at once are one. */
  note(before: T, name: string, merge = false, now: number = Date.now()): void {
    const together = merge && name === this.lastName && now - this.lastAt < TOGETHER_MS && this.past.length > 0;
    this.lastName = name;
    this.lastAt = now;
    this.future = [];
    if (together) return;
    this.past.push({ value: before, name });
    if (this.past.length > DEPTH) this.past.shift();
  }

  undo(present: T): T | undefined {
    const step = this.past.pop();
    if (step === undefined) return undefined;
    this.future.push({ value: present, name: step.name });
    this.lastAt = Number.NEGATIVE_INFINITY;
    return step.value;
  }

  redo(present: T): T | undefined {
    const step = this.future.pop();
    if (step === undefined) return undefined;
    this.past.push({ value: present, name: step.name });
    this.lastAt = Number.NEGATIVE_INFINITY;
    return step.value;
  }

  /** The name of what would be undone, and of what would be done again. */
  get names(): { undo: string | null; redo: string | null } {
    return { undo: this.past.at(-1)?.name ?? null, redo: this.future.at(-1)?.name ?? null };
  }
}
