// A JSON value as text with its kinds told apart. Of a large one the service gives a preview, and the whole as a file
// that is never read here.
import { useMemo } from "react";
import { LARGE, largeOf, PREVIEW, sizeWords } from "@/model/large";
import { Icon } from "@/ui/icon";
import { Button } from "@/ui/parts";

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|\b(true|false|null)\b/g;

function coloured(text: string) {
  const parts: React.ReactNode[] = [];
  let last = 0;
  for (const match of text.matchAll(TOKEN)) {
    parts.push(text.slice(last, match.index));
    const [whole, string, colon] = match;
    const kind = string === undefined ? "n" : colon === undefined ? "s" : "k";
    parts.push(<span key={match.index} className={kind}>{string ?? whole}</span>, colon ?? "");
    last = match.index + whole.length;
  }
  parts.push(text.slice(last));
  return parts;
}

function save(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}

/** `whole`: the address of the value as a file, for one that is too large to be here. */
export function Value({ value, name = "value", whole }: { value: unknown; name?: string; whole?: string }) {
  const large = largeOf(value);
  const text = useMemo(() => (value === undefined || large !== null ? "" : JSON.stringify(value, null, 2)), [value]);
  if (value === undefined || value === null) return <p className="c2 t2">Nothing.</p>;
  if (large !== null) {
    return (
      <div className="run-value">
        <pre className="code" tabIndex={0}>{large.preview}{"\n…"}</pre>
        <div className="row run-value-foot">
          <span className="c2 t1">The first {large.preview.length.toLocaleString()} characters of {sizeWords(large.bytes)}</span>
          {whole !== undefined && <a className="btn btn-ghost btn-sm push" href={whole} download={`${name}.json`}><Icon name="download" />Download {name}</a>}
        </div>
      </div>
    );
  }
  const isLong = text.length > LARGE;
  const shown = isLong ? text.slice(0, PREVIEW) : text;
  return (
    <div className="run-value">
      <pre className="code" tabIndex={0}>{shown.length > 60_000 ? shown : coloured(shown)}{isLong ? "\n…" : ""}</pre>
      <div className="row run-value-foot">
        {isLong && <span className="c2 t1">The first {PREVIEW.toLocaleString()} of {text.length.toLocaleString()} characters</span>}
        <span className="push row row-4">
          <Button kind="ghost" size="sm" icon="copy" aria-label={`Copy ${name}`} onClick={() => void navigator.clipboard.writeText(text)} />
          <Button kind="ghost" size="sm" icon="download" aria-label={`Download ${name}`} onClick={() => save(text, `${name}.json`)} />
        </span>
      </div>
    </div>
  );
}
