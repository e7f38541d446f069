// Changes to one visit: complete it by hand, let it go on elsewhere, give its next attempt another input.
import { useState } from "react";
import { api, given } from "@/api/client";
import type { Event, Visit } from "@/model/fold";
import { foretold } from "@/model/foretold";
import { LARGE, largeOf } from "@/model/large";
import { visitName } from "@/model/run-look";
import { readJson } from "@/model/writes";
import { useAsk } from "@/ui/ask";
import { Loading } from "@/ui/parts";
import { useRunPage, useSeen } from "../context";
import { JsonField, pretty } from "./fields";
import { ChangeFrame } from "./frame";

type Path = "/api/v1/runs/{run}/visits/{visit}/skip" | "/api/v1/runs/{run}/visits/{visit}/jump" | "/api/v1/runs/{run}/visits/{visit}/input";

/** Sends a change of a visit, and tells what it would lead to. */
function useChange(path: Path, visit: Visit) {
  const { store } = useRunPage();
  const { state } = useSeen();
  const send = (body: object, dryRun: boolean) => given(api.POST(path, { params: { path: { run: store.run, visit: String(visit.id) } }, body: { ...body, dry_run: dryRun } as never })) as Promise<{ events: unknown }>;
  return { foretell: async (body: object) => foretold((await send(body, true)).events as Event[], state), perform: (body: object) => send(body, false) };
}

export function SkipChange({ visit, onClose }: { visit: Visit; onClose: () => void }) {
  const change = useChange("/api/v1/runs/{run}/visits/{visit}/skip", visit);
  const [text, setText] = useState("{}");
  const { value, problem } = readJson(text);
  return (
    <ChangeFrame title={`Skip ${visitName(visit)}`} confirm="Skip it" body={problem === null ? { output: value } : null} onClose={onClose} {...change}
      about="The visit completes with the output that you give; its own work is told to stop and is not done.">
      <JsonField label="Output, as JSON" text={text} onChange={setText} hint="What its mapping and the steps behind it read instead." />
    </ChangeFrame>
  );
}

export function JumpChange({ visit, onClose }: { visit: Visit; onClose: () => void }) {
  const { graph } = useSeen();
  const change = useChange("/api/v1/runs/{run}/visits/{visit}/jump", visit);
  const [to, setTo] = useState("");
  return (
    <ChangeFrame title={`Let ${visitName(visit)} go on elsewhere`} confirm="Jump" body={to === "" ? null : { to }} onClose={onClose} {...change}
      about="The visit ends here as cancelled, and a token is made at the node that you choose, in the same branches.">
      <label className="field">
        <span className="label">Node</span>
        <select className="select" value={to} onChange={(event) => setTo(event.target.value)}>
          <option value="" disabled>Choose a node</option>
          {(graph?.nodes ?? []).map((node) => <option key={node.ref} value={node.ref}>{node.words === "" ? node.ref : `${node.ref} · ${node.words}`}</option>)}
        </select>
      </label>
    </ChangeFrame>
  );
}

export function InputChange({ visit, onClose }: { visit: Visit; onClose: () => void }) {
  const { store } = useRunPage();
  const asked = useAsk(`${store.run} ${visit.id}`, () => given(api.GET("/api/v1/runs/{run}/visits/{visit}", { params: { path: { run: store.run, visit: String(visit.id) }, query: { value_max: LARGE } } })));
  const change = useChange("/api/v1/runs/{run}/visits/{visit}/input", visit);
  const [typed, setText] = useState<string | null>(null);
  const text = typed ?? (asked.data === undefined || largeOf(asked.data.input) !== null ? "{}" : pretty(asked.data.input));
  const { value, problem } = readJson(text);
  return (
    <ChangeFrame title={`Set the input of ${visitName(visit)}`} confirm="Set it" body={problem !== null || asked.busy ? null : { input: value }} onClose={onClose} {...change}
      about="The next attempt of this visit is given exactly this, instead of what its mapping says. Nothing begins by it: retry the visit, or resume the run.">
      {asked.busy && asked.data === undefined ? <Loading what="its last input" /> : <JsonField label="Input, as JSON" text={text} onChange={setText} hint="It begins with what the last attempt was given." rows={10} />}
    </ChangeFrame>
  );
}
