// A list of the service as a table: read by pages, each row with its acts, said what it is when it is empty.
import { useCallback, useEffect, useState, type ReactNode } from "react";
import { problemOf } from "@/api/problem";
import { Dialog } from "./dialog";
import { useNow, Button, Loading, Trouble } from "./parts";

export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => ReactNode;
  readonly num?: boolean;
  readonly width?: string;
}

export interface RowAct<Row> {
  readonly name: string | ((row: Row) => string);
  readonly act: (row: Row) => Promise<unknown>;
  /** Asked before it is done: what will happen. */
  readonly sure?: (row: Row) => string;
  readonly danger?: boolean;
  readonly shown?: (row: Row) => boolean;
}

interface ListingProps<Row> {
  read: (cursor: string | null) => Promise<{ items: Row[]; next?: string | null }>;
  columns: readonly Column<Row>[];
  id: (row: Row) => string;
  empty: ReactNode;
  acts?: readonly RowAct<Row>[];
  /** Read again whenever this changes. */
  turn?: number;
  /** Read again by itself: for what has no events of its own. */
  everyMs?: number;
  what: string;
}

export function Listing<Row>({ read, columns, id, empty, acts = [], turn = 0, everyMs = 0, what }: ListingProps<Row>) {
  const [rows, setRows] = useState<Row[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [again, setAgain] = useState(0);
  const beat = Math.floor(useNow(everyMs || 3_600_000) / (everyMs || 3_600_000));
  const load = useCallback(
    async (cursor: string | null) => {
      try {
        const page = await read(cursor);
        setRows((before) => (cursor === null ? page.items : [...(before ?? []), ...page.items]));
        setNext(page.next ?? null);
        setError(null);
      } catch (problem) {
        setError(problem);
      }
    },
    [read],
  );
  useEffect(() => void load(null), [load, turn, again, beat]);
  const [asked, setAsked] = useState<{ one: RowAct<Row>; row: Row } | null>(null);
  const nameOf = (one: RowAct<Row>, row: Row) => (typeof one.name === "string" ? one.name : one.name(row));
  const perform = async (one: RowAct<Row>, row: Row) => {
    setAsked(null);
    try {
      await one.act(row);
      setAgain((before) => before + 1);
    } catch (problem) {
      setError(problemOf(problem));
    }
  };
  return (
    <>
      {error !== null && <Trouble error={error} onRetry={() => setAgain((before) => before + 1)} />}
      {rows === null && error === null && <Loading what={what} />}
      {rows?.length === 0 && <div className="empty card">{empty}</div>}
      {rows !== null && rows.length > 0 && (
        <div className="card scroll" role="region" aria-label={what} tabIndex={0}>
          <table className="table table-dense listing">
            <thead>
              <tr>
                {columns.map((column) => <th key={column.head} className={column.num ? "num" : ""} style={column.width === undefined ? undefined : { width: column.width }}>{column.head}</th>)}
                {acts.length > 0 && <th style={{ width: `${40 + acts.length * 84}px` }}><span className="sr">Acts</span></th>}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={id(row)}>
                  {columns.map((column) => <td key={column.head} className={column.num ? "num" : ""} data-head={column.head}>{column.cell(row)}</td>)}
                  {acts.length > 0 && (
                    <td className="num listing-last">
                      <span className="row push listing-acts">
                        {acts.filter((one) => one.shown?.(row) ?? true).map((one, at) => <Button key={at} size="sm" kind={one.danger ? "danger" : "plain"} onClick={() => (one.sure === undefined ? void perform(one, row) : setAsked({ one, row }))}>{nameOf(one, row)}</Button>)}
                      </span>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {next !== null && <Button onClick={() => void load(next)}>Show more</Button>}
      {asked !== null && (
        <Dialog title={`${nameOf(asked.one, asked.row)} ${id(asked.row)}`} onClose={() => setAsked(null)} foot={<><Button onClick={() => setAsked(null)}>Keep it</Button><Button kind={asked.one.danger ? "danger-solid" : "primary"} autoFocus onClick={() => void perform(asked.one, asked.row)}>{nameOf(asked.one, asked.row)}</Button></>}>
          <p>{asked.one.sure?.(asked.row)}</p>
        </Dialog>
      )}
    </>
  );
}
