// What the run page asks the service for: the run, its picture, pages of its history. Large values come as previews.
import { api, given } from "@/api/client";
import type { Ask } from "@/model/ends";
import type { Event } from "@/model/fold";
import type { RunPicture } from "@/model/fold/from-picture";
import { LARGE } from "@/model/large";
import type { RunDetail } from "./seen";

export interface Page {
  readonly items: readonly Event[];
  /** Null: the history had no more events. */
  readonly next: string | null;
}

const of = (run: string) => ({ path: { run }, query: { value_max: LARGE } });

export const askRun = (run: string): Promise<RunDetail> => given(api.GET("/api/v1/runs/{run}", { params: of(run) }));
export const askPicture = (run: string): Promise<RunPicture> => given(api.GET("/api/v1/runs/{run}/picture", { params: of(run) }));

export async function askPage(run: string, { after, limit }: Ask): Promise<Page> {
  const { items, next } = await given(api.GET("/api/v1/runs/{run}/history", { params: { path: { run }, query: { after, limit, value_max: LARGE } } }));
  return { items: items as unknown as Event[], next: next ?? null };
}
