import { describe, expect, it } from "vitest";
import { actionWords, outcomeWords } from "@/model/audit-words";

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

  it("says why it was refused", () => {
    expect([outcomeWords(201, null), outcomeWords(401, "UNAUTHENTICATED"), outcomeWords(409, "DUPLICATE_KEY"), outcomeWords(500, null)]).toEqual(["done", "not signed in", "duplicate key", "refused (500)"]);
  });
});
