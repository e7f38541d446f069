// The workbench: palette, graph, YAML, problems, inspector, simulation, around one draft.
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useLocation, useSearch } from "wouter";
import { useMay } from "@/api/session";
import { fetched } from "@/ui/fetched";
import { Button, Loading, Page } from "@/ui/parts";
import { StartRun } from "@/views/runs/start";
import { EditorContext, type Editing, type Played, type Selection } from "./context";
import { DeployDialog, NewerDialog } from "./deploy";
import type { Draft, Places } from "./draft";
import { tidyUp } from "./edits";
import { Graph } from "./graph/graph";
import { Actions, Crumbs, SafeChip } from "./header";
import { Inspector } from "./inspector/inspector";
import type { Kept } from "./keep";
import { Notices } from "./notices";
import { Palette } from "./palette";
import { Problems } from "./problems";
import { KeysDialog, RunDraft } from "./run-draft";
import { Simulation } from "./simulation";
import { useCheck } from "./use-check";
import { useKeys } from "./use-keys";
import { useNewer } from "./use-newer";
import { useSaving } from "./use-saving";
import { useMedia } from "./use-wide";

const Code = fetched(() => import("./code/code"));
export type Panes = "graph" | "split" | "yaml";

/** What is selected stands in the address. */
function useSelection(): [Selection, (selection: Selection) => void] {
  const [place, navigate] = useLocation();
  const asked = new URLSearchParams(useSearch());
  const [node, edge, mark] = [asked.get("node"), asked.get("edge"), asked.get("mark")];
  const selection = useMemo<Selection>(() => (node !== null ? { node } : edge !== null ? { edge } : mark !== null ? { mark } : null), [node, edge, mark]);
  const select = (next: Selection) => navigate(next === null ? place : `${place}?${new URLSearchParams({ ...next }).toString()}`, { replace: true });
  return [selection, select];
}

export function Workbench({ draft, kept }: { draft: Draft; kept: Kept | null }) {
  const shown = useSyncExternalStore(draft.watch, draft.get);
  const phone = useMedia("(max-width: 719px)");
  const fixed = !useMay("author") || phone;
  const [, navigate] = useLocation();
  const [selection, select] = useSelection();
  const [connecting, setConnecting] = useState<Editing["connecting"]>(null);
  const [played, setPlayed] = useState<ReadonlyMap<string, Played>>(new Map());
  const [panes, setPanes] = useState<Panes>("split");
  const [dialog, setDialog] = useState<"deploy" | "newer" | "start" | "try" | "keys" | null>(null);
  const placesNow = useRef<Places>({});
  const checked = useCheck(shown.text, shown.broken);
  const saving = useSaving(draft, shown, fixed);
  const [newer, setNewer] = useNewer(draft, shown.flow.name, shown.base.version);
  const errors = checked.findings.filter((one) => one.error).length + (shown.broken !== null && checked.of !== shown.text ? 1 : 0);
  const editing = useMemo<Editing>(() => ({ draft, selection, select, findings: checked.findings, fixed, connecting, setConnecting, placesNow, played }), [draft, selection, checked.findings, fixed, connecting, played]);
  useKeys(editing, { deploy: () => shown.safe !== "same" && setDialog("deploy"), help: () => setDialog("keys") });
  useEffect(() => {
    addEventListener("pagehide", draft.flush);
    return () => {
      removeEventListener("pagehide", draft.flush);
      draft.flush();
    };
  }, [draft]);
  const seen = phone && panes === "split" ? "graph" : panes;
  return (
    <EditorContext.Provider value={editing}>
      <Page
        title={shown.flow.name || "New workflow"} className="ed" crumbs={<Crumbs shown={shown} />} badge={<SafeChip shown={shown} saving={saving} fixed={fixed} />}
        actions={<Actions shown={shown} fixed={fixed} phone={phone} onDeploy={() => setDialog("deploy")} onStart={() => setDialog("start")} onTry={() => setDialog("try")} />}
      >
        {!fixed && seen !== "yaml" && <Palette />}
        <div className={`ed-centre is-${seen}`}>
          <Notices draft={draft} kept={kept} newer={newer} onNewer={() => setDialog("newer")} />
          {seen !== "yaml" && <Graph tools={<><Tools editing={editing} onKeys={() => setDialog("keys")} />{<Switch panes={seen} phone={phone} onPanes={setPanes} />}</>} />}
          {seen !== "graph" && (
            <div className="ed-dock">
              <section className="ed-yaml" aria-label="YAML">
                <header className="ed-dock-head">
                  <b className="mono">{shown.flow.name || "untitled"}.yaml</b>
                  <span className="c2">{shown.broken === null ? "in step with the graph" : `cannot be read at line ${shown.broken.line}`}</span>
                  {seen === "yaml" && <span className="push"><Switch panes={seen} phone={phone} onPanes={setPanes} /></span>}
                </header>
                <Code meanwhile={<Loading what="the text" />} />
              </section>
              {!phone && <Problems checked={checked} />}
            </div>
          )}
        </div>
        {!phone && <Inspector />}
        {!phone && <Simulation checked={checked} onPlayed={setPlayed} />}
      </Page>
      {dialog === "deploy" && (
        <DeployDialog
          editing={editing} errors={errors} onClose={() => setDialog(null)}
          onNewer={(base) => { setNewer(base); setDialog("newer"); }}
          onDeployed={(workflow) => { setDialog(null); navigate(`/workflows/${encodeURIComponent(workflow)}`, { replace: true }); }}
        />
      )}
      {dialog === "newer" && newer !== null && <NewerDialog editing={editing} newer={newer} onClose={() => setDialog(null)} />}
      {dialog === "try" && <RunDraft errors={errors} onClose={() => setDialog(null)} />}
      {dialog === "keys" && <KeysDialog onClose={() => setDialog(null)} />}
      {dialog === "start" && <StartRun workflow={shown.flow.name} onClose={() => setDialog(null)} />}
    </EditorContext.Provider>
  );
}

