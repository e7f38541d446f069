// The person at the screen, as the rules about gates see them.
import { useMemo } from "react";
import { useSession } from "@/api/session";
import type { Asker } from "@/model/gates";

const NOBODY: Asker = { name: "", groups: [], admin: false, approver: false };

export function useAsker(): Asker {
  const session = useSession();
  const view = session.kind === "in" ? session.session : null;
  return useMemo(() => {
    if (view === null) return NOBODY;
    const admin = view.roles.includes("admin");
    return { name: view.user, groups: view.groups, admin, approver: admin || view.roles.includes("approver") };
  }, [view]);
}

/** The letters that stand for a person. */
export const initials = (name: string): string =>
  name.split(/[^\p{L}\p{N}]+/u).filter(Boolean).slice(0, 2).map((word) => word[0]!.toUpperCase()).join("") || "?";
