// Signing in with a key, or by the organisation's provider. The address stays, so that one arrives where one wanted to.
import { useState, type FormEvent } from "react";
import { signIn } from "@/api/session";
import { Icon } from "@/ui/icon";
import { Button, Trouble } from "@/ui/parts";

export function SignIn() {
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await signIn(key);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <main className="lone">
      <form className="card sign-in" onSubmit={(event) => void send(event)}>
        <div className="row"><Icon name="logo" size={24} /><h1 className="t5">Treadle</h1></div>
        {error !== null && <Trouble error={error} />}
        <div className="field">
          <label className="label" htmlFor="key">Key</label>
          <input id="key" className="input" type="password" autoComplete="current-password" required autoFocus value={key} onChange={(event) => setKey(event.target.value)} />
          <span className="hint"><code className="mono">treadle keys create NAME --role ROLE</code> makes a key.</span>
        </div>
        <Button kind="primary" type="submit" disabled={busy}>Sign in</Button>
      </form>
    </main>
  );
}
