// Tests a condition against a sample state, by the service's own evaluation.
import { useEffect, useState } from "react";
import { parse, stringify } from "yaml";
import { api, given } from "@/api/client";
import { problemOf } from "@/api/problem";
import { probeOf, sampleState } from "@/model/condition-test";
import { conditionText } from "@/model/flow";
import { inline } from "@/model/yaml-edit";
import { Icon } from "@/ui/icon";
import { Button } from "@/ui/parts";
import { useShown } from "../context";

type Verdict = { readonly kind: "true" | "false" } | { readonly kind: "wrong"; readonly why: string } | null;

export function Tester({ condition }: { condition: unknown }) {
  const { flow } = useShown();
  const text = conditionText(condition);
  const [state, setState] = useState(() => stringify(sampleState(text)));
  const [input, setInput] = useState("{}");
  const [verdict, setVerdict] = useState<Verdict>(null);
  useEffect(() => setVerdict(null), [text, state, input]);
  const [from, setFrom] = useState<string | null>(null);
  const fromRun = async () => {
    try {
      const [run] = (await given(api.GET("/api/v1/runs", { params: { query: { workflow: flow.name, limit: 1 } } }))).items;
      if (run === undefined) return setFrom("This workflow has no run yet.");
      const [view, detail] = await Promise.all([given(api.GET("/api/v1/runs/{run}/state", { params: { path: { run: run.run } } })), given(api.GET("/api/v1/runs/{run}", { params: { path: { run: run.run } } }))]);
      const { scope, seq } = view as unknown as { scope: { state?: unknown }; seq: number };
      setState(stringify(scope.state ?? {}));
      setInput(inline((detail as { input?: unknown }).input ?? {}));
      setFrom(`From run ${run.run.slice(-6)}, seq ${seq}.`);
    } catch (problem) {
      setFrom(problemOf(problem).message);
    }
  };
  const test = async () => {
    try {
      const sample = { state: (parse(state) ?? {}) as Record<string, unknown>, input: (parse(input) ?? {}) as unknown };
      const body = { definition: probeOf(condition, sample), input: sample.input };
      const { history } = (await given(api.POST("/api/v1/workflows/{name}/simulate", { params: { path: { name: flow.name || "condition" } }, body: body as never }))) as unknown as { history: { type: string; node?: string; error?: { message?: string } }[] };
      const failed = history.find((event) => event.type === "run.failed" || event.type === "token.failed");
      if (history.some((event) => event.type === "token.created" && event.node === "taken")) setVerdict({ kind: "true" });
      else setVerdict(failed === undefined ? { kind: "false" } : { kind: "wrong", why: failed.error?.message ?? "it cannot be evaluated" });
    } catch (problem) {
      setVerdict({ kind: "wrong", why: problemOf(problem).message });
    }
  };
  return (
    <details className="ed-tester">
      <summary>Test the condition</summary>
      <div className="row"><span className="hint grow">{from ?? "A sample of what the condition reads."}</span><Button size="sm" kind="ghost" onClick={() => void fromRun()}>From the newest run</Button></div>
      <label className="field ed-field"><span className="ed-field-label">Sample state, as YAML</span><textarea className="textarea mono" rows={3} spellCheck={false} value={state} onChange={(event) => setState(event.target.value)} /></label>
      <label className="field ed-field"><span className="ed-field-label">Sample input</span><input className="input input-sm mono" value={input} onChange={(event) => setInput(event.target.value)} /></label>
      <div className="row">
        <Button size="sm" onClick={() => void test()}>Test</Button>
        <span role="status" className="row row-4">
          {verdict?.kind === "true" && <><span data-tone="done" className="tone"><Icon name="check" /></span><span><b>True</b>: it is taken.</span></>}
          {verdict?.kind === "false" && <span><b>False</b>: it is not taken.</span>}
          {verdict?.kind === "wrong" && <span className="field-error">{verdict.why}</span>}
        </span>
      </div>
    </details>
  );
}
