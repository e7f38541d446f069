// Deploying: first what will change, then a new version. The service refuses if somebody else was first, and then their
// version is shown as a difference: nobody overwrites anybody unseen.
import { useState } from "react";
import { problemOf } from "@/api/problem";
import { drawingOf } from "@/model/drawing";
import { readFlow } from "@/model/flow";
import { merged } from "@/model/merge";
import { Dialog } from "@/ui/dialog";
import { Button, Trouble } from "@/ui/parts";
import { useShown, type Editing } from "./context";
import { DrawnDiff, GraphDiffView, LineDiffView } from "./diff-view";
import type { Base } from "./draft";
import { baseOf, deploy, draw, loadBase } from "./load";

interface DeployProps {
  editing: Editing;
  errors: number;
  onClose: () => void;
  onDeployed: (workflow: string) => void;
  onNewer: (base: Base) => void;
}

export function DeployDialog({ editing, errors, onClose, onDeployed, onNewer }: DeployProps) {
  const { text, base, flow, marks } = useShown();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const next = base.version + 1;
  const send = async () => {
    setBusy(true);
    setError(null);
    try {
      const isRenamed = readFlow(base.text).flow?.name !== flow.name;
      const { workflow, version } = await deploy(text, base.version === 0 || isRenamed ? null : base.etag);
      const places = Object.fromEntries(Object.entries(editing.placesNow.current).filter(([ref]) => flow.nodes.some((node) => node.ref === ref)));
      const drawing = drawingOf(base.canvas, places, marks, text);
      const { etag } = await draw(workflow, version, drawing, null);
      editing.draft.rebase({ ...baseOf({ version, definition: flow.value, canvas: drawing }, etag), text, places: editing.draft.get().places, marks });
      editing.draft.flush();
      onDeployed(workflow);
    } catch (problem) {
      const newest = problemOf(problem).code === "STALE_VERSION" ? await loadBase(flow.name) : null;
      if (newest !== null) return onNewer(newest);
      setError(problem);
      setBusy(false);
    }
  };
  const title = base.version === 0 ? `Deploy ${flow.name}` : `Deploy ${flow.name} as v${next}`;
  return (
    <Dialog
      title={title} wide onClose={onClose}
      foot={
        <>
          {errors > 0 && <span className="field-error grow" role="alert">{errors === 1 ? "One error has" : `${errors} errors have`} to be put right first.</span>}
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={busy || errors > 0} onClick={() => void send()}>{busy ? "Deploying…" : "Deploy"}</Button>
        </>
      }
    >
      {error !== null && <Trouble error={error} />}
      <p className="c2">{base.version === 0 ? "The first version of this workflow." : `Runs under way keep their version; new ones begin with v${next}.`}</p>
      {base.version > 0 && <DrawnDiff before={base} after={{ text, places: editing.placesNow.current, marks }} />}
      <GraphDiffView before={base.version === 0 ? "" : base.text} after={text} />
      <LineDiffView before={base.version === 0 ? "" : base.text} after={text} />
    </Dialog>
  );
}

/** Somebody has deployed since the draft began. */
export function NewerDialog({ editing, newer, onClose }: { editing: Editing; newer: Base; onClose: () => void }) {
  const { base, text, places } = useShown();
  const isChanged = text !== base.text;
  const both = isChanged && base.version > 0 ? merged(base.text, text, newer.text) : null;
  const take = (start: Base | null) => {
    editing.draft.rebase(newer, start);
    onClose();
  };
  const takeBoth = () => both !== null && take({ ...newer, text: both.text, places: { ...newer.places, ...places } });
  return (
    <Dialog
      title={base.version === 0 ? `${editing.draft.get().flow.name} is there already` : `v${newer.version} was deployed since you began`} wide onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Later</Button>
          <Button onClick={() => take(newer)}>Open v{newer.version}</Button>
          <Button {...(both === null ? { kind: "primary" as const } : {})} onClick={() => take(null)}>Keep my text only</Button>
          {both !== null && <Button kind="primary" onClick={takeBoth}>Take both changes</Button>}
        </>
      }
    >
      <p className="c2">{base.version === 0 ? "Your draft began without a version." : `Your draft began from v${base.version}.`} Nothing of either is lost: each choice is one step of undo, and is compared with v{newer.version} before it is deployed.</p>
      {both !== null && both.conflicts.length > 0 && <p className="note" data-tone="wait">Both of you changed {both.conflicts.join(", ")}. “Take both changes” keeps yours there.</p>}
      <h3 className="section-title">What v{newer.version} changed{base.version === 0 ? "" : ` since v${base.version}`}</h3>
      <DrawnDiff before={base} after={newer} />
      <GraphDiffView before={base.text} after={newer.text} />
      <LineDiffView before={base.text} after={newer.text} />
      {isChanged && (
        <>
          <h3 className="section-title">What your draft changed{base.version === 0 ? "" : ` since v${base.version}`}</h3>
          <GraphDiffView before={base.text} after={text} />
        </>
      )}
    </Dialog>
  );
}
