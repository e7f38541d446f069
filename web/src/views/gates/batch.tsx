// One answer to many gates: the bar under the page, the list of what will be sent, and one result for each gate.
import { useState } from "react";
import { api, given } from "@/api/client";
import { problemOf } from "@/api/problem";
import { sendings } from "@/model/batch";
import { dataOf, entriesOf, summary, type Json } from "@/model/form";
import { check, isWrong, type Wrong } from "@/model/form-check";
import type { GateRow } from "@/model/gates";
import { Dialog } from "@/ui/dialog";
import { Glyph, Icon } from "@/ui/icon";
import { Button, Trouble } from "@/ui/parts";
import { useSheet } from "./answer";
import type { BatchState, Sheet } from "./batch-state";
import { draftOf, useDrafts } from "./drafts";
import { rowName, rowPlace } from "./row-name";

/** The data of a sheet as it is now; for gates that are not on the page. */
function dataNow(sheet: Sheet): Json {
  return dataOf(sheet.fields, draftOf(sheet.key)?.entries ?? entriesOf(sheet.fields));
}

const isBad = (wrong: Wrong) => isWrong(wrong) && wrong.sure;

export function BatchBar({ batch, isReviewing, onReview, onClose, onShow }: { batch: BatchState; isReviewing: boolean; onReview: () => void; onClose: () => void; onShow: (row: GateRow) => void }) {
  if (batch.rows.length === 0) return null;
  if (batch.common === null) return <footer className="gates-batch" role="group" aria-label="Batch answer"><b>{batch.rows.length} selected</b></footer>;
  return <Bar batch={batch} common={batch.common} isReviewing={isReviewing} onReview={onReview} onClose={onClose} onShow={onShow} />;
}

function Bar({ batch, common, isReviewing, onReview, onClose, onShow }: { batch: BatchState; common: Sheet; isReviewing: boolean; onReview: () => void; onClose: () => void; onShow: (row: GateRow) => void }) {
  const { wrong, data } = useSheet(common);
  useDrafts();
  const excepted = batch.rows.filter((row) => batch.exceptions.has(row.gate));
  const alike = batch.rows.length - excepted.length;
  const open = batch.rows.filter((row) => row.over === undefined).length;
  const fix = alike > 0 && isBad(wrong) ? firstFix(common, wrong) : badException(batch, excepted);
  return (
    <footer className="gates-batch" role="group" aria-label="Batch answer">
      <span className="count" data-tone="ask">{batch.rows.length}</span><b className="nowrap">selected</b>
      {excepted.length > 0 && <span className="vr" />}
      {excepted.length > 0 && <span className="c2 nowrap">{excepted.length === 1 ? "1 exception:" : `${excepted.length} exceptions:`}</span>}
      <span className="gates-chips">
        {excepted.map((row) => (
          <span key={row.gate} className="chip chip-sm">
            <button type="button" className="chip-key" onClick={() => onShow(row)}>{rowPlace(row, batch.names)}</button>
            <span className="chip-val clip">{summary(batch.exceptions.get(row.gate)!.fields, dataNow(batch.exceptions.get(row.gate)!))}</span>
            <button type="button" className="chip-x" aria-label={`Remove exception ${rowName(row, batch.names)}`} onClick={() => batch.except(row.gate, null)}><Icon name="close" size={14} /></button>
          </span>
        ))}
      </span>
      <span className="grow" />
      <Button kind="ghost" onClick={() => batch.leave(false)}>Leave<span className="kbd">Esc</span></Button>
      {fix !== null && <span className="field-error nowrap" role="status">{fix}</span>}
      <Button kind="primary" disabled={fix !== null || open === 0} onClick={onReview}>Answer {alike === batch.rows.length ? `${alike}` : `${alike} like this`}…</Button>
      {isReviewing && fix === null && <Review batch={batch} common={data} onClose={onClose} />}
    </footer>
  );
}

function firstFix(sheet: Sheet, wrong: Wrong): string {
  const [name] = wrong.fields.keys();
  const field = sheet.fields.find((one) => name === one.name || name?.startsWith(`${one.name}/`));
  return field === undefined ? "The answer needs a fix" : `${field.label} needs a fix`;
}

function badException(batch: BatchState, excepted: readonly GateRow[]): string | null {
  const bad = excepted.find((row) => {
    const sheet = batch.exceptions.get(row.gate)!;
    return isBad(check(sheet.form, sheet.fields, dataNow(sheet)));
  });
  return bad === undefined ? null : `Exception ${rowPlace(bad, batch.names)} needs a fix`;
}

interface Result {
  readonly ok: boolean;
  readonly why: string | null;
}

function Review({ batch, common, onClose }: { batch: BatchState; common: Json; onClose: () => void }) {
  const [rows] = useState(() => batch.rows.filter((row) => row.over === undefined)); // what was listed is what is sent
  const [answers] = useState(() => new Map(rows.flatMap((row): [string, Json][] => (batch.exceptions.has(row.gate) ? [[row.gate, dataNow(batch.exceptions.get(row.gate)!)]] : []))));
  const [results, setResults] = useState<ReadonlyMap<string, Result> | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const fields = batch.common?.fields ?? [];
  const send = async () => {
    const found = new Map<string, Result>();
    setBusy(true);
    setResults(found);
    try {
      for (const body of sendings(rows, common, answers, (row) => row.gate)) {
        const told = await given(api.POST("/api/v1/gates/answer", { body } as never)) as { results: { run: string; visit: number; ok: boolean; problem?: { detail: string } }[] };
        for (const one of told.results) found.set(`${one.run}/${one.visit}`, { ok: one.ok, why: one.problem?.detail ?? null });
        setResults(new Map(found));
      }
    } catch (problem) {
      setError(problemOf(problem));
    } finally {
      setBusy(false);
    }
  };
  const done = results === null ? [] : [...results.values()];
  const isOver = results !== null && !busy;
  const close = () => {
    if (results !== null) batch.leave(true);
    onClose();
  };
  return (
    <Dialog
      title={results === null ? `Answer ${rows.length} gates` : "What became of each"}
      wide
      onClose={close}
      foot={isOver ? <Button kind="primary" onClick={close}>Done</Button> : <Button kind="primary" disabled={busy} autoFocus onClick={() => void send()}>{busy ? "Sending…" : `Send ${rows.length} answers`}</Button>}
    >
      {error !== null && <Trouble error={error} />}
      {results !== null && <p role="status"><b>{done.filter((one) => one.ok).length}</b> answered, {done.filter((one) => !one.ok).length} refused, {rows.length - done.length} left.</p>}
      <table className="table table-dense gates-review">
        <thead><tr><th>Gate</th><th>Answer</th>{results !== null && <th>Result</th>}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.gate}>
              <td><span className="b">{rowName(row, batch.names)}</span> {answers.has(row.gate) && <span className="tag">exception</span>}</td>
              <td>{summary(batch.exceptions.get(row.gate)?.fields ?? fields, answers.get(row.gate) ?? common)}</td>
              {results !== null && <td><ResultCell result={results.get(row.gate)} isOver={isOver} /></td>}
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}

function ResultCell({ result, isOver }: { result: Result | undefined; isOver: boolean }) {
  if (result === undefined) return <span className="c2">{isOver ? "not sent" : "…"}</span>;
  return <span className="state" data-tone={result.ok ? "done" : "fail"} title={result.why ?? undefined}><Glyph name={result.ok ? "done" : "fail"} />{result.ok ? "answered" : result.why}</span>;
}
