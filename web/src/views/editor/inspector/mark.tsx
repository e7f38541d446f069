// A note or a section: its words, its place and size.
import type { Mark } from "@/model/drawing";
import { Icon } from "@/ui/icon";
import { Button } from "@/ui/parts";
import { useEditing } from "../context";
import { changeMark, removeMark } from "../edits";

export function MarkInspector({ mark }: { mark: Mark }) {
  const { draft, select, fixed } = useEditing();
  const number = (name: "x" | "y" | "width" | "height", label: string, help: string) => (
    <label className="field ed-field">
      <span className="ed-field-label">{label}</span>
      <input className="input input-sm" inputMode="numeric" disabled={fixed} value={mark[name]} onChange={(event) => /^-?\d{1,6}$/.test(event.target.value) && changeMark(draft, mark.id, { [name]: Number(event.target.value) })} />
      <span className="hint">{help}</span>
    </label>
  );
  return (
    <>
      <header className="ed-insp-head">
        <span className="ed-tile"><Icon name={mark.kind === "note" ? "doc" : "section"} /></span>
        <h2 className="clip">{mark.kind === "note" ? "Note" : "Section"}</h2>
        {!fixed && <Button kind="ghost" size="sm" className="push" onClick={() => { removeMark(draft, mark.id); select(null); }}>Delete</Button>}
      </header>
      <div className="ed-insp-body">
        <section>
          <label className="field ed-field">
            <span className="ed-field-label">{mark.kind === "note" ? "Text" : "Name"}</span>
            {mark.kind === "note" ? (
              <textarea className="textarea" rows={5} autoFocus={mark.text === ""} disabled={fixed} value={mark.text} onChange={(event) => changeMark(draft, mark.id, { text: event.target.value })} />
            ) : (
              <input className="input input-sm" disabled={fixed} value={mark.text} onChange={(event) => changeMark(draft, mark.id, { text: event.target.value })} />
            )}
            <span className="hint">{mark.kind === "note" ? "For people who read the graph. Notes are part of the drawing, not of the definition." : "A section is only drawn. Moving it takes along the nodes that stand in it."}</span>
          </label>
        </section>
        <section>
          <h3>Place</h3>
          <div className="ed-two">
            {number("x", "From the left", "In pixels of the drawing.")}{number("y", "From the top", "Shift and arrows move it, too.")}
            {number("width", "Width", "Or drag its corner.")}{number("height", "Height", "Or drag its corner.")}
          </div>
        </section>
      </div>
    </>
  );
}
