// Search in titles, nodes and runs. It asks when typing stops, and at once on Enter: nothing typed is lost.
import { useEffect, useRef, useState, type RefObject } from "react";
import { Icon } from "@/ui/icon";

const PAUSE_MS = 300;

export function Search({ field, text, onText }: { field: RefObject<HTMLInputElement | null>; text: string; onText: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  const latest = useRef(() => {});
  latest.current = () => {
    if (typed.trim() !== text) onText(typed.trim());
  };
  useEffect(() => {
    const timer = setTimeout(() => latest.current(), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <form className="input-wrap grow" role="search" onSubmit={(event) => { event.preventDefault(); latest.current(); }}>
      <Icon name="search" />
      <input ref={field} className="input input-sm" type="search" placeholder="Title, node or run" aria-label="Search gates" value={typed} onChange={(event) => setTyped(event.target.value)} />
    </form>
  );
}
