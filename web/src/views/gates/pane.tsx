// The list of open gates, by workflow and node.
import { useState, type RefObject } from "react";
import { Link } from "wouter";
import { dueWords, grouped, type GateFilter, type GateGroup, type GateRow } from "@/model/gates";
import { words } from "@/model/form";
import { duration } from "@/model/time";
import { Glyph, Icon } from "@/ui/icon";
import { Button, Loading, Trouble, useNow } from "@/ui/parts";
import type { BatchState } from "./batch-state";
import type { GateList } from "./list";
import { rowName, rowPlace, rowTitle } from "./row-name";
import { Search } from "./search";

interface PaneProps {
  list: GateList;
  filter: GateFilter;
  current: string | null;
  batch: BatchState;
  selectable: boolean;
  search: RefObject<HTMLInputElement | null>;
  href: (row: GateRow) => string;
  onFilter: (filter: GateFilter) => void;
  onSelect: (rows: readonly GateRow[], on: boolean) => void;
}

export function Pane({ list, filter, current, batch, selectable, search, href, onFilter, onSelect }: PaneProps) {
  const groups = grouped(list.rows);
  const known = new Set(groups.map((group) => group.key));
  const elsewhere = [...list.fresh].filter(([key]) => !known.has(key)).reduce((sum, [, count]) => sum + count, 0);
  const fresh = [...list.fresh.values()].reduce((sum, count) => sum + count, 0);
  const over = list.rows.filter((row) => row.over !== undefined).length;
  const isFiltered = filter.workflow !== "" || filter.node !== "";
  return (
    <nav className="gates-pane" aria-label="Open gates">
      <div className="gates-filter">
        <Search field={search} text={filter.text} onText={(text) => onFilter({ ...filter, text })} />
        <Button size="sm" icon="clock" aria-pressed={filter.overdue} onClick={() => onFilter({ ...filter, overdue: !filter.overdue })}>Overdue</Button>
        {isFiltered && <span className="chip chip-sm"><span className="chip-key">Only</span><span className="chip-val clip">{[filter.workflow, filter.node].filter(Boolean).join(" · ")}</span><button type="button" className="chip-x" aria-label="Show all workflows" onClick={() => onFilter({ ...filter, workflow: "", node: "" })}><Icon name="close" size={14} /></button></span>}
      </div>
      <div className="gates-scroll">
        {(fresh > 0 || over > 0) && (
          <div className="gates-fresh" role="status">
            <button type="button" className="link" onClick={list.readAgain}>
              <Icon name="retry" size={14} /> {[fresh > 0 ? `${fresh} new` : "", over > 0 ? `${over} not open any more` : ""].filter(Boolean).join(", ")} <span className="kbd">N</span>
            </button>
            {elsewhere > 0 && <span className="sr">{elsewhere} at other nodes</span>}
          </div>
        )}
        {list.error !== null && <Trouble error={list.error} onRetry={list.readAgain} />}
        {groups.map((group) => <Group key={group.key} group={group} list={list} current={current} batch={batch} selectable={selectable} href={href} onSelect={onSelect} onOnly={() => onFilter({ ...filter, workflow: group.workflow, node: group.node })} />)}
        {list.busy && list.rows.length === 0 && <Loading what="gates" />}
        {!list.busy && list.rows.length === 0 && list.error === null && <div className="empty">{filter.mine || filter.overdue || isFiltered || filter.text !== "" ? "No open gate fits this filter." : "Nobody is asked anything. Gates appear here as soon as a run waits for a person."}</div>}
        {list.more && <div className="gates-more"><Button size="sm" disabled={list.busy} onClick={list.readMore}>Show more</Button></div>}
      </div>
      <footer className="gates-keys" aria-hidden="true">
        <span><span className="kbd">J</span><span className="kbd">K</span>move</span>{selectable && <><span><span className="kbd">X</span>select</span><span><span className="kbd">E</span>except</span><span><span className="kbd">↵</span>answer</span></>}
      </footer>
    </nav>
  );
}

interface GroupProps extends Pick<PaneProps, "list" | "current" | "batch" | "selectable" | "href" | "onSelect"> {
  group: GateGroup;
  onOnly: () => void;
}

