// The head of the run page: where it is, its status, how complete the picture is, acts, next and previous run.
import { Link } from "wouter";
import { nameOf, templateOf, titled, valueAt } from "@/model/run-title";
import { runLook } from "@/model/states";
import { duration, instant } from "@/model/time";
import { Badge, Button, Copy, Took } from "@/ui/parts";
import { Icon } from "@/ui/icon";
import { fetched } from "@/ui/fetched";
import { Later } from "@/ui/later";
import { useActDialog, useRunOffers } from "./acts/use-acts";
import { useRunPage, useSeen } from "./context";
import type { Neighbours } from "./neighbours";
import type { RunDetail, Seen } from "./store";

const More = fetched(() => import("./more"));

/** How complete and how new the picture is: one chip. */
export function liveOf(seen: Seen): { kind: string; words: string } {
  if (seen.cursor !== null) return { kind: "replaying", words: "replaying" };
  if (!seen.loaded) return { kind: "loading", words: seen.head > 0 ? `loading ${seen.folding.known.toLocaleString()} of ${seen.head.toLocaleString()}` : "loading" };
  if (seen.feed.kind === "offline") return { kind: "offline", words: `offline since ${instant(seen.feed.since)}` };
  if (seen.feed.kind === "refused") return { kind: "offline", words: "signed out" };
  const behind = seen.head - seen.folding.length;
  if (behind > 0) return { kind: "behind", words: `behind ${behind.toLocaleString()}` };
  if (seen.state.ended !== null) return { kind: "all", words: `all ${seen.folding.length.toLocaleString()} events` };
  return seen.feed.kind === "connecting" ? { kind: "loading", words: "connecting" } : { kind: "live", words: "live" };
}

export function LiveChip() {
  const { store } = useRunPage();
  const { kind, words } = liveOf(useSeen());
  if (kind === "replaying") {
    return <button type="button" className="live run-live" data-kind={kind} onClick={() => store.seek(null)} title="Back to now">{words} · back to now</button>;
  }
  return <span className="live run-live" data-kind={kind} role="status">{words}</span>;
}

/** What a person calls the run. */
export function titleOf(detail: RunDetail | null, run: string, canvas: unknown = null): string {
  const template = templateOf(canvas);
  return detail === null ? run.slice(0, 8) : nameOf(detail, template === null ? null : titled(template, (field) => valueAt(detail.input, field)));
}

export function Header({ neighbours }: { neighbours: Neighbours }) {
  const { store } = useRunPage();
  const seen = useSeen();
  const offers = useRunOffers();
  const [dialog, open] = useActDialog();
  const { detail, state } = seen;
  const status = seen.cursor === null ? (detail?.status ?? state.status) : state.status;
  const first = offers.filter((offer) => !offer.name.startsWith("Send")).slice(0, 2);
  const rest = offers.filter((offer) => !first.includes(offer));
  return (
    <header className="top run-top">
      <ol className="crumbs">
        <li><Link href="/runs">Runs</Link></li>
        {detail !== null && <li><Link href={`/workflows/${encodeURIComponent(detail.workflow)}`}>{detail.workflow} v{detail.version}</Link></li>}
        <li aria-current="page"><h1 className="clip run-title">{titleOf(detail, store.run, seen.canvas)}</h1></li>
      </ol>
      <Copy text={store.run} shown={titleOf(detail, store.run, seen.canvas) === store.run.slice(-12) ? "" : <span className="clip run-id">{store.run.slice(-8)}</span>} label={`id ${store.run}`} on="treadle.copied" />
      {(detail !== null || state.seq > 0) && <Badge look={runLook(status)} />}
      {state.started > 0 && <span className="c2 t2">{seen.cursor !== null || state.ended !== null ? duration((state.ended ?? state.at) - state.started) : <Took from={state.started} />}</span>}
      {state.forkedFrom !== null && <Link className="tag run-forked" href={`/runs/${encodeURIComponent(state.forkedFrom.run)}`} title={`It has the past of run ${state.forkedFrom.run} up to event ${state.forkedFrom.point}`}><Icon name="split" size={14} />fork of {state.forkedFrom.run.slice(-8)} at {state.forkedFrom.point.toLocaleString()}</Link>}
      <LiveChip />
      <div className="top-actions">
        {neighbours.count > 1 && (
          <span className="row row-4 c2 t2">
            <Button kind="ghost" size="sm" icon="up" aria-label="Previous run (K)" disabled={neighbours.previous === null} onClick={neighbours.goPrevious} />
            {neighbours.place} of {neighbours.count}
            <Button kind="ghost" size="sm" icon="down" aria-label="Next run (J)" disabled={neighbours.next === null} onClick={neighbours.goNext} />
            <span className="vr run-vr" />
          </span>
        )}
        {first.map((offer) => <Button key={offer.name} {...(offer.danger ? {} : { icon: offer.icon })} kind={offer.danger ? "danger" : "plain"} onClick={() => open(offer.act)}>{offer.name}</Button>)}
        <Later className="btn btn-icon" label="More" opens="menu" face={<Icon name="more" />} part={More}>{(button) => <More offers={rest} open={open} meanwhile={button} />}</Later>
      </div>
      {dialog}
    </header>
  );
}
