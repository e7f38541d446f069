// The editor of a workflow: reads the newest version and the draft on this device, then opens the workbench.
import { useMemo } from "react";
import { useParams, useSearch } from "wouter";
import { EXAMPLES } from "@/examples";
import { useAsk } from "@/ui/ask";
import { Loading, Page, Trouble } from "@/ui/parts";
import { Draft, type Base } from "./draft";
import { readKept, type Kept } from "./keep";
import { loadBase, NOTHING } from "./load";
import { Workbench } from "./workbench";
import "./editor.css";

interface Opened {
  readonly base: Base;
  readonly kept: Kept | null;
}

/** What the editor begins with: a draft goes on from the version that it began from, however new the newest is. */
async function open(name: string): Promise<Opened | null> {
  const kept = await readKept(name);
  if (name === "new") return { base: NOTHING, kept };
  const newest = await loadBase(name);
  if (newest === null) return kept === null ? null : { base: NOTHING, kept };
  if (kept === null || kept.base === newest.version) return { base: newest, kept: kept !== null && kept.text === newest.text ? null : kept };
  return { base: (kept.base > 0 ? await loadBase(name, kept.base) : null) ?? newest, kept };
}

export default function Editor() {
  const { workflow = "new" } = useParams<{ workflow: string }>();
  const name = decodeURIComponent(workflow);
  const opened = useAsk(name, async () => open(name));
  if (opened.error !== undefined) return <Page title={name}><Trouble error={opened.error} onRetry={opened.again} /></Page>;
  if (opened.data === undefined) return <Page title={name}><Loading what={name} /></Page>;
  if (opened.data === null) return <Page title={name}><div className="empty">There is no workflow “{name}”.</div></Page>;
  return <Opening key={name} name={name} opened={opened.data} />;
}

function Opening({ name, opened }: { name: string; opened: Opened }) {
  const search = useSearch();
  const draft = useMemo(() => {
    const example = EXAMPLES.find((one) => one.workflow === new URLSearchParams(search).get("example"));
    const start = opened.kept ?? (name === "new" && example !== undefined ? { text: example.yaml, places: {}, marks: [] } : opened.base);
    return new Draft(name, opened.base, start);
  }, [opened]);
  return <Workbench draft={draft} kept={opened.kept} />;
}
