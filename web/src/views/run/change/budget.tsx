// Raising what a run may spend: how much of each limit is spent, and what is added.
import { useState } from "react";
import { api, given } from "@/api/client";
import type { components } from "@/api/schema";
import type { Effect } from "@/model/acts";
import { amount, PARTS, raised } from "@/model/budget";
import { useRunPage } from "../context";
import { ChangeFrame } from "./frame";

type Budget = components["schemas"]["BudgetView"];

export function BudgetChange({ budget, onClose }: { budget: Budget; onClose: () => void }) {
  const { store } = useRunPage();
  const parts = PARTS.filter((part) => budget.limits[part] !== undefined);
  const [given_, setGiven] = useState<Record<string, string>>({});
  const { body, problem } = raised(given_);
  const foretell = (): Promise<readonly Effect[]> => Promise.resolve([
    ...Object.entries(body ?? {}).map(([part, more]): Effect => ({ tone: "done", count: 1, words: `limit is raised: ${amount(part, budget.limits[part] ?? 0)} becomes ${amount(part, (budget.limits[part] ?? 0) + more)}` })),
    ...(budget.exceeded === null ? [] : [body?.[budget.exceeded] !== undefined && (budget.limits[budget.exceeded] ?? 0) + (body[budget.exceeded] ?? 0) > (budget.spent[budget.exceeded] ?? 0)
      ? { tone: "active" as const, count: 1, words: "run goes on" }
      : { tone: "wait" as const, count: 1, words: `run stands still all the same: ${amount(budget.exceeded, budget.spent[budget.exceeded] ?? 0)} are spent` }]),
  ]);
  return (
    <ChangeFrame
      title="Raise the budget of this run" confirm="Raise it" body={body} reason={false} onClose={onClose} foretell={foretell}
      about={budget.exceeded === null ? "What you add counts for this run and the runs that it calls." : `The run stands still: its ${budget.exceeded.replace("_ms", "")} is spent. What you add counts for it and the runs that it calls.`}
      perform={(asked) => given(api.POST("/api/v1/runs/{run}/budget", { params: { path: { run: store.run } }, body: asked as never }))}
    >
      {parts.map((part) => (
        <label key={part} className="field">
          <span className="label">Add to {part === "elapsed_ms" ? "time (such as 30m)" : part}</span>
          <input className="input" inputMode={part === "elapsed_ms" ? "text" : "decimal"} value={given_[part] ?? ""} onChange={(event) => setGiven((before) => ({ ...before, [part]: event.target.value }))} />
          <span className="hint">{amount(part, budget.spent[part] ?? 0)} of {amount(part, budget.limits[part] ?? 0)} spent</span>
        </label>
      ))}
      {problem !== null && <span className="field-error" role="alert">{problem}</span>}
    </ChangeFrame>
  );
}
