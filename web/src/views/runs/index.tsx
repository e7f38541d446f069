// The list of runs: what runs, what is stuck, what failed; filters that can exclude, saved views, acts on many.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useLocation, useSearch } from "wouter";
import { useMay } from "@/api/session";
import { inputFields, LIVE, readClauses, writeClauses, type Clause } from "@/model/run-filter";
import { Icon } from "@/ui/icon";
import { LiveChip } from "@/ui/live-chip";
import { Button, Loading, Page, Trouble } from "@/ui/parts";
import { BulkBar } from "./bulk";
import { ColumnsDialog, useColumns } from "./columns";
import { Filters } from "./filters";
import { FirstMinute } from "./first";
import { keepList, keptList, useHidden, useRunList } from "./list";
import { Search } from "./search";
import { StartRun } from "./start";
import { Table } from "./table";
import { Views } from "./views";
import { useWaiting } from "./waiting";
import "./runs.css";

const FIELDS_MAX = 10; // of one question

export const LIST_KEY = "treadle.runs.list";

export default function Runs() {
  const search = useSearch();
  const [, navigate] = useLocation();
  const clauses = useMemo(() => readClauses(search), [search]);
  const key = writeClauses(clauses);
  const [listed, setListed] = useState<readonly string[]>([]);
  const columns = useColumns(listed);
  const list = useRunList(clauses, key, [...new Set([...inputFields(clauses), ...columns.asked])].slice(0, FIELDS_MAX));
  useEffect(() => setListed(list.rows.map((row) => row.workflow)), [list.rows]);
  const hidden = useHidden(clauses, key, list.rows.length);
  const [choosing, setChoosing] = useState(false);
  const waiting = useWaiting(list.rows);
  const [selected, setSelected] = useState<ReadonlySet<string>>(() => keptList(key)?.selected ?? new Set());
  const [starting, setStarting] = useState(false);
  const mayOperate = useMay("operator");

  const choose = useCallback((next: readonly Clause[]) => navigate(`/runs?${writeClauses(next)}`), [navigate]);
  const seenKey = useRef(key);
  useEffect(() => {
    if (seenKey.current !== key) setSelected(new Set());
    seenKey.current = key;
  }, [key]);
  useEffect(() => keepList(key, { selected }), [key, selected]);
  useLayoutEffect(() => {
    const element = document.querySelector<HTMLElement>("main.runs");
    if (element !== null) element.scrollTop = keptList(key)?.top ?? 0;
    const keep = () => keepList(key, { top: element?.scrollTop ?? 0 });
    element?.addEventListener("scroll", keep, { passive: true });
    return () => element?.removeEventListener("scroll", keep);
  }, [key]);
  useEffect(() => sessionStorage.setItem(LIST_KEY, JSON.stringify(list.rows.map((row) => row.run))), [list.rows]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key === "n" && !event.ctrlKey && !event.metaKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) list.readAgain();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [list.readAgain]);

  const isFirst = !list.busy && list.error === null && list.rows.length === 0 && clauses.length === 0 && list.fresh === 0;
  return (
    <Page
      title="Runs"
      badge={<LiveChip />}
      className="runs scroll"
      actions={
        <>
          {!isFirst && <Search clauses={clauses} onChange={choose} />}
          {mayOperate && <Button kind="primary" icon="play" onClick={() => setStarting(true)}>Start run</Button>}
        </>
      }
    >
      {isFirst ? (
        <FirstMinute />
      ) : (
        <>
          <Views clauses={clauses} onChange={choose} />
          <div className="runs-bar">
            <Filters clauses={clauses} onChange={choose} />
            {hidden !== null && (
              <p className="runs-hidden c2" role="status">
                <Icon name="info" />{hidden.more ? `More than ${hidden.count.toLocaleString()}` : hidden.count.toLocaleString()} live {hidden.count === 1 && !hidden.more ? "run" : "runs"} began earlier
                <button type="button" className="link" aria-label="Show live runs of any time" onClick={() => choose([...clauses.filter((one) => one.field !== "started" && (one.field !== "status" || one.not)), { field: "status", not: false, values: LIVE }])}>Show</button>
              </p>
            )}
            <Button icon="columns" size="sm" className="push" onClick={() => setChoosing(true)}>Columns</Button>
          </div>
          {list.error !== null && <Trouble error={list.error} onRetry={list.readAgain} />}
          <Table columns={columns} rows={list.rows} waiting={waiting} fresh={list.fresh} onFresh={list.readAgain} selected={selected} onSelect={setSelected} selectable={mayOperate} />
          {list.busy && <Loading what="runs" />}
          {!list.busy && list.rows.length === 0 && list.error === null && <div className="empty">No run fits these filters.</div>}
          {list.more && !list.busy && <div className="runs-more"><Button onClick={list.readMore}>Show more</Button></div>}
          {selected.size > 0 && <BulkBar rows={list.rows} selected={selected} onSelect={setSelected} />}
        </>
      )}
      {choosing && <ColumnsDialog columns={columns} rows={list.rows} onClose={() => setChoosing(false)} />}
      {starting && <StartRun onClose={() => setStarting(false)} />}
    </Page>
  );
}
