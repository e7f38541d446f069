// Operating an installation: what fires by itself, who works, what could not be delivered, who may come in.
import { useEffect, useRef } from "react";
import { Link, useParams } from "wouter";
import { useMay, type Role } from "@/api/session";
import { LiveChip } from "@/ui/live-chip";
import { Page } from "@/ui/parts";
import { Audit, Keys, Secrets } from "./access";
import { DeadLetters, Hooks, Subscriptions } from "./outside";
import { Nodes, Queues, Schedules } from "./work";
import "./operate.css";

const PARTS: [part: string, name: string, role: Role, screen: () => React.ReactNode][] = [
  ["schedules", "Schedules", "viewer", Schedules],
  ["queues", "Queues and workers", "viewer", Queues],
  ["nodes", "Nodes", "viewer", Nodes],
  ["dead-letters", "Dead letters", "viewer", DeadLetters],
  ["hooks", "Hooks", "author", Hooks],
  ["subscriptions", "Subscriptions", "author", Subscriptions],
  ["keys", "Keys", "admin", Keys],
  ["secrets", "Secrets", "admin", Secrets],
  ["audit", "Audit", "admin", Audit],
];

export default function Operate() {
  const { part = "schedules" } = useParams<{ part?: string }>();
  const may: Record<string, boolean> = { viewer: useMay("viewer"), author: useMay("author"), admin: useMay("admin") };
  const offered = PARTS.filter(([, , role]) => may[role]);
  const [chosen, name, , Screen] = offered.find(([one]) => one === part) ?? PARTS[0]!;
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => {
    tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [part]);
  return (
    <Page title={`Operate: ${name}`} crumbs={<h1>Operate</h1>} badge={<LiveChip />} className="operate scroll">
      <nav ref={tabs} className="tabs tabs-scroll operate-tabs" aria-label="Parts">
        {offered.map(([one, title]) => <Link key={one} className="tab" href={`/operate/${one}`} aria-current={one === chosen ? "page" : undefined}>{title}</Link>)}
      </nav>
      <Screen />
    </Page>
  );
}
