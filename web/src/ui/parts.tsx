// Small parts that every screen uses: buttons, states, times, ids, notes of what went wrong.
import { useEffect, useState, type ButtonHTMLAttributes, type ReactNode } from "react";
import { problemOf } from "@/api/problem";
import { runLook, visitLook, type Look } from "@/model/states";
import { duration, instant, iso, relative, soon } from "@/model/time";
import { Glyph, Icon } from "./icon";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "plain" | "primary" | "danger" | "danger-solid" | "ghost";
  size?: "sm" | "md" | "lg";
  icon?: string;
}

export function Button({ kind = "plain", size = "md", icon, children, className = "", ...rest }: ButtonProps) {
  const classes = ["btn", kind === "plain" ? "" : `btn-${kind}`, size === "md" ? "" : `btn-${size}`, children == null ? "btn-icon" : "", className];
  return (
    <button type="button" className={classes.filter(Boolean).join(" ")} {...rest}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A state as a tinted badge. */
export function Badge({ look }: { look: Look }) {
  return (
    <span className="badge" data-tone={look.tone}>
      <Glyph name={look.glyph} small />
      {look.word}
    </span>
  );
}

/** A state as glyph and word, for tables: completed recedes, failures stand out. */
export function State({ look }: { look: Look }) {
  return (
    <span className="state" data-tone={look.tone}>
      <Glyph name={look.glyph} />
      {look.word}
    </span>
  );
}

export const RunState = ({ status }: { status: string }) => <State look={runLook(status)} />;
export const VisitState = ({ status, waiting }: { status: string; waiting?: string | null }) => <State look={visitLook(status, waiting)} />;

/** The clock of the page: it ticks once a second, and only while the tab is seen. */
export function useNow(everyMs = 1_000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** An instant: local time with its zone; UTC and how long ago on hover; ISO 8601 when copied. */
export function Time({ at, as = "instant" }: { at: number; as?: "instant" | "relative" | "short" }) {
  const now = useNow(as === "relative" ? 1_000 : 60_000);
  return (
    <time dateTime={iso(at)} title={`${iso(at)} · ${relative(at, now)}`}>
      {as === "relative" ? relative(at, now) : as === "short" ? soon(at, now) : instant(at, now)}
    </time>
  );
}

/** How long something took, or takes since it began. */
export function Took({ from, to }: { from: number; to?: number | null | undefined }) {
  const now = useNow();
  return <span className="nowrap">{duration((to ?? now) - from)}</span>;
}

/** An id that is copied by one click or key. `on`: the event that tells that a key of the page has copied it. */
export function Copy({ text, shown, label, on }: { text: string; shown?: ReactNode; label?: string; on?: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 1_200);
    return () => clearTimeout(timer);
  }, [copied]);
  useEffect(() => {
    if (on === undefined) return undefined;
    const tell = () => setCopied(true);
    addEventListener(on, tell);
    return () => removeEventListener(on, tell);
  }, [on]);
  const copy = () => void navigator.clipboard.writeText(text).then(() => setCopied(true));
  return (
    <button type="button" className="copy mono" onClick={copy} title={`Copy ${label ?? text}`}>
      <span className="sr">Copy {label ?? ""} </span>
      {shown ?? text} {copied ? <Glyph name="done" small /> : <Icon name="copy" size={14} />}
      <span className="sr" role="status">{copied ? "copied" : ""}</span>
    </button>
  );
}

/** A sentence of the service: what stands between backticks is shown as code. */
export function Words({ text }: { text: string }) {
  return text.split(/`([^`]+)`/).map((part, at) => (at % 2 === 1 ? <code key={at} className="mono">{part}</code> : part));
}

/** What went wrong, in the service's own words, where it went wrong. */
export function Trouble({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem = problemOf(error);
  return (
    <div className="note" data-tone="fail" role="alert">
      <Glyph name="fail" />
      <div className="grow">
        <span className="b"><Words text={problem.message} /></span>
        {(problem.document.problems ?? []).slice(0, 5).map((one, at) => <div key={at}><Words text={(one as { message?: string }).message ?? ""} /></div>)}
        {problem.remedy !== undefined && <div className="c2"><Words text={problem.remedy} /></div>}
      </div>
      {onRetry !== undefined && <Button size="sm" icon="retry" onClick={onRetry}>Try again</Button>}
    </div>
  );
}

/** Shown while something is fetched, after a moment: what comes at once needs no spinner. */
export function Loading({ what }: { what: string }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 250);
    return () => clearTimeout(timer);
  }, []);
  return <div className="empty" role="status">{late ? `Loading ${what}…` : ""}</div>;
}

/** The frame of a page: its heading or crumbs, its actions, its content. */
export function Page({ title, crumbs, badge, actions, children, className = "" }: { title: string; crumbs?: ReactNode; badge?: ReactNode; actions?: ReactNode; children: ReactNode; className?: string }) {
  useEffect(() => {
    document.title = `${title} · Treadle`;
  }, [title]);
  return (
    <div className="page">
      <header className="top">
        {crumbs ?? <h1>{title}</h1>}
        {badge}
        <div className="top-actions">{actions}</div>
      </header>
      <main className={className}>{children}</main>
    </div>
  );
}
