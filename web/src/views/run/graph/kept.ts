// What many small parts of a picture show, kept by name: a part is drawn again only when what it shows is another, and
// only so many in one frame. The others follow in the next frames, so that a burst of events never stops the page.

const IN_A_FRAME = 10;
const BUDGET_MS = 2.5;
const SMALL = 60; // a picture with fewer parts than this is drawn whole

export class Kept<Shown> {
  private readonly found = new Map<string, Shown>();
  private readonly watchers = new Map<string, Set<() => void>>();
  private readonly waiting = new Set<string>();
  private frame: number | null = null;

  constructor(
    private readonly make: (name: string) => Shown,
    private readonly isSame: (before: Shown, after: Shown) => boolean,
  ) {}

  watch(name: string, watcher: () => void): () => void {
    const mine = this.watchers.get(name) ?? new Set();
    this.watchers.set(name, mine.add(watcher));
    return () => mine.delete(watcher);
  }

  of(name: string): Shown | undefined {
    return this.found.get(name);
  }

  /** Looks at these again: at once if there are few of them, else a few in each frame. A new one is always made at once. */
  look(names: Iterable<string>): void {
    for (const name of names) {
      if (this.found.has(name)) this.waiting.add(name);
      else this.found.set(name, this.make(name));
    }
    if (this.frame === null) this.flush();
  }

  stop(): void {
    if (this.frame !== null) cancelAnimationFrame(this.frame);
    this.frame = null;
  }

  private flush(): void {
    this.frame = null;
    const all = this.found.size <= SMALL;
    const until = performance.now() + BUDGET_MS;
    let changed = 0;
    for (const name of this.waiting) {
      if (!all && (changed >= IN_A_FRAME || performance.now() > until)) break;
      this.waiting.delete(name);
      const next = this.make(name);
      if (this.isSame(this.found.get(name) as Shown, next)) continue;
      this.found.set(name, next);
      changed += 1;
      for (const watcher of this.watchers.get(name) ?? []) watcher();
    }
    if (this.waiting.size > 0) this.frame = requestAnimationFrame(() => this.flush());
  }
}
