// One answer to many gates of one node, with exceptions: what is sent, and what became of each.
import type { Json } from "./form";

export interface BatchItem {
  readonly run: string;
  readonly visit: number;
}

/** Gates that get the same answer. */
export interface Sending {
  readonly gates: readonly BatchItem[];
  readonly data: Json;
}

/** The requests that answer all: the common answer in parts of `most`, then each exception. */
export function sendings<Item extends BatchItem>(items: readonly Item[], common: Json, exceptions: ReadonlyMap<string, Json>, id: (item: Item) => string, most = 100): Sending[] {
  const named = ({ run, visit }: Item): BatchItem => ({ run, visit });
  const alike = items.filter((item) => !exceptions.has(id(item)));
  const found: Sending[] = [];
  for (let at = 0; at < alike.length; at += most) found.push({ gates: alike.slice(at, at + most).map(named), data: common });
  for (const item of items) if (exceptions.has(id(item))) found.push({ gates: [named(item)], data: exceptions.get(id(item))! });
  return found;
}
