// Scopes: what a run and its branches have written. A branch's scope is an overlay, transparent where it has no key.

/** Interior of a branch's scope; never changed in place. */
export class Overlay {
  constructor(readonly entries: ReadonlyMap<string, unknown> = new Map()) {}

  with(key: string, value: unknown): Overlay {
    return new Overlay(new Map(this.entries).set(key, value));
  }
}

type Path = readonly (string | number)[];

/** `here` with `path` set; containers along the way are copied. */
export function written(here: unknown, path: Path, value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (here instanceof Overlay) {
    const name = String(key);
    const below = here.entries.has(name) ? here.entries.get(name) : new Overlay();
    return here.with(name, rest.length > 0 ? written(below, rest, value) : value);
  }
  if (Array.isArray(here)) {
    const copy = [...(here as unknown[])];
    const index = Number(key);
    copy[index] = written(index < copy.length ? copy[index] : {}, rest, value);
    return copy;
  }
  const object = here !== null && typeof here === "object" ? (here as Record<string, unknown>) : {};
  const below = Object.hasOwn(object, String(key)) ? object[String(key)] : {};
  return { ...object, [String(key)]: written(below, rest, value) };
}

/** The value as plain JSON. */
export function plain(value: unknown): unknown {
  if (!(value instanceof Overlay)) return value;
  return Object.fromEntries([...value.entries].map(([key, below]) => [key, plain(below)]));
}

/** One root (`state`, `output`, `nodes`) of a scope as plain JSON. */
export function rootOf(scope: unknown, root: string): unknown {
  if (scope instanceof Overlay) return scope.entries.has(root) ? plain(scope.entries.get(root)) : {};
  const tree = (scope ?? {}) as Record<string, unknown>;
  return Object.hasOwn(tree, root) ? tree[root] : {};
}
