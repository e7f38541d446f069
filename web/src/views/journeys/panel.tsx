// The journey of one person or thing: what is known of it, the time in each section, every run, every move by hand.
import { useEffect, useMemo, useRef } from "react";
import { Link } from "wouter";
import { api, given } from "@/api/client";
import { useMay } from "@/api/session";
import { rowsOf, staysOf, totalsOf, type Names, type Row } from "@/model/journey-legs";
import { addressOf, initialsOf, nameOf, stayText, type Entity, type Leg } from "@/model/journeys";
import { runLook } from "@/model/states";
import { instant, soon } from "@/model/time";
import { useAsk } from "@/ui/ask";
import { Glyph, Icon } from "@/ui/icon";
import { Button, Copy, Loading, Time, Trouble, useNow } from "@/ui/parts";

interface Props {
  entity: Entity | undefined;
  legs: readonly Leg[] | undefined;
  error: unknown;
  workflow: string;
  names: Names;
  onClose: () => void;
  onMove: (entity: Entity) => void;
  onStart: (entity: Entity) => void;
}

export function Panel({ entity, legs, error, workflow, names, onClose, onMove, onStart }: Props) {
  const mayAct = useMay("operator");
  const head = useRef<HTMLHeadingElement>(null);
  const address = entity === undefined ? null : addressOf(entity);
  useEffect(() => head.current?.focus({ preventScroll: true }), [address]);
  return (
    <aside className="panel jr-panel" aria-label={entity === undefined ? "Journey" : `Journey of ${nameOf(entity)}`}>
      <header className="jr-who">
        <span className="avatar" aria-hidden="true">{entity === undefined ? "" : initialsOf(entity)}</span>
        <div className="grow">
          <h2 ref={head} tabIndex={-1} className="clip">{entity === undefined ? "…" : nameOf(entity)}</h2>
          {entity !== undefined && <p className="c2 clip"><Copy text={addressOf(entity)} label="the address" />{entity.email !== null && <> · {entity.email}</>}</p>}
        </div>
        <Button kind="ghost" size="sm" icon="close" aria-label="Close" onClick={onClose} />
      </header>
      <div className="jr-scroll">
        {error !== undefined && <Trouble error={error} />}
        {legs === undefined && error === undefined && <Loading what="the journey" />}
        {legs !== undefined && entity !== undefined && <Journey entity={entity} legs={legs} workflow={workflow} names={names} />}
      </div>
      {entity !== undefined && (
        <footer className="panel-foot jr-foot">
          {mayAct && <Button onClick={() => onMove(entity)}>Move…<span className="kbd">M</span></Button>}
          {mayAct && <Button onClick={() => onStart(entity)}>Start a run…</Button>}
          <Link className="link push" href={`/runs?entity=${encodeURIComponent(addressOf(entity))}`}>All runs</Link>
        </footer>
      )}
    </aside>
  );
}

