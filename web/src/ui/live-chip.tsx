// Says how true the page is: live, or since when it is not.
import { useSyncExternalStore } from "react";
import { feedState, onFeedState } from "@/api/live";
import { duration } from "@/model/time";
import { useNow } from "./parts";

export function LiveChip() {
  const state = useSyncExternalStore(onFeedState, feedState);
  const now = useNow();
  if (state.kind === "live") return <span className="live">live</span>;
  if (state.kind === "connecting") return <span className="live live-off">connecting…</span>;
  if (state.kind === "refused") return <span className="live live-off" role="alert">not signed in</span>;
  return <span className="live live-off" role="status">offline for {duration(now - state.since)}</span>;
}
