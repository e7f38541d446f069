// The first minute of an empty installation: examples that can be run and opened, none of which leaves this machine.
import { useState } from "react";
import { useLocation } from "wouter";
import { api, given } from "@/api/client";
import { useMay } from "@/api/session";
import { EXAMPLES, type Example } from "@/examples";
import { Button, Copy, Trouble } from "@/ui/parts";
import { Sketch } from "./sketch";
import "./runs.css";

/** Deploys an example; the same text again changes nothing. */
export async function deployExample(example: Example): Promise<void> {
  await api.POST("/api/v1/workflows", {
    body: example.yaml as never,
    bodySerializer: (body) => body as unknown as string,
    headers: { "Content-Type": "application/yaml" },
  });
}

export function FirstMinute({ title = "Nothing has run here yet" }: { title?: string }) {
  const [, navigate] = useLocation();
  const [error, setError] = useState<unknown>(null);
  const mayDeploy = useMay("author");
  const mayRun = useMay("operator");
  const run = async (example: Example) => {
    setError(null);
    try {
      await deployExample(example);
      const started = await given(api.POST("/api/v1/runs", { body: { workflow: example.workflow, input: example.input } as never }));
      navigate(`/runs/${encodeURIComponent(started.run)}`);
    } catch (problem) {
      setError(problem);
    }
  };
  const open = async (example: Example) => {
    try {
      await deployExample(example);
      navigate(`/workflows/${encodeURIComponent(example.workflow)}`);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <div className="first">
      <h2 className="t6 b">{title}</h2>
      <p className="t4 c2">Run an example and watch its tokens move. None of them needs a key or leaves this machine.</p>
      {error !== null && <Trouble error={error} />}
      <ul className="first-list">
        {EXAMPLES.map((example) => (
          <li key={example.workflow} className="card first-one">
            <Sketch of={example.workflow} />
            <h3 className="t4 b">{example.title}</h3>
            <p className="c2">{example.about}</p>
            <p className="t1 c2">{example.meta}</p>
            {mayDeploy && (
              <div className="row">
                {mayRun && <Button kind={example === EXAMPLES[0] ? "primary" : "plain"} icon="play" onClick={() => void run(example)}>Run</Button>}
                <Button kind="ghost" onClick={() => void open(example)}>Open in editor</Button>
              </div>
            )}
          </li>
        ))}
      </ul>
      <section className="card first-command">
        <div><h3 className="b">Or from a terminal</h3><p className="c2">The run appears here while it works.</p></div>
        <Copy text={`treadle run examples/approval.yaml -i '{"request": "two chairs"}'`} label="the command" />
      </section>
    </div>
  );
}
