// Parts of the canvas that cannot be fetched: the service is away, or has a newer canvas.
import { base } from "@/api/base";

export const RETRY_MS = 2_000;
const LOADED = "treadle.loaded-anew";
const OFTEN_MS = 10_000;

/** Whether an error is that of a part that was not there. */
export const isFetching = (error: unknown): boolean => error instanceof Error && /dynamically imported module|Importing a module script failed|preload CSS/i.test(error.message);

/** Whether the service answers. */
export const answers = (): Promise<boolean> => fetch(`${base}icon.svg`, { cache: "no-store" }).then((answer) => answer.ok, () => false);

/** Loads the page anew, but not again and again: a file that is really missing does not come back that way. */
export function loadAnew(): boolean {
  const last = Number(sessionStorage.getItem(LOADED) ?? "0");
  if (Date.now() - last < OFTEN_MS) return false;
  sessionStorage.setItem(LOADED, String(Date.now()));
  location.reload();
  return true;
}
