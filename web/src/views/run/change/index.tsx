// Changes to a run that have a form: each is fetched with this part when the first one is chosen.
import type { Change } from "../acts/use-acts";
import { useRunPage, useSeen } from "../context";
import { BudgetChange } from "./budget";
import { EditChange } from "./edit";
import { ForkChange } from "./fork";
import { InputChange, JumpChange, SkipChange } from "./visit";
import { MigrateDialog } from "@/views/migrate/migrate";
import { titleOf } from "../header";

export default function ChangeDialog({ change, onClose }: { change: Change; onClose: () => void }) {
  const { store } = useRunPage();
  const { detail, state, canvas } = useSeen();
  const visit = change.visit === undefined ? undefined : state.visits.get(change.visit);
  if (change.change === "fork") return <ForkChange at={change.at ?? null} visit={visit} onClose={onClose} />;
  if (change.change === "edit") return <EditChange branch={visit} onClose={onClose} />;
  if (change.change === "budget" && detail?.budget != null) return <BudgetChange budget={detail.budget} onClose={onClose} />;
  if (change.change === "migrate" && detail !== null) {
    return <MigrateDialog workflow={detail.workflow} runs={[{ run: store.run, version: detail.version, name: titleOf(detail, store.run, canvas) }]} onClose={onClose} />;
  }
  if (visit === undefined) return null;
  if (change.change === "skip") return <SkipChange visit={visit} onClose={onClose} />;
  return change.change === "jump" ? <JumpChange visit={visit} onClose={onClose} /> : <InputChange visit={visit} onClose={onClose} />;
}
