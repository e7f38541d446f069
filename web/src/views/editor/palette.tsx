// The palette: kinds of work, found by their name. Enter puts the first one behind the selected node.
import { useState } from "react";
import { findKinds, type Kind } from "@/model/palette";
import { Icon } from "@/ui/icon";
import { useEditing } from "./context";
import { putFan, putMark, putNode } from "./edits";

export function Palette() {
  const { draft, selection, select, placesNow } = useEditing();
  const [text, setText] = useState("");
  const found = findKinds(text);
  const put = (kind: Kind) => {
    const after = selection !== null && "node" in selection ? selection.node : null;
    if (kind.kind === "note" || kind.kind === "section") select({ mark: putMark(draft, kind.kind, after, placesNow.current) });
    else select({ node: kind.kind === "fan" ? putFan(draft, after, placesNow.current) : putNode(draft, kind, after, placesNow.current) });
    setText("");
  };
  return (
    <nav className="ed-palette" aria-label="Palette">
      <div className="input-wrap">
        <Icon name="search" />
        <input
          id="ed-palette-search" className="input input-sm" placeholder="Add a node" aria-label="Add a node" value={text} autoComplete="off"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            const first = found[0]?.kinds[0];
            if (event.key === "Enter" && first !== undefined) {
              event.preventDefault();
              put(first);
            } else if (event.key === "Escape") {
              setText("");
              event.currentTarget.blur();
            }
          }}
        />
        <span className="kbd" aria-hidden="true">A</span>
      </div>
      <div className="ed-palette-list">
        {found.length === 0 && <p className="hint">No kind of work has this name.</p>}
        {found.map(({ group, kinds }) => (
          <section key={group}>
            <h2>{group}</h2>
            <ul>
              {kinds.map((kind) => (
                <li key={kind.kind}>
                  <button type="button" title={kind.about} onClick={() => put(kind)}><Icon name={kind.icon} />{kind.name}</button>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
    </nav>
  );
}
