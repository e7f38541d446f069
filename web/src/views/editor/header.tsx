// The head of the editor: which workflow, how safe the work is, what can be done with it.
import { Link } from "wouter";
import { useMay } from "@/api/session";
import { lineCounts, lineDiff } from "@/model/definition-diff";
import { Icon } from "@/ui/icon";
import { Button, Time } from "@/ui/parts";
import type { Shown } from "./draft";
import type { Saving } from "./use-saving";
import { More } from "./more";

export function Crumbs({ shown }: { shown: Shown }) {
  return (
    <>
      <ol className="crumbs">
        <li><Link href="/workflows">Workflows</Link></li>
        <li aria-current="page"><h1 className="ed-title clip">{shown.flow.name || "New workflow"}</h1></li>
      </ol>
      <span className="tag">{shown.base.version === 0 ? "never deployed" : shown.safe === "same" ? `v${shown.base.version}` : `draft of v${shown.base.version}`}</span>
    </>
  );
}

/** Says how safe the work is, and never more than is true. */
export function SafeChip({ shown, saving, fixed }: { shown: Shown; saving: Saving; fixed: boolean }) {
  if (fixed) return <span className="tag ed-readonly">read only</span>;
  const [word, tone] = safeWord(shown, saving);
  return (
    <span className="ed-safe c2" role="status" data-tone={tone}>
      {tone === "done" && <span className="tone"><Icon name="check" /></span>}
      {word}
      {saving.kind === "saved" && shown.safe === "same" && <> <Time at={saving.at} as="relative" /></>}
    </span>
  );
}

function safeWord(shown: Shown, saving: Saving): [string, "done" | "fail" | "idle"] {
  if (shown.safe === "lost") return ["Not kept: this device has no room", "fail"];
  if (shown.safe === "keeping") return ["Keeping…", "idle"];
  if (shown.safe === "kept") return ["Kept on this device", "done"];
  if (saving.kind === "saving") return ["Saving the drawing…", "idle"];
  if (saving.kind === "refused") return [`The drawing is not saved: ${saving.why}`, "fail"];
  if (saving.kind === "saved") return ["Drawing saved", "done"];
  return shown.base.version === 0 ? ["Nothing drawn yet", "idle"] : ["As deployed", "done"];
}

interface ActionsProps {
  shown: Shown;
  fixed: boolean;
  phone: boolean;
  onDeploy: () => void;
  onStart: () => void;
  onTry: () => void;
}

export function Actions({ shown, fixed, phone, onDeploy, onStart, onTry }: ActionsProps) {
  const mayRun = useMay("operator");
  const { base, text, safe, flow } = shown;
  const counts = base.version === 0 || safe === "same" ? null : lineCounts(lineDiff(base.text, text));
  return (
    <>
      {!phone && <More shown={shown} fixed={fixed} />}
      {mayRun && base.version > 0 && (fixed || safe === "same") && <Button kind="ghost" icon="play" onClick={onStart}>Start run</Button>}
      {mayRun && !fixed && (base.version === 0 || safe !== "same") && <Button kind="ghost" icon="play" disabled={flow.nodes.length === 0} onClick={onTry}>Run draft</Button>}
      {!fixed && counts !== null && <Button icon="diff" onClick={onDeploy}>Diff to v{base.version} <span data-tone="done" className="tone">+{counts.added}</span> <span data-tone="fail" className="tone">−{counts.removed}</span></Button>}
      {!fixed && <Button kind="primary" disabled={flow.nodes.length === 0 || (base.version > 0 && safe === "same")} onClick={onDeploy}>{base.version === 0 ? "Deploy…" : `Deploy v${base.version + 1}…`}</Button>}
    </>
  );
}
