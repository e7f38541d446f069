// The person at the screen: who they are and what they may do. What a role may not do is not offered.
import { useSyncExternalStore } from "react";
import { api, given, useCsrf } from "./client";
import { Problem, problemOf } from "./problem";
import type { components } from "./schema";

export type Session = components["schemas"]["SessionView"];
export type Role = "viewer" | "operator" | "author" | "approver" | "worker" | "admin";

type Known = { kind: "asking" } | { kind: "in"; session: Session } | { kind: "out" } | { kind: "unreachable"; problem: Problem };

let known: Known = { kind: "asking" };
const watchers = new Set<() => void>();

function change(next: Known): void {
  known = next;
  for (const watcher of watchers) watcher();
}

function enter(session: Session): void {
  useCsrf(session.csrf ?? null);
  change({ kind: "in", session });
}

/** Asks the service who is signed in. */
export async function askSession(): Promise<void> {
  try {
    enter(await given(api.GET("/api/v1/session")));
  } catch (error) {
    const problem = problemOf(error);
    change(problem.status === 401 ? { kind: "out" } : { kind: "unreachable", problem });
  }
}

/** Signs in with a key. Throws a Problem if it is not valid. */
export async function signIn(key: string): Promise<void> {
  enter(await given(api.POST("/api/v1/session", { body: { key } })));
}

export async function signOut(): Promise<void> {
  await api.DELETE("/api/v1/session");
  useCsrf(null);
  change({ kind: "out" });
}

/** The session ended somewhere else: the page asks to sign in again and keeps what was typed. */
export const sessionLost = (): void => change({ kind: "out" });

export function useSession(): Known {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => known,
  );
}

/** Whether the person has this role. An admin has every one; readers are viewers. */
export function useMay(role: Role): boolean {
  const now = useSession();
  if (now.kind !== "in") return false;
  const roles = now.session.roles as Role[];
  if (roles.includes("admin") || roles.includes(role)) return true;
  return role === "viewer" && roles.some((one) => one === "operator" || one === "author" || one === "approver");
}
