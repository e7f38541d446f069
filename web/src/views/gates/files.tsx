// Files of a run: shown as pictures or downloads, and added by people.
import { useState } from "react";
import { api, given } from "@/api/client";
import { apiBase } from "@/api/base";
import type { components } from "@/api/schema";
import { Icon } from "@/ui/icon";

export type Artifact = components["schemas"]["Artifact"];

/** Types that the service sends to be shown; everything else is a download. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);

export const fileAddress = (run: string, name: string): string => `${apiBase}/runs/${encodeURIComponent(run)}/artifacts/${encodeURIComponent(name)}`;
export const isPicture = (file: { content_type: string | null }): boolean => PICTURES.has((file.content_type ?? "").split(";")[0]!.trim().toLowerCase());

/** `214 KB`. */
export function sizeWords(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export function FileLink({ file, run }: { file: Artifact; run: string }) {
  return (
    <a className="tag gates-file" href={fileAddress(run, file.name)} download={file.name}>
      <Icon name="doc" size={14} />
      <span className="clip">{file.name}</span> · {sizeWords(file.size)}
    </a>
  );
}

export function Picture({ file, run }: { file: Artifact; run: string }) {
  return (
    <figure className="gates-picture">
      <a href={fileAddress(run, file.name)} target="_blank" rel="noopener"><img src={fileAddress(run, file.name)} alt={file.name} loading="lazy" /></a>
      <figcaption className="clip">{file.name}</figcaption>
    </figure>
  );
}

/** Adds a file to a run, under a name that no other gate of the run uses. Gives the name. */
export async function addFile(run: string, visit: number, part: string, file: File): Promise<string> {
  const safe = file.name.replace(/[^\p{L}\p{N}. _-]/gu, "_").slice(-80) || "file";
  const name = `visit-${visit}-${part}-${safe}`;
  await given(
    api.PUT("/api/v1/runs/{run}/artifacts/{name}", {
      params: { path: { run, name } },
      body: file as unknown,
      bodySerializer: (body: unknown) => body as BodyInit,
      headers: { "Content-Type": file.type || "application/octet-stream" },
    } as never),
  );
  return name;
}

/** A button that takes files; what went wrong is told by the caller. */
export function FileButton({ label, onFiles, many = false, id }: { label: string; onFiles: (files: File[]) => Promise<void>; many?: boolean; id?: string }) {
  const [busy, setBusy] = useState(false);
  const take = async (input: HTMLInputElement) => {
    const files = [...(input.files ?? [])];
    input.value = "";
    if (files.length === 0) return;
    setBusy(true);
    await onFiles(files).finally(() => setBusy(false));
  };
  return (
    <label className="btn btn-sm gates-attach">
      <Icon name="clip" />
      {busy ? "Uploading…" : label}
      <input id={id} className="sr" type="file" multiple={many} disabled={busy} onChange={(event) => void take(event.target)} />
    </label>
  );
}
