// The width of the inspector: dragged or moved by arrow keys, and remembered on this device.
import { useState, type ReactNode } from "react";

const KEY = "treadle.run.inspector";
const [LEAST, MOST, USUAL] = [300, 720, 360];
const fit = (width: number): number => Math.min(MOST, Math.max(LEAST, Math.round(width)));

export function useWidth(): [number, ReactNode] {
  const [width, setWidth] = useState(() => fit(Number(localStorage.getItem(KEY) ?? USUAL) || USUAL));
  const change = (next: number) => {
    setWidth(fit(next));
    localStorage.setItem(KEY, String(fit(next)));
  };
  const grip = (
    <div
      className="run-grip" role="separator" aria-orientation="vertical" aria-label="Width of the inspector" aria-valuenow={width} aria-valuemin={LEAST} aria-valuemax={MOST} tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={(event) => event.currentTarget.hasPointerCapture(event.pointerId) && change(innerWidth - event.clientX)}
      onKeyDown={(event) => {
        if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
          event.stopPropagation();
          change(width + (event.key === "ArrowLeft" ? 16 : -16));
        }
      }}
    />
  );
  return [width, grip];
}
