// The inbox: open gates on the left, the chosen one with its form on the right, one answer to many below.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useLocation, useParams, useSearch } from "wouter";
import { readFilter, writeFilter, type GateFilter, type GateRow } from "@/model/gates";
import { fieldsOf } from "@/model/form";
import { LiveChip } from "@/ui/live-chip";
import { Page } from "@/ui/parts";
import type { FormActs } from "./answer";
import { BatchBar } from "./batch";
import { draftKey, useBatch } from "./batch-state";
import { dropOldDrafts } from "./drafts";
import { Gate, NoGate, useGate } from "./gate";
import { useKeys } from "./keys";
import { useGateList } from "./list";
import { useRunNames } from "./names";
import { Pane } from "./pane";
import { useAsker } from "./person";
import "./gates.css";

const isWide = () => matchMedia("(min-width: 720px)").matches;

export default function Gates() {
  const search = useSearch();
  const [, navigate] = useLocation();
  const params = useParams<{ run?: string; visit?: string }>();
  const filter = useMemo(() => readFilter(search), [search]);
  const query = writeFilter(filter);
  const person = useAsker();
  const list = useGateList(filter, query);
  const batch = useBatch(list.rows, useRunNames(list.rows));
  const [isReviewing, setReviewing] = useState(false);
  const form = useRef<FormActs | null>(null);
  const field = useRef<HTMLInputElement>(null);

  const run = params.run === undefined ? null : decodeURIComponent(params.run);
  const visit = Number(params.visit ?? "0");
  const current = run === null ? null : `${run}/${visit}`;
  const gate = useGate(run, visit);
  const href = useCallback((row: { run: string; visit: number }) => `/gates/${encodeURIComponent(row.run)}/${row.visit}${query === "" ? "" : `?${query}`}`, [query]);
  const home = query === "" ? "/gates" : `/gates?${query}`;
  const show = useCallback((row: GateRow, replace = false) => navigate(href(row), { replace }), [href, navigate]);
  const choose = useCallback((next: GateFilter) => navigate(`${run === null || !isWide() ? "/gates" : href({ run, visit }).split("?")[0]}?${writeFilter(next)}`), [navigate, run, visit, href]);

  useEffect(() => dropOldDrafts(), []);
  const [first] = list.rows;
  useEffect(() => {
    if (run === null && first !== undefined && isWide()) show(first, true);
  }, [run, first, show]);

  const isListed = list.rows.some((one) => one.gate === current);
  useEffect(() => {
    if (isListed) document.querySelector("[data-gate][aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [isListed]);

  const focusRow = (id: string) => requestAnimationFrame(() => {
    const row = document.querySelector<HTMLElement>(`[data-gate="${CSS.escape(id)}"]`);
    row?.focus();
    row?.scrollIntoView({ block: "nearest" });
  });
  const move = (by: 1 | -1) => {
    const at = list.rows.findIndex((row) => row.gate === current);
    const next = list.rows[at < 0 ? 0 : at + by];
    if (next === undefined) return;
    show(next);
    focusRow(next.gate);
  };
  const nextOpen = () => {
    const at = list.rows.findIndex((row) => row.gate === current);
    const next = [...list.rows.slice(at + 1), ...list.rows.slice(0, Math.max(at, 0))].find((row) => row.over === undefined);
    if (next === undefined) return navigate(home);
    show(next);
    focusRow(next.gate);
  };
  const select = useCallback(
    (rows: readonly GateRow[], on: boolean) => {
      const shown = gate.data;
      const mine = shown !== undefined && rows.some((row) => row.workflow === shown.workflow && row.node === shown.node);
      batch.select(rows, on, mine ? draftKey(shown) : null);
      if (on && !mine && rows[0] !== undefined && isWide()) show(rows[0]);
    },
    [batch, gate.data, show],
  );
  const row = list.rows.find((one) => one.gate === current);
  useKeys({
    move,
    enter: () => form.current?.focus(),
    send: () => (batch.rows.length > 0 && (current === null || !batch.selected.has(current)) && form.current === null ? setReviewing(true) : form.current?.send()),
    select: () => row !== undefined && row.over === undefined && person.approver && (batch.group === null || batch.group === `${row.workflow}\n${row.node}`) && select([row], !batch.selected.has(row.gate)),
    except: () => {
      if (gate.data === undefined || current === null || !batch.selected.has(current)) return;
      batch.except(current, batch.exceptions.has(current) ? null : { key: draftKey(gate.data), form: gate.data.form, fields: fieldsOf(gate.data.form) });
    },
    search: () => field.current?.focus(),
    refresh: list.readAgain,
    leave: (fromField) => {
      if (fromField && current !== null) focusRow(current);
      else if (batch.rows.length > 0) batch.leave(false);
    },
    choose: (nth) => form.current?.choose(nth) ?? false,
  });

  const changed = () => gate.again();
  return (
    <Page
      title="Gates"
      className={run === null ? "gates" : "gates has-gate"}
      badge={
        <div className="seg" role="group" aria-label="Whose">
          <button type="button" aria-pressed={filter.mine} onClick={() => choose({ ...filter, mine: true })}>For me{list.totals === null ? "" : ` ${list.totals.mine}`}</button>
          <button type="button" aria-pressed={!filter.mine} onClick={() => choose({ ...filter, mine: false })}>All{list.totals === null ? "" : ` ${list.totals.all}`}</button>
        </div>
      }
      actions={<LiveChip />}
    >
      <Pane list={list} filter={filter} current={current} batch={batch} selectable={person.approver} search={field} href={href} onFilter={choose} onSelect={select} />
      <div className="gates-right">
        {gate.data === undefined ? (
          <NoGate error={gate.error} isBusy={run !== null && gate.busy} isEmpty={!list.busy && list.rows.length === 0} onRetry={gate.again} />
        ) : (
          <Gate gate={gate.data} person={person} batch={batch} acts={form} back={home} onChanged={changed} onNext={nextOpen} onReview={() => setReviewing(true)} />
        )}
        <BatchBar batch={batch} isReviewing={isReviewing} onReview={() => setReviewing(true)} onClose={() => setReviewing(false)} onShow={show} />
      </div>
    </Page>
  );
}
