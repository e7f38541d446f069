// Moving somebody by hand: where to, and why. The same dialog for M, for the button, and after a drag.
import { useState } from "react";
import { api, given } from "@/api/client";
import { nameOf, placeOf, type Entity, type PlaceRef } from "@/model/journeys";
import { Dialog } from "@/ui/dialog";
import { Button, Trouble } from "@/ui/parts";
import type { Drawn } from "./data";

interface Props {
  entity: Entity;
  to: PlaceRef | null;
  drawn: Drawn;
  onClose: () => void;
  onMoved: () => void;
}

const idOf = (place: PlaceRef): string => `${place.kind}:${place.name}`;

export function Move({ entity, to, drawn, onClose, onMoved }: Props) {
  const position = entity.positions.find((one) => one.workflow === drawn.workflow);
  const here = position === undefined ? null : placeOf(position);
  const [chosen, setChosen] = useState(to === null ? "" : idOf(to));
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const nameOfPlace = (id: string) => drawn.map.sections.find((one) => id === `section:${one.id}`)?.name ?? id.replace(/^(node|section):/, "");
  const move = async () => {
    setBusy(true);
    setError(null);
    try {
      const [kind, ...name] = chosen.split(":");
      const body = { workflow: drawn.workflow, [kind as string]: name.join(":"), ...(reason.trim() === "" ? {} : { reason: reason.trim() }) };
      await given(api.POST("/api/v1/entities/{type}/{id}/move", { params: { path: { type: entity.type, id: entity.id } }, body: body as never }));
      onMoved();
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  const option = (id: string, name: string) => <option key={id} value={id} disabled={here !== null && id === idOf(here)}>{name}{here !== null && id === idOf(here) ? " (is there)" : ""}</option>;
  const inSection = chosen.startsWith("section:");
  return (
    <Dialog title={`Move ${nameOf(entity)}`} onClose={onClose} foot={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" disabled={busy || chosen === ""} onClick={() => void move()}>{chosen === "" ? "Move" : `Move to ${nameOfPlace(chosen)}`}</Button></>}>
      {error !== null && <Trouble error={error} />}
      <label className="field">
        <span className="label">To</span>
        <select className="select" autoFocus={to === null} value={chosen} onChange={(event) => setChosen(event.target.value)}>
          <option value="">Choose a place</option>
          {drawn.map.sections.length > 0 && <optgroup label="Sections">{drawn.map.sections.map((one) => option(`section:${one.id}`, one.name))}</optgroup>}
          <optgroup label="Nodes">{drawn.graph.nodes.map((node) => option(`node:${node.ref}`, node.ref))}</optgroup>
        </select>
      </label>
      <label className="field">
        <span className="label">Why</span>
        <input className="input" autoFocus={to !== null} maxLength={500} placeholder="called, wants to stay" value={reason} onChange={(event) => setReason(event.target.value)} onKeyDown={(event) => event.key === "Enter" && chosen !== "" && !busy && void move()} />
        <span className="hint">It stands on the journey, with your name.</span>
      </label>
      <p className="note" role="note">
        <span>{here === null ? "" : `From ${nameOfPlace(idOf(here))}. `}{chosen === "" ? "" : inSection ? "In a section it stays, and no longer travels with the runs that are under way. " : "From a node the next visit of a run takes it along again. "}Runs go on as before: their tokens do not move.</span>
      </p>
    </Dialog>
  );
}
