// Drafts of answers: kept on this device as they are typed, so that a reload, an event or another's claim loses nothing.
// A draft belongs to one opening of one gate; a gate that is asked again has a draft of its own.
import { useCallback, useSyncExternalStore } from "react";
import { base } from "@/api/base";
import type { Entries } from "@/model/form";

export interface Draft {
  readonly entries: Entries;
  readonly comment: string;
  readonly at: number;
}

const PREFIX = `treadle.draft ${base} `;
const KEEP_MS = 90 * 86_400_000;
const watchers = new Set<() => void>();
let changes = 0;
const read = new Map<string, { text: string; draft: Draft }>();

/** The draft under a key; the same object as long as nothing changed. */
export function draftOf(key: string): Draft | null {
  const text = localStorage.getItem(PREFIX + key);
  if (text === null) return null;
  const known = read.get(key);
  if (known?.text === text) return known.draft;
  try {
    const draft = JSON.parse(text) as Draft;
    read.set(key, { text, draft });
    return draft;
  } catch {
    return null;
  }
}

function tell(): void {
  changes += 1;
  for (const watcher of watchers) watcher();
}

export function keepDraft(key: string, draft: Omit<Draft, "at">): void {
  localStorage.setItem(PREFIX + key, JSON.stringify({ ...draft, at: Date.now() }));
  tell();
}

export function dropDraft(key: string): void {
  localStorage.removeItem(PREFIX + key);
  tell();
}

/** Forgets drafts that nobody came back to. */
export function dropOldDrafts(now = Date.now()): void {
  for (const name of Object.keys(localStorage)) {
    const draft = name.startsWith(PREFIX) ? draftOf(name.slice(PREFIX.length)) : null;
    if (draft !== null && draft.at < now - KEEP_MS) localStorage.removeItem(name);
  }
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  addEventListener("storage", watcher);
  return () => {
    watchers.delete(watcher);
    removeEventListener("storage", watcher);
  };
}

/** Draws anew when any draft changes: for what reads several of them. */
export const useDrafts = (): number => useSyncExternalStore(watch, () => changes);

export function useDraft(key: string): Draft | null {
  return useSyncExternalStore(watch, useCallback(() => draftOf(key), [key]));
}
