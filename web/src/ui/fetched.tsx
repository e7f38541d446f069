// A part of the page whose code is fetched when it is first shown, or before: `fetch` begins that.
//
// It stands in the place of React's `lazy` and `Suspense`, which keep a placeholder for 300 ms once it was shown: the
// run page had its code 90 ms after the navigation and began to read the run at 350. Promises to show the part as soon
// as its code is there. A screen that could not be fetched is an error for the `Guard` above it; a part of one says so
// and is asked for again, while the rest of the screen stays. If the service answers and the part is still not there, the
// service has a newer canvas: the page is loaded anew.
import { createElement, useEffect, useState, type FunctionComponent, type ReactNode } from "react";
import { answers, isFetching, loadAnew, RETRY_MS } from "./away";
import { Glyph } from "./icon";

export interface Fetched<Props> {
  /** `meanwhile`: what stands in its place until the code is there. */
  (props: Props & { meanwhile?: ReactNode }): ReactNode;
  fetch: () => Promise<unknown>;
}

type Component = (props: never) => ReactNode;
type PropsOf<Part extends Component> = Parameters<Part>[0] extends object ? Parameters<Part>[0] : object;

export function fetched<Part extends Component>(load: () => Promise<{ default: Part }>, what: "screen" | "part" = "part"): Fetched<PropsOf<Part>> {
  let part: Part | null = null;
  let loading: Promise<unknown> | null = null;
  const fetch = (): Promise<unknown> =>
    (loading ??= load().then(
      (found) => (part = found.default),
      (error: unknown) => {
        loading = null;
        throw error;
      },
    ));

  function Shown({ meanwhile = null, ...props }: { meanwhile?: ReactNode }): ReactNode {
    const [, turn] = useState(0);
    const [problem, fail] = useState<{ error: unknown } | null>(null);
    const [isAway, setAway] = useState(false);
    const isThere = part !== null;
    useEffect(() => {
      if (isThere) return;
      let isGone = false;
      let timer: ReturnType<typeof setTimeout> | null = null;
      const ask = async (): Promise<void> => {
        try {
          await fetch();
          if (!isGone) turn(1);
        } catch (error) {
          if (isGone) return;
          if (what === "screen" || !isFetching(error)) return fail({ error });
          setAway(true);
          const isBack = await answers();
          if (!isGone && !(isBack && loadAnew())) timer = setTimeout(() => void ask(), RETRY_MS);
        }
      };
      void ask();
      return () => {
        isGone = true;
        if (timer !== null) clearTimeout(timer);
      };
    }, []);
    if (problem !== null) throw problem.error;
    if (part === null) return isAway ? <>{meanwhile}<PartAway /></> : meanwhile;
    return createElement(part as unknown as FunctionComponent<object>, props);
  }
  return Object.assign(Shown, { fetch });
}

function PartAway() {
  return (
    <div className="note part-away" data-tone="wait" role="alert"><Glyph name="wait" /><div className="grow"><b>A part of this screen could not be fetched: the service does not answer.</b><p className="c2">It is shown as soon as the service is back.</p></div></div>
  );
}