function Journey({ entity, legs, workflow, names }: { entity: Entity; legs: readonly Leg[]; workflow: string; names: Names }) {
  const now = useNow(10_000);
  const totals = totalsOf(legs);
  const stays = staysOf(legs, workflow, names, now);
  const rows = useMemo(() => rowsOf(legs, names), [legs, names]);
  const attributes = Object.entries(entity.attributes as Record<string, unknown>);
  return (
    <>
      <div className="jr-sum">
        <dl>
          <div><dt>Since first seen</dt><dd>{totals.first === null ? "–" : stayText(now - totals.first)}</dd></div>
          <div><dt>Runs</dt><dd>{totals.runs}</dd></div>
          <div><dt>Cost</dt><dd>{totals.cost === null || totals.cost === 0 ? "–" : totals.cost.toFixed(2)}</dd></div>
        </dl>
        {stays.length > 0 && (
          <ol className="jr-bar" aria-label="Time in each section">
            {stays.map((stay, at) => (
              <li key={at} className={stay.isNow ? "is-now" : ""} style={{ flexGrow: Math.max(1, Math.sqrt(stay.ms)) }} title={`${stay.name}: ${stayText(stay.ms)}`}>
                <i>{stay.name}</i>
                <span>{stayText(stay.ms)}{stay.isNow ? ", now" : ""}</span>
              </li>
            ))}
          </ol>
        )}
        {attributes.length > 0 && <dl className="jr-facts">{attributes.slice(0, 8).map(([name, value]) => <div key={name}><dt>{name}</dt><dd className="clip">{typeof value === "string" ? value : JSON.stringify(value)}</dd></div>)}</dl>}
      </div>
      {rows.length === 0 && <p className="empty">No journey yet: nothing has moved {nameOf(entity)}.</p>}
      <ol className="jr-runs">{rows.map((row) => (row.kind === "hand" ? <Hand key={row.key} row={row} now={now} /> : <Run key={row.key} row={row} now={now} names={names} />))}</ol>
    </>
  );
}

function Hand({ row, now }: { row: Extract<Row, { kind: "hand" }>; now: number }) {
  return (
    <li className="is-hand">
      <header><span className="jr-run"><Icon name="move" /><b>Moved by {row.by}</b></span><span><Time at={row.at} as={now - row.at < 86_400_000 ? "relative" : "instant"} /></span></header>
      <p>{row.from === null ? "" : `${row.from} → `}{row.to}{row.reason === null ? "" : `: “${row.reason}”`}</p>
    </li>
  );
}

function Run({ row, now }: { row: Extract<Row, { kind: "run" }>; now: number; names: Names }) {
  const { leg, steps, title } = row;
  const live = leg.status !== null && leg.ended === null;
  const detail = useAsk(live ? `${leg.run}:${leg.moves.length}` : null, () => given(api.GET("/api/v1/runs/{run}", { params: { path: { run: leg.run as string } } })));
  const waits = detail.data?.waiting ?? [];
  const wait = waits.find((one) => one.node === steps[0]?.name && steps[0]?.words === "");
  const look = runLook(leg.status ?? "unknown");
  const glyph = wait?.for === "human" ? "ask" : wait !== undefined ? "wait" : look.glyph;
  const tone = wait?.for === "human" ? "ask" : wait !== undefined ? "wait" : look.tone;
  return (
    <li>
      <header>
        <Link className="jr-run" href={`/runs/${encodeURIComponent(leg.run as string)}`}>
          <span className="tone" data-tone={tone}><Glyph name={glyph} /></span><b>{title}</b><span className="mono clip" title={leg.run ?? ""}>{(leg.run as string).slice(-12)}</span><span className="sr">{look.word}</span>
        </Link>
        <span>{stayText((leg.ended ?? now) - leg.started)}{leg.cost == null || leg.cost === 0 ? "" : ` · ${leg.cost.toFixed(2)}`}</span>
      </header>
      <ol>
        {steps.map((step, at) => (
          <li key={at} className={at === 0 && live ? "is-current" : ""} data-tone={at === 0 && live ? tone : undefined}>
            <b className="clip" title={step.name}>{step.name}</b>
            <span className="clip" title={instant(step.at, now)}>{at === 0 && wait !== undefined ? waitWords(wait, now) : step.words || (step.kind === "edge" ? "on its way" : soon(step.at, now))}</span>
            <em>{stayText(step.ms ?? Math.max(0, (leg.ended ?? now) - step.at))}</em>
          </li>
        ))}
      </ol>
    </li>
  );
}

function waitWords(wait: { for: string; until?: number | null; ends_by: readonly { words?: string | null; who?: unknown }[] }, now: number): string {
  if (wait.for === "human") return "waits for the user";
  return wait.until == null ? (wait.ends_by[0]?.words ?? `waits for ${wait.for}`) : `waits until ${soon(wait.until, now)}`;
}
