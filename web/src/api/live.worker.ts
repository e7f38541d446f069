// The one stream of the browser. Every tab connects here; the stream is open while at least one tab is.
import { StreamFeed, type FeedState, type LiveEvent } from "./feed";

interface Following {
  feed: StreamFeed;
  ports: Set<MessagePort>;
  state: FeedState;
}

const followed = new Map<string, Following>();

function join(url: string, port: MessagePort): void {
  let following = followed.get(url);
  if (following === undefined) {
    const ports = new Set<MessagePort>();
    const tell = (message: { events?: readonly LiveEvent[]; state?: FeedState }) => {
      for (const one of ports) one.postMessage(message);
    };
    following = {
      ports,
      state: { kind: "connecting" },
      feed: new StreamFeed(
        url,
        (events) => tell({ events }),
        (state) => {
          const mine = followed.get(url);
          if (mine !== undefined) mine.state = state;
          tell({ state });
        },
      ),
    };
    followed.set(url, following);
  }
  following.ports.add(port);
  port.postMessage({ state: following.state });
}

function leave(port: MessagePort): void {
  for (const [url, following] of followed) {
    following.ports.delete(port);
    if (following.ports.size === 0) {
      following.feed.close();
      followed.delete(url);
    }
  }
}

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports }) => {
  const port = ports[0];
  if (port === undefined) return;
  port.onmessage = ({ data }: MessageEvent<{ open?: string; close?: true }>) => {
    if (data.open !== undefined) join(data.open, port);
    if (data.close) leave(port);
  };
  port.start();
};