function Tools({ editing, onKeys }: { editing: Editing; onKeys: () => void }) {
  const { draft, fixed, selection, connecting, setConnecting } = editing;
  const { names } = useSyncExternalStore(draft.watch, draft.get);
  if (fixed) return null;
  const node = selection !== null && "node" in selection ? selection.node : null;
  return (
    <div className="ed-tools" role="toolbar" aria-label="Drawing">
      <span className="ed-tool-group float">
        <Button kind="ghost" size="sm" icon="undo" aria-label={names.undo === null ? "Undo" : `Undo: ${names.undo}`} title={names.undo === null ? "Nothing to undo" : `Undo: ${names.undo}`} disabled={names.undo === null} onClick={draft.undo} />
        <Button kind="ghost" size="sm" icon="redo" aria-label={names.redo === null ? "Redo" : `Redo: ${names.redo}`} title={names.redo === null ? "Nothing to redo" : `Redo: ${names.redo}`} disabled={names.redo === null} onClick={draft.redo} />
      </span>
      <span className="ed-tool-group float">
        <Button kind="ghost" size="sm" icon="layout" onClick={() => void tidyUp(draft)}>Tidy</Button>
        <Button kind="ghost" size="sm" icon="connect" aria-pressed={connecting !== null} disabled={node === null} onClick={() => setConnecting(connecting === null && node !== null ? { from: node, to: null } : null)}>Connect <span className="kbd">C</span></Button>
        <Button kind="ghost" size="sm" icon="help" aria-label="Keys" title="Keys" onClick={onKeys} />
      </span>
      {connecting !== null && <span className="ed-hint float" role="status">{connecting.to === null ? `From ${connecting.from}: choose a node` : `${connecting.from} → ${connecting.to}: Enter connects, Escape does not`}</span>}
    </div>
  );
}

function Switch({ panes, phone, onPanes }: { panes: Panes; phone: boolean; onPanes: (panes: Panes) => void }) {
  const all: [Panes, string][] = [["graph", "Graph"], ["split", "Split"], ["yaml", "YAML"]];
  return (
    <div className="seg ed-switch" role="group" aria-label="What is shown">
      {all.filter(([pane]) => !(phone && pane === "split")).map(([pane, name]) => <button key={pane} type="button" aria-pressed={panes === pane} onClick={() => onPanes(pane)}>{name}</button>)}
    </div>
  );
}
