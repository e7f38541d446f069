// The typed client of the service: every request of the application goes through here.
//
// Owns the session's CSRF token and the keys that make writes safe to repeat. Promises: a refusal is thrown as a
// `Problem`; a write that was sent twice, because the answer was lost, has its effect once.
import createClient, { type Middleware } from "openapi-fetch";
import { base } from "./base";
import { Problem, offline } from "./problem";
import type { paths } from "./schema";

let csrf: string | null = null;

/** The token of the session (`GET /session`); writes carry it. */
export function useCsrf(token: string | null): void {
  csrf = token;
}

const WRITES = new Set(["POST", "PUT", "PATCH", "DELETE"]);

const guard: Middleware = {
  onRequest({ request }) {
    if (WRITES.has(request.method)) {
      if (csrf !== null) request.headers.set("X-CSRF-Token", csrf);
      if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
        request.headers.set("Idempotency-Key", crypto.randomUUID());
      }
    }
    return request;
  },
  async onResponse({ response }) {
    if (response.ok || response.status === 304) return response;
    const text = await response.text();
    let document: unknown;
    try {
      document = JSON.parse(text);
    } catch {
      document = null;
    }
    if (document !== null && typeof document === "object" && "code" in document && "detail" in document) {
      throw new Problem(document as ConstructorParameters<typeof Problem>[0]);
    }
    throw new Problem({ code: "UNEXPECTED", status: response.status, detail: `the service answered ${response.status}` });
  },
  onError() {
    return offline();
  },
};

/** `api.GET("/api/v1/runs", …)`: paths, parameters and answers are those of the service's own description. */
export const api = createClient<paths>({ baseUrl: base.replace(/\/$/, "") });
api.use(guard);

/** The body of an answer. A refusal was thrown before it comes here. */
export async function given<T>(answer: Promise<{ data?: T }>): Promise<T> {
  const { data } = await answer;
  return data as T;
}