function Group({ group, list, current, batch, selectable, href, onSelect, onOnly }: GroupProps) {
  const [open, setOpen] = useState(true);
  const choosable = group.rows.filter((row) => row.over === undefined && row.can.includes("answer"));
  const chosen = choosable.filter((row) => batch.selected.has(row.gate)).length;
  const mayChoose = selectable && choosable.length > 0 && (batch.group === null || batch.group === group.key);
  const titles = new Set(group.rows.map((row) => row.title));
  const name = group.node === "" ? "Runs out of time" : titles.size === 1 && group.rows[0]?.title != null && group.rows.length > 1 ? group.rows[0].title : words(group.node);
  const fresh = list.fresh.get(group.key) ?? 0;
  return (
    <section>
      <h2>
        <button type="button" className="gates-fold" aria-expanded={open} aria-label={`${open ? "Fold" : "Unfold"} ${name}`} onClick={() => setOpen(!open)}><Icon name={open ? "down" : "right"} /></button>
        {mayChoose && <input className={chosen > 0 && chosen < choosable.length ? "check is-some" : "check"} type="checkbox" checked={chosen > 0 && chosen === choosable.length} aria-label={`Select all of ${name}`} onChange={() => onSelect(choosable, chosen < choosable.length)} />}
        <button type="button" className="gates-only grow" title="Show only these" onClick={onOnly}><b className="clip">{name}</b><span className="clip">{[group.workflow, group.node].filter(Boolean).join(" · ")}</span></button>
        {fresh > 0 && <span className="tag">+{fresh} new</span>}
        <span className="count" data-tone="ask">{list.counts.get(group.key) ?? choosable.length}</span>
      </h2>
      {open && <ul>{group.rows.map((row) => <Row key={row.gate} row={row} isNamed={name === row.title} isCurrent={row.gate === current} batch={batch} mayChoose={mayChoose} href={href(row)} onSelect={onSelect} />)}</ul>}
    </section>
  );
}

/** A row of the list. `isNamed`: the title stands above the group, and the run's name tells the rows apart. */
function Row({ row, isNamed, isCurrent, batch, mayChoose, href, onSelect }: { row: GateRow; isNamed: boolean; isCurrent: boolean; batch: BatchState; mayChoose: boolean; href: string; onSelect: (rows: readonly GateRow[], on: boolean) => void }) {
  const isChosen = batch.selected.has(row.gate);
  const now = useNow(30_000);
  const [title, place] = isNamed ? [rowPlace(row, batch.names), ""] : [rowTitle(row), rowPlace(row, batch.names)];
  const about = [place, isNamed && row.claimed_by === null && row.due !== null ? `open for ${duration(now - row.opened).split(" ").slice(0, 2).join(" ")}` : "", row.claimed_by === null ? "" : `claimed by ${row.claimed_by}`, row.answered > 0 ? `${row.answered} answered` : "", row.commented > 0 ? `${row.commented} comment${row.commented === 1 ? "" : "s"}` : ""];
  return (
    <li className={[isCurrent ? "is-current" : "", row.over === undefined ? "" : "is-over"].join(" ")}>
      {mayChoose && row.over === undefined && row.can.includes("answer") ? <input className="check" type="checkbox" checked={isChosen} aria-label={`Select ${rowName(row, batch.names)}`} onChange={() => onSelect([row], !isChosen)} /> : <span className="gates-nocheck" />}
      <Link href={href} className="gates-row" aria-current={isCurrent || undefined} data-gate={row.gate}>
        <b>{title}</b>
        <span>{about.filter(Boolean).join(" · ")}</span>
      </Link>
      <Due row={row} isException={batch.exceptions.has(row.gate)} />
    </li>
  );
}

function Due({ row, isException }: { row: GateRow; isException: boolean }) {
  const now = useNow(30_000);
  if (row.over !== undefined) return <span className="gates-due">{row.over.how === "answered" ? <><Glyph name="done" small />{row.over.by ?? "answered"}</> : row.over.how}</span>;
  if (isException) return <span className="gates-due"><span className="tag">exception</span></span>;
  if (row.due === null) return <span className="gates-due" title="Open for">{duration(now - row.opened).split(" ").slice(0, 2).join(" ")}</span>;
  if (row.due < now) return <span className="gates-due is-late"><Glyph name="timeout" small />{duration(now - row.due).split(" ").slice(0, 2).join(" ")} late</span>;
  return <span className={row.due - now < 14_400_000 ? "gates-due is-soon" : "gates-due"}>{dueWords(row.due, now)}</span>;
}

