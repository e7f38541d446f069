// Nobody travels yet: what journeys are, and how one begins.
import { Link } from "wouter";
import { Button } from "@/ui/parts";

export function Empty({ workflow, onAdd, onStart }: { workflow: string | null; onAdd: (() => void) | null; onStart: (() => void) | null }) {
  return (
    <div className="jr-empty card" role="note">
      <h2 className="t4 b">Nobody travels here yet</h2>
      <p className="c2">A run may be about a person or a thing: a lead, an order, a patient. It appears on the map as a dot, travels as the run does, and its journey goes over many runs.</p>
      {workflow === null ? (
        <p>No workflow is deployed. <Link className="link" href="/workflows/new">Draw one</Link>, or run an example from <Link className="link" href="/runs">Runs</Link>.</p>
      ) : (
        <div className="row">
          {onStart !== null && <Button kind="primary" icon="play" onClick={onStart}>Start a run about somebody</Button>}
          {onAdd !== null && <Button icon="plus" onClick={onAdd}>Add a record</Button>}
        </div>
      )}
    </div>
  );
}
