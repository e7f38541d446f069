// One tooltip for all edges: why an edge was taken or not, below the label that is pointed at or focused.
import { createContext, useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { edgeWhy, type EdgeGiven } from "@/model/edges";
import { useRunPage } from "../context";
import { short } from "../short";

interface Shown {
  readonly edge: EdgeGiven;
  readonly label: HTMLElement;
}

export const TIP = "run-edge-tip";
const DELAY_MS = 120;

export interface Tips {
  readonly show: (edge: EdgeGiven, label: HTMLElement, now: boolean) => void;
  readonly hide: () => void;
}
export const TipContext = createContext<Tips>({ show: () => undefined, hide: () => undefined });

export function TipProvider({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<Shown | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const tips = useMemo<Tips>(() => {
    const clear = () => timer.current !== null && clearTimeout(timer.current);
    return {
      show: (edge, label, now) => {
        clear();
        timer.current = setTimeout(() => setShown({ edge, label }), now ? 0 : DELAY_MS);
      },
      hide: () => {
        clear();
        setShown(null);
      },
    };
  }, []);
  useEffect(() => {
    const press = (event: KeyboardEvent) => event.key === "Escape" && tips.hide();
    addEventListener("keydown", press);
    return () => {
      tips.hide();
      removeEventListener("keydown", press);
    };
  }, [tips]);
  return (
    <TipContext.Provider value={tips}>
      {children}
      {shown !== null && <Tip key={shown.edge.id} {...shown} />}
    </TipContext.Provider>
  );
}

function Tip({ edge, label }: Shown) {
  const { store } = useRunPage();
  const box = useRef<HTMLDivElement>(null);
  const { folding, state, graph } = store.get();
  const why = edgeWhy(folding, state, edge, Date.now(), graph?.transitions ?? []);
  useLayoutEffect(() => { // below the label; above it where there is no room, and never outside of the window
    const [at, own] = [label.getBoundingClientRect(), box.current as HTMLDivElement];
    const below = at.bottom + 8 + own.offsetHeight <= innerHeight;
    own.style.top = `${below ? at.bottom + 8 : Math.max(4, at.top - 8 - own.offsetHeight)}px`;
    own.style.left = `${Math.max(4, Math.min(innerWidth - own.offsetWidth - 4, at.left + at.width / 2 - own.offsetWidth / 2))}px`;
    own.style.visibility = "visible";
  }, [label]);
  return (
    <div ref={box} id={TIP} role="tooltip" className="tip run-edge-tip">
      <div><b>{why.title}</b> <span className="c2">{edge.source} → {edge.target}</span></div>
      {why.condition !== null && (
        <div>
          <span className="mono">{why.condition}</span> {why.outcome}{" "}
          {why.values.length > 0 && <span className="c2">({why.values.map(([path, value]) => `${path} = ${short(value)}`).join(", ")})</span>}
        </div>
      )}
      <div className="c2">{why.foot}</div>
    </div>
  );
}
