// The problems of a text, from the service, as it is typed.
import { useEffect, useState } from "react";
import type { Read } from "@/model/flow";
import { check, type Finding } from "./load";

const AFTER_MS = 80; // a problem stands at its line 300 ms after the keystroke: the rest is for the service and for drawing

export interface Checked {
  readonly findings: readonly Finding[];
  /** The text that these are the problems of. */
  readonly of: string | null;
  readonly error: unknown;
}

/** Why a text cannot be read: known here, so the service is not asked. */
const unreadable = ({ message, line }: NonNullable<Read["broken"]>): Finding => ({ code: "BAD_VALUE", message: `not valid YAML: ${message.replace(/ at line \d+, column \d+:?$/, "")}`, hint: null, line, column: null, place: null, error: true });

/** `broken`: why the text cannot be read, if it cannot. */
export function useCheck(text: string, broken: Read["broken"]): Checked {
  const [checked, setChecked] = useState<Checked>({ findings: [], of: null, error: null });
  const [again, setAgain] = useState(0);
  useEffect(() => {
    if (broken !== null) return setChecked({ findings: [unreadable(broken)], of: text, error: null });
    const stop = new AbortController();
    const timer = setTimeout(() => {
      check(text, stop.signal).then(
        (findings) => stop.signal.aborted || setChecked({ findings, of: text, error: null }),
        (error: unknown) => {
          if (stop.signal.aborted) return;
          setChecked((before) => ({ ...before, error }));
          setTimeout(() => stop.signal.aborted || setAgain((turn) => turn + 1), 3_000);
        },
      );
    }, AFTER_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text, again]);
  return checked;
}
