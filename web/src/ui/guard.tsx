// Keeps a page from going white: a part whose code cannot be fetched, or that broke, says so in its place. What could
// not be fetched is asked for again every two seconds, and the page is loaded anew when the service answers.
import { Component, useEffect, type ReactNode } from "react";
import { base } from "@/api/base";
import { Button } from "./parts";
import { Glyph } from "./icon";

const RETRY_MS = 2_000;
const LOADED = "treadle.loaded-anew";
const OFTEN_MS = 10_000;

/** Whether an error is that of a part that was not there: the service is away, or has a newer canvas. */
const isFetching = (error: Error): boolean => /dynamically imported module|Importing a module script failed|preload CSS/i.test(error.message);

/** Loads the page anew, but not again and again: a file that is really missing does not come back that way. */
function loadAnew(): boolean {
  const last = Number(sessionStorage.getItem(LOADED) ?? "0");
  if (Date.now() - last < OFTEN_MS) return false;
  sessionStorage.setItem(LOADED, String(Date.now()));
  location.reload();
  return true;
}

function Away() {
  useEffect(() => {
    let over = false;
    const ask = async () => {
      const there = await fetch(`${base}icon.svg`, { cache: "no-store" }).then((answer) => answer.ok, () => false);
      if (!over && !(there && loadAnew())) timer = setTimeout(() => void ask(), RETRY_MS);
    };
    let timer = setTimeout(() => void ask(), 0);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, []);
  return (
    <div className="lone">
      <div className="note" data-tone="wait" role="alert"><Glyph name="wait" /><div className="grow"><b>This screen could not be fetched: the service does not answer.</b><p className="c2">It opens by itself as soon as the service is back.</p></div></div>
    </div>
  );
}

interface State {
  readonly error: Error | null;
}

export class Guard extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    if (isFetching(error)) return <Away />;
    return (
      <div className="lone">
        <div className="note" data-tone="fail" role="alert"><Glyph name="fail" /><div className="grow"><b>Something on this screen went wrong.</b><p className="c2">{error.message}</p></div><Button size="sm" icon="retry" onClick={() => location.reload()}>Load it anew</Button></div>
      </div>
    );
  }
}
