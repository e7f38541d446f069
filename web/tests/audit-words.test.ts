import { describe, expect, it } from "vitest";
import { aboutOf, actionWords, outcomeWords } from "@/model/audit-words";

describe("an entry of the audit", () => {
  it("says what was done in words", () => {
    const said = {
      "POST /api/v1/gates/{run}/{visit}/answer": "Answer a gate",
      "POST /api/v1/runs": "Start a run",
      "POST /p/sales/api/v1/runs/{run}/cancel": "Cancel a run",
      "POST /api/v1/runs/{run}/visits/{visit}/retry": "Retry a visit",
      "PUT /api/v1/secrets/{name}": "Write a secret",
      "DELETE /api/v1/schedules/{schedule}": "Delete a schedule",
      "POST /api/v1/dead-letters/{id}/requeue": "Requeue a dead letter",
      "GET /api/v1/audit": "Read the audit",
      "keys create": "Keys create",
      "GET /api/v1/unheard-of": "GET /api/v1/unheard-of",
    };
    for (const [action, words] of Object.entries(said)) expect(actionWords(action)).toBe(words);
  });

  it("says what it was about, out of its path", () => {
    const of = (action: string, path: string, about: string | null = null) => aboutOf({ action, path, about });
    expect(of("POST /api/v1/runs/{run}/visits/{visit}/skip", "/api/v1/runs/01a1/visits/2/skip", "dry run")).toEqual({ run: "01a1", rest: "visit 2" });
    expect(of("PUT /api/v1/secrets/{name}", "/api/v1/secrets/two%20words")).toEqual({ run: null, rest: "two words" });
    expect(of("POST /api/v1/keys", "/api/v1/keys", "5bqhakthgm")).toEqual({ run: null, rest: "5bqhakthgm" });
    expect(outcomeWords(200, null, "dry run")).toBe("only asked what would happen");
  });

  it("says why it was refused", () => {
    expect([outcomeWords(201, null), outcomeWords(401, "UNAUTHENTICATED"), outcomeWords(409, "DUPLICATE_KEY"), outcomeWords(500, null)]).toEqual(["done", "not signed in", "duplicate key", "refused (500)"]);
  });
});
