// Comments on a gate, with attachments. What is being written is kept as a draft, like an answer.
import { useState } from "react";
import { api, given } from "@/api/client";
import type { GateView } from "@/model/gates";
import { Icon } from "@/ui/icon";
import { Button, Time, Trouble } from "@/ui/parts";
import { Prose } from "@/ui/prose";
import { draftKey } from "./batch-state";
import { dropDraft, keepDraft, useDraft } from "./drafts";
import { addFile, FileButton, FileLink, isPicture, Picture } from "./files";
import { initials } from "./person";

export function Talk({ gate, mayComment, onChanged }: { gate: GateView; mayComment: boolean; onChanged: () => void }) {
  const pictures = gate.attachments.filter(isPicture);
  const files = gate.attachments.filter((file) => !isPicture(file));
  if (gate.comments.length === 0 && !mayComment) return null;
  return (
    <section className="gates-talk">
      <h3>Comments {gate.comments.length > 0 && <span className="count">{gate.comments.length}</span>}</h3>
      <ol>
        {gate.comments.map((comment, at) => (
          <li key={at}>
            <span className="avatar avatar-sm">{initials(comment.by ?? "?")}</span>
            <div className="grow"><b>{comment.by ?? "Somebody"}</b> <span className="c2"><Time at={comment.at} /></span><Prose text={comment.text} /></div>
          </li>
        ))}
      </ol>
      {pictures.length > 0 && <div className="gates-pictures">{pictures.map((file) => <Picture key={file.name} file={file} run={gate.run} />)}</div>}
      {files.length > 0 && <p className="gates-files">{files.map((file) => <FileLink key={file.name} file={file} run={gate.run} />)}</p>}
      {mayComment && <Write gate={gate} onChanged={onChanged} />}
    </section>
  );
}

function Write({ gate, onChanged }: { gate: GateView; onChanged: () => void }) {
  const key = `${draftKey(gate)} comment`;
  const text = useDraft(key)?.comment ?? "";
  const [files, setFiles] = useState<readonly string[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const attach = async (chosen: File[]) => {
    try {
      for (const file of chosen) {
        const name = await addFile(gate.run, gate.visit, "comment", file);
        setFiles((before) => [...new Set([...before, name])]);
      }
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  const send = async () => {
    if (busy || (text.trim() === "" && files.length === 0)) return;
    setBusy(true);
    try {
      await given(api.POST("/api/v1/gates/{run}/{visit}/comment", { params: { path: { run: gate.run, visit: String(gate.visit) } }, body: { text: text.trim(), attachments: [...files] } } as never));
      dropDraft(key);
      setFiles([]);
      setError(null);
      onChanged();
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className="gates-write" onSubmit={(event) => { event.preventDefault(); void send(); }}>
      <textarea
        className="textarea" rows={1} aria-label="Comment on this gate" placeholder="Write a comment" value={text}
        onChange={(event) => keepDraft(key, { entries: {}, comment: event.target.value })}
        onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); event.stopPropagation(); void send(); } }}
      />
      <FileButton label="Attach" many onFiles={attach} />
      <Button size="sm" type="submit" disabled={busy || (text.trim() === "" && files.length === 0)}>Comment</Button>
      {files.length > 0 && <p className="gates-files">{files.map((name) => <span key={name} className="tag gates-file"><Icon name="doc" size={14} /><span className="clip">{name}</span><button type="button" className="chip-x" aria-label={`Leave out ${name}`} onClick={() => setFiles((before) => before.filter((one) => one !== name))}><Icon name="close" size={14} /></button></span>)}</p>}
      {error !== null && <Trouble error={error} />}
    </form>
  );
}
