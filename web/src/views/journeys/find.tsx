// Finding a person or thing by part of its id, name or email. Arrow keys choose, Enter opens, Esc closes.
import { useEffect, useRef, useState } from "react";
import { api, given } from "@/api/client";
import { addressOf, initialsOf, nameOf, placeOf, type Entity } from "@/model/journeys";
import { Icon } from "@/ui/icon";
import { useKeys } from "@/views/run/use-keys";

const SETTLE_MS = 200;

export function Find({ onChoose }: { onChoose: (entity: Entity) => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [found, setFound] = useState<readonly Entity[] | null>(null);
  const [at, setAt] = useState(0);
  useKeys({ "/": () => field.current?.focus() });
  useEffect(() => {
    if (text.trim() === "") {
      setFound(null);
      return undefined;
    }
    let here = true;
    const timer = setTimeout(() => {
      given(api.GET("/api/v1/entities", { params: { query: { text: text.trim(), limit: 8 } } })).then(
        (page) => here && (setFound(page.items), setAt(0)),
        () => here && setFound([]),
      );
    }, SETTLE_MS);
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [text]);
  const choose = (entity: Entity | undefined) => {
    if (entity === undefined) return;
    onChoose(entity);
    setText("");
    field.current?.blur();
  };
  return (
    <div className="input-wrap jr-find" onBlur={(event) => !event.currentTarget.contains(event.relatedTarget) && setText("")}>
      <Icon name="search" />
      <input
        ref={field} className="input input-sm" type="text" role="combobox" aria-label="Find a person or thing" placeholder="Find a person or thing" aria-expanded={found !== null} aria-controls="jr-found" aria-autocomplete="list"
        aria-activedescendant={found !== null && found.length > 0 ? `jr-found-${at}` : undefined} value={text} onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") setText("");
          if (event.key === "Enter") choose(found?.[at]);
          if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
          event.preventDefault();
          setAt((before) => Math.max(0, Math.min((found?.length ?? 1) - 1, before + (event.key === "ArrowDown" ? 1 : -1))));
        }}
      />
      {text === "" && <span className="kbd">/</span>}
      <div id="jr-found" className={found === null ? "" : "menu jr-found"} role="listbox" aria-label="Found">
        {found?.map((entity, index) => {
          const here = entity.positions[0];
          return (
            <div key={addressOf(entity)} id={`jr-found-${index}`} role="option" aria-selected={index === at} tabIndex={-1} className={index === at ? "menu-item is-hover" : "menu-item"} onClick={() => choose(entity)}>
              <span className="jr-ent jr-in">{initialsOf(entity)}</span>
              <span className="grow clip">{nameOf(entity)} <span className="c2">{addressOf(entity)}</span></span>
              <span className="c2">{here === undefined ? "" : (placeOf(here)?.name ?? "")}</span>
            </div>
          );
        })}
        {found?.length === 0 && <div className="menu-about c2">Nobody is called so.</div>}
      </div>
    </div>
  );
}
