// Keeps a page from going white: a part whose code cannot be fetched, or that broke, says so in its place. What could
// not be fetched is asked for again every two seconds, and the page is loaded anew when the service answers.
import { Component, useEffect, type ReactNode } from "react";
import { answers, isFetching, loadAnew, RETRY_MS } from "./away";
import { Button } from "./parts";
import { Glyph } from "./icon";

function Away() {
  useEffect(() => {
    let over = false;
    const ask = async () => {
      const there = await answers();
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
