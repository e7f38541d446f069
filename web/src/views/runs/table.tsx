// The table of runs. A row is recognised by its key, entity and tags; a live one says what it waits for.
import { Link } from "wouter";
import type { RunItem } from "@/model/run-filter";
import { Icon, Glyph } from "@/ui/icon";
import { runLook, type Look } from "@/model/states";
import { State, Time, Took } from "@/ui/parts";
import { nameOf, titled } from "@/model/run-title";
import { columnName, type Columns } from "./columns";
import type { Sentence } from "./waiting";

interface TableProps {
  columns: Columns;
  rows: readonly RunItem[];
  waiting: ReadonlyMap<string, Sentence | null>;
  fresh: number;
  onFresh: () => void;
  selected: ReadonlySet<string>;
  onSelect: (selected: ReadonlySet<string>) => void;
  selectable: boolean;
}

export function Table({ columns, rows, waiting, fresh, onFresh, selected, onSelect, selectable }: TableProps) {
  const all = rows.length > 0 && rows.every((row) => selected.has(row.run));
  const toggle = (run: string) => {
    const next = new Set(selected);
    if (!next.delete(run)) next.add(run);
    onSelect(next);
  };
  if (rows.length === 0 && fresh === 0) return null;
  return (
    <div className="card runs-card">
      <table className="table runs-table">
        <thead>
          <tr>
            {selectable && (
              <th className="runs-check">
                <input className={selected.size > 0 && !all ? "check is-some" : "check"} type="checkbox" checked={all} onChange={() => onSelect(all ? new Set() : new Set(rows.map((row) => row.run)))} aria-label={`Select all ${rows.length}`} />
              </th>
            )}
            <th className="runs-status">Status</th>
            <th className="runs-name">Run</th>
            {columns.shown.map((field) => <th key={field} className="runs-field" title={field}><span className="runs-in" aria-hidden="true">in</span>{columnName(field)}</th>)}
            <th className="runs-entity">Entity</th>
            <th className="runs-tags">Tags</th>
            <th className="runs-wait">Waiting for</th>
            <th className="runs-time num" aria-sort="descending">Started</th>
            <th className="runs-time num">Duration</th>
          </tr>
        </thead>
        <tbody>
          {fresh > 0 && (
            <tr className="runs-fresh">
              <td colSpan={(selectable ? 8 : 7) + columns.shown.length}>
                <button type="button" className="link" onClick={onFresh}><Icon name="up" size={14} /> {fresh} new {fresh === 1 ? "run" : "runs"} <span className="kbd">N</span></button>
              </td>
            </tr>
          )}
          {rows.map((row) => (
            <tr key={row.run} aria-selected={selected.has(row.run) || undefined}>
              {selectable && (
                <td className="runs-check">
                  <input className="check" type="checkbox" checked={selected.has(row.run)} onChange={() => toggle(row.run)} aria-label={`Select ${nameOf(row)}`} />
                </td>
              )}
              <td><State look={lookOf(row, waiting.get(row.run) ?? null)} /></td>
              <td>
                <Link className="runs-link" href={`/runs/${encodeURIComponent(row.run)}`}>
                  <span className="two b">{rowName(row, columns)}</span>
                </Link>
                <span className="two">{row.workflow} v{row.version} · <span className="mono">{row.run.slice(-8)}</span></span>
              </td>
              {columns.shown.map((field) => <td key={field}><span className="clip runs-value" title={shown(row.fields?.[field])}>{shown(row.fields?.[field]) || <span className="c2">–</span>}</span></td>)}
              <td>{row.entity === null ? <span className="c2">–</span> : <span className="row"><span className="avatar avatar-sm">{row.entity.split("/").at(-1)?.[0]?.toUpperCase()}</span><span className="clip">{row.entity}</span></span>}</td>
              <td><span className="row row-4">{row.tags.length === 0 && <span className="c2 runs-none">–</span>}{row.tags.slice(0, 3).map((tag) => <span key={tag} className="tag">{tag}</span>)}{row.tags.length > 3 && <span className="c2">+{row.tags.length - 3}</span>}</span></td>
              <td><Waits sentence={waiting.get(row.run) ?? null} isLive={row.ended === null} /></td>
              <td className="num"><Time at={row.started} as="short" /></td>
              <td className="num"><Took from={row.started} to={row.ended} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The status of a run; one that does nothing but wait says so, in the tone of what it waits for. */
function lookOf(row: RunItem, sentence: Sentence | null): Look {
  if (row.status !== "running" || sentence === null || !sentence.isAll) return runLook(row.status);
  return { ...sentence.look, word: sentence.look.tone === "retry" ? "retrying" : "waiting" };
}

const shown = (value: unknown): string => (value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));

export function rowName(row: RunItem, columns: Columns): string {
  const template = columns.templateOf(row.workflow);
  return nameOf(row, template === null ? null : titled(template, (field) => row.fields?.[field]));
}

function Waits({ sentence, isLive }: { sentence: Sentence | null; isLive: boolean }) {
  if (sentence === null || !isLive) return <span className="c2">–</span>;
  return (
    <span className="runs-sentence" data-tone={sentence.look.tone} title={sentence.text}>
      <span className="tone"><Glyph name={sentence.look.glyph} small /></span>
      <span className="clip">{sentence.text}</span>
    </span>
  );
}
