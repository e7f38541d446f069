// How many gates are open: the number in the rail. It is read once, and again when an event of a gate was committed.
import { useEffect, useState } from "react";
import { api, given } from "@/api/client";
import { follow } from "@/api/live";

const SETTLE_MS = 400; // a burst of gates is one question to the service

export function useOpenGates(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    let over = false;
    const read = async () => {
      timer = null;
      try {
        const { items } = await given(api.GET("/api/v1/gates", { params: { query: { by: "node" } } }));
        const total = (items as unknown as { count: number }[]).reduce((sum, row) => sum + row.count, 0);
        if (!over) setCount(total);
      } catch {
        // The number stays as it was; the next event of a gate asks again.
      }
    };
    void read();
    const stop = follow(null, (events) => {
      if (timer === null && events.some((event) => event.type.startsWith("gate.") || event.type.startsWith("run."))) {
        timer = setTimeout(() => void read(), SETTLE_MS);
      }
    });
    return () => {
      over = true;
      stop();
      if (timer !== null) clearTimeout(timer);
    };
  }, []);
  return count;
}
