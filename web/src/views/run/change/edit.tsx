// Writing into the data of a run that stands still: the run's own, or that of one branch.
import { useMemo, useState } from "react";
import { api, given } from "@/api/client";
import { frameKey, scopeView, type Event, type Visit } from "@/model/fold";
import { foretold } from "@/model/foretold";
import { EMPTY_ROW, placesOf, readRows, type WriteRow } from "@/model/writes";
import { useRunPage, useSeen } from "../context";
import { WriteRows } from "./fields";
import { ChangeFrame } from "./frame";

export function EditChange({ branch, onClose }: { branch: Visit | undefined; onClose: () => void }) {
  const { store } = useRunPage();
  const { state } = useSeen();
  const [rows, setRows] = useState<readonly WriteRow[]>([EMPTY_ROW]);
  const known = useMemo(() => {
    const frame = branch?.frames.findLast(([group, index]) => state.scopes.has(frameKey([group, index]))) ?? null;
    const { state: data, output } = scopeView(state, frameKey(frame));
    return [...placesOf(data, "state"), ...placesOf(output, "output")];
  }, [state, branch]);
  const { writes, problem } = readRows(rows);
  const body = writes === null || Object.keys(writes).length === 0 ? null : { writes, ...(branch === undefined ? {} : { branch: branch.id }) };
  const send = (asked: NonNullable<typeof body>, dryRun: boolean) => given(api.POST("/api/v1/runs/{run}/edit", { params: { path: { run: store.run } }, body: { ...asked, dry_run: dryRun } as never }));
  return (
    <ChangeFrame
      title={branch === undefined ? "Edit the data of this run" : `Edit the data of the branch of ${branch.path}`} confirm="Write" body={body} onClose={onClose} wide
      about="Values are written as if a step had written them; the history keeps that you did. Conditions and inputs that are evaluated from now on read them."
      foretell={async (asked) => foretold((await send(asked, true)).events as unknown as Event[], state)} perform={(asked) => send(asked, false)}
    >
      <WriteRows label="Values" rows={rows} onChange={setRows} known={known} placeholder="state.…" add="Another value" problem={problem} />
    </ChangeFrame>
  );
}
