// Making a record: what it is, its id, its name. Refusals stand in the dialog, and what was typed stays.
import { useState } from "react";
import { api, given } from "@/api/client";
import { Dialog } from "@/ui/dialog";
import { Button, Trouble } from "@/ui/parts";

export function Add({ onClose, onMade }: { onClose: () => void; onMade: (address: string) => void }) {
  const [fields, setFields] = useState({ type: "", id: "", name: "", email: "" });
  const [error, setError] = useState<unknown>(null);
  const make = async () => {
    setError(null);
    try {
      const { type, id, name, email } = fields;
      const made = await given(api.POST("/api/v1/entities", { body: { type, id, ...(name === "" ? {} : { name }), ...(email === "" ? {} : { email }) } as never }));
      onMade(`${made.type}/${made.id}`);
    } catch (problem) {
      setError(problem);
    }
  };
  const field = (name: keyof typeof fields, label: string, hint?: string, focus = false) => (
    <label className="field">
      <span className="label">{label}</span>
      <input className="input" autoFocus={focus} value={fields[name]} onChange={(event) => setFields({ ...fields, [name]: event.target.value })} />
      {hint !== undefined && <span className="hint">{hint}</span>}
    </label>
  );
  return (
    <Dialog title="Add a person or thing" onClose={onClose} foot={<Button kind="primary" disabled={fields.type === "" || fields.id === ""} onClick={() => void make()}>Add</Button>}>
      {error !== null && <Trouble error={error} />}
      {field("type", "Type", "What it is: lead, customer, order.", true)}
      {field("id", "Id", "Type and id are its address.")}
      {field("name", "Name")}
      {field("email", "Email")}
    </Dialog>
  );
}
