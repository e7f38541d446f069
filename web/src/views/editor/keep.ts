// The draft of a workflow on this device: bound to the workflow and to the version it began from.
//
// It is kept twice. `localStorage` takes it at once, also while the page closes, but Chromium writes it to the disk some
// seconds later. IndexedDB with strict durability has it on the disk when it says so: a browser that is killed then loses
// nothing of it. The newer of both is read.
import type { Mark, Places } from "@/model/drawing";

export interface Kept {
  /** The version it began from; 0: a workflow that was never deployed. */
  readonly base: number;
  readonly text: string;
  readonly places: Places;
  readonly marks: readonly Mark[];
  readonly at: number;
}

const keyOf = (workflow: string): string => `treadle.editor.draft:${workflow}`;
const STORE = "drafts";

let opened: Promise<IDBDatabase> | null = null;

function database(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const asked = indexedDB.open("treadle", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error ?? new Error("the browser gave no database"));
  });
  return opened;
}

/** One transaction; resolves when it is on the disk. */
async function written(change: (store: IDBObjectStore) => void): Promise<void> {
  const transaction = (await database()).transaction(STORE, "readwrite", { durability: "strict" });
  change(transaction.objectStore(STORE));
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onerror = transaction.onabort = () => reject(transaction.error ?? new Error("it was not written"));
  });
}

const checked = (value: unknown): Kept | null => {
  const kept = value as Kept | null | undefined;
  return kept != null && typeof kept.text === "string" && typeof kept.base === "number" ? { ...kept, places: kept.places ?? {}, marks: kept.marks ?? [] } : null;
};

function atOnce(workflow: string): Kept | null {
  try {
    return checked(JSON.parse(localStorage.getItem(keyOf(workflow)) ?? "null"));
  } catch {
    return null;
  }
}

async function onDisk(workflow: string): Promise<Kept | null> {
  try {
    const asked = (await database()).transaction(STORE).objectStore(STORE).get(keyOf(workflow));
    return await new Promise((resolve, reject) => {
      asked.onsuccess = () => resolve(checked(asked.result));
      asked.onerror = () => reject(asked.error ?? new Error("it was not read"));
    });
  } catch {
    return null;
  }
}

export async function readKept(workflow: string): Promise<Kept | null> {
  const [quick, slow] = [atOnce(workflow), await onDisk(workflow)];
  return quick === null || (slow !== null && slow.at > quick.at) ? slow : quick;
}

/** Whether it is kept, told when that is so. */
export async function keep(workflow: string, kept: Kept): Promise<boolean> {
  let isKept = true;
  try {
    localStorage.setItem(keyOf(workflow), JSON.stringify(kept));
  } catch {
    isKept = false;
  }
  try {
    await written((store) => store.put(kept, keyOf(workflow)));
    return true;
  } catch {
    return isKept;
  }
}

export function forget(workflow: string): void {
  try {
    localStorage.removeItem(keyOf(workflow));
  } catch {
    // nothing was kept then
  }
  void written((store) => store.delete(keyOf(workflow))).catch(() => undefined);
}
