// A part of the page whose code is fetched when it is first shown, or before: `fetch` begins that.
//
// It stands in the place of React's `lazy` and `Suspense`, which keep a placeholder for 300 ms once it was shown: the
// run page had its code 90 ms after the navigation and began to read the run at 350. Promises to show the part as soon
// as its code is there; a part that could not be fetched is an error for the `Guard` above it, and is asked for again
// when it is next shown.
import { createElement, useEffect, useState, type FunctionComponent, type ReactNode } from "react";

export interface Fetched<Props> {
  /** `meanwhile`: what stands in its place until the code is there. */
  (props: Props & { meanwhile?: ReactNode }): ReactNode;
  fetch: () => Promise<unknown>;
}

type Component = (props: never) => ReactNode;
type PropsOf<Part extends Component> = Parameters<Part>[0] extends object ? Parameters<Part>[0] : object;

export function fetched<Part extends Component>(load: () => Promise<{ default: Part }>): Fetched<PropsOf<Part>> {
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
    const isThere = part !== null;
    useEffect(() => {
      if (isThere) return;
      let isGone = false;
      fetch().then(
        () => isGone || turn(1),
        (error: unknown) => isGone || fail({ error }),
      );
      return () => {
        isGone = true;
      };
    }, []);
    if (problem !== null) throw problem.error;
    return part === null ? meanwhile : createElement(part as unknown as FunctionComponent<object>, props);
  }
  return Object.assign(Shown, { fetch });
}
