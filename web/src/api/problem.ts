// A refusal of the service, in its own words: what is wrong, where, and what helps.
import type { components } from "./schema";

export type ProblemDocument = components["schemas"]["ProblemDocument"];

/** Thrown for every answer that is no success, and for a service that cannot be reached (`OFFLINE`). */
export class Problem extends Error {
  readonly code: string;
  readonly status: number;

  constructor(readonly document: Partial<ProblemDocument> & { code: string; detail: string; status: number }) {
    super(document.detail);
    this.name = "Problem";
    this.code = document.code;
    this.status = document.status;
  }

  get remedy(): string | undefined {
    return this.document.remedy ?? undefined;
  }
}

/** The service did not answer at all. */
export const offline = () =>
  new Problem({ code: "OFFLINE", status: 0, detail: "the service cannot be reached", remedy: "it is tried again" });

/** Any error as a Problem, so that there is one way to show one. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof TypeError) return offline();
  return new Problem({ code: "UNEXPECTED", status: 0, detail: error instanceof Error ? error.message : String(error) });
}
