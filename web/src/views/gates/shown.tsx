// The input of a gate as people read it: text, numbers, tables of objects, pictures and files of the run; JSON only
// where nothing else fits, folded when it is long. Everything is text, however it was made.
import { useMemo, type ReactNode } from "react";
import { api, given } from "@/api/client";
import { words } from "@/model/form";
import { useAsk } from "@/ui/ask";
import { Prose } from "@/ui/prose";
import { FileLink, isPicture, Picture, type Artifact } from "./files";

const DEPTH_MAX = 4;
const ROWS_MAX = 200;
const JSON_OPEN = 1_000; // characters of JSON that are shown unfolded
const JSON_MAX = 100_000;

type Files = ReadonlyMap<string, Artifact>;
interface Seen {
  readonly files: Files;
  readonly run: string;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
const isNamed = (value: unknown): value is { name: string; digest: string } => isObject(value) && typeof value["name"] === "string" && typeof value["digest"] === "string";

/** Whether some part of a value looks like a file of the run. */
function hasFiles(value: unknown, depth = 0): boolean {
  if (isNamed(value)) return true;
  if (depth > DEPTH_MAX + 2 || typeof value !== "object" || value === null) return false;
  return Object.values(value).slice(0, ROWS_MAX).some((part) => hasFiles(part, depth + 1));
}

const fileOf = (value: unknown, { files }: Seen): Artifact | null => {
  const known = isNamed(value) ? files.get(value.name) : undefined;
  return known !== undefined && known.digest === (value as { digest: string }).digest ? known : null;
};

export function Shown({ value, run }: { value: unknown; run: string }) {
  const wanted = useMemo(() => hasFiles(value), [value]);
  const listed = useAsk(wanted ? run : null, (signal) => given(api.GET("/api/v1/runs/{run}/artifacts", { params: { path: { run } }, signal })));
  const seen: Seen = { run, files: new Map((listed.data?.items ?? []).map((file) => [file.name, file as Artifact])) };
  if (value === null || value === undefined || value === "" || (typeof value === "object" && Object.keys(value).length === 0)) return null;
  if (!isObject(value) || fileOf(value, seen) !== null) return <section>{whole(value, seen, 0)}</section>;
  const parts = Object.entries(value);
  const small = parts.filter(([, part]) => !isWide(part, seen));
  return (
    <>
      {small.length > 0 && <dl className="kv gates-kv">{small.map(([key, part]) => <Pair key={key} name={key}>{whole(part, seen, 1)}</Pair>)}</dl>}
      {parts.filter(([, part]) => isWide(part, seen)).map(([key, part]) => (
        <section key={key}>
          <h3>{words(key)}</h3>
          {whole(part, seen, 1)}
        </section>
      ))}
    </>
  );
}

function Pair({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{words(name)}</dt>
      <dd>{children}</dd>
    </>
  );
}

function isWide(value: unknown, seen: Seen): boolean {
  if (typeof value === "string") return value.includes("\n") || value.length > 90;
  const file = fileOf(value, seen);
  if (file !== null) return isPicture(file);
  return isObject(value) ? Object.keys(value).length > 0 : Array.isArray(value) && value.some((part) => typeof part === "object");
}

/** A value, for a place where there is room for it. */
function whole(value: unknown, seen: Seen, depth: number): ReactNode {
  const file = fileOf(value, seen);
  if (file !== null) return isPicture(file) ? <Picture file={file} run={seen.run} /> : <FileLink file={file} run={seen.run} />;
  if (value === null || value === undefined) return <span className="c2">none</span>;
  if (typeof value === "boolean") return value ? "Yes" : "No";
  if (typeof value === "number") return <span>{value.toLocaleString()}</span>;
  if (typeof value === "string") return value.includes("\n") || value.length > 90 ? <div className="gates-quote"><Prose text={value} /></div> : <span className="gates-text">{value}</span>;
  if (depth >= DEPTH_MAX) return <Json value={value} />;
  if (Array.isArray(value)) return several(value, seen, depth);
  return <dl className="kv gates-kv">{Object.entries(value).slice(0, ROWS_MAX).map(([key, part]) => <Pair key={key} name={key}>{whole(part, seen, depth + 1)}</Pair>)}</dl>;
}

function several(value: readonly unknown[], seen: Seen, depth: number): ReactNode {
  if (value.length === 0) return <span className="c2">none</span>;
  const files = value.map((part) => fileOf(part, seen));
  if (files.every((file) => file !== null && isPicture(file))) return <div className="gates-pictures">{files.map((file) => <Picture key={file!.name} file={file!} run={seen.run} />)}</div>;
  if (value.every((part) => isObject(part) && Object.keys(part).length > 0 && fileOf(part, seen) === null)) return <Rows rows={value as Record<string, unknown>[]} seen={seen} depth={depth} />;
  return (
    <>
      <ul className="gates-items">{value.slice(0, ROWS_MAX).map((part, at) => <li key={at}>{whole(part, seen, depth + 1)}</li>)}</ul>
      <More count={value.length - ROWS_MAX} />
    </>
  );
}

const More = ({ count }: { count: number }) => (count > 0 ? <p className="c2">and {count.toLocaleString()} more</p> : null);

function Rows({ rows, seen, depth }: { rows: readonly Record<string, unknown>[]; seen: Seen; depth: number }) {
  const shown = rows.slice(0, ROWS_MAX);
  const columns = [...new Set(shown.flatMap((row) => Object.keys(row)))];
  const numbers = new Set(columns.filter((key) => shown.every((row) => !Object.hasOwn(row, key) || typeof row[key] === "number")));
  return (
    <>
      <div className="gates-table" tabIndex={0} role="region" aria-label="Table">
        <table>
          <thead><tr>{columns.map((key) => <th key={key} scope="col" className={numbers.has(key) ? "num" : ""}>{words(key)}</th>)}</tr></thead>
          <tbody>{shown.map((row, at) => <tr key={at}>{columns.map((key) => <td key={key} className={numbers.has(key) ? "num" : ""}>{Object.hasOwn(row, key) ? whole(row[key], seen, depth + 2) : ""}</td>)}</tr>)}</tbody>
        </table>
      </div>
      <More count={rows.length - ROWS_MAX} />
    </>
  );
}

export function Json({ value }: { value: unknown }) {
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? "", [value]);
  const code = <pre className="code scroll" tabIndex={0}>{text.length > JSON_MAX ? `${text.slice(0, JSON_MAX)}\n…` : text}</pre>;
  return text.length <= JSON_OPEN ? code : <details className="gates-json"><summary>JSON, {text.length.toLocaleString()} characters</summary>{code}</details>;
}
