// The menu of a run: acts that have no button, copying, the run that called it. It is fetched when it is first opened.
import { Menu } from "@base-ui/react/menu";
import { Link } from "wouter";
import { linksOf, valueAt } from "@/model/run-title";
import { iso } from "@/model/time";
import { Icon } from "@/ui/icon";
import type { Offer, Opened } from "./acts/use-acts";
import { useRunPage, useSeen } from "./context";

export default function More({ offers, open }: { offers: readonly Offer[]; open: (act: Opened) => void }) {
  const { store } = useRunPage();
  const { detail, canvas } = useSeen();
  const facts: Record<string, unknown> = { run: store.run, workflow: detail?.workflow, version: detail?.version, key: detail?.key, entity: detail?.entity, started: detail === null ? "" : iso(detail.started) };
  const links = linksOf(canvas, (name) => (Object.hasOwn(facts, name) ? facts[name] : valueAt(detail?.input, name)));
  return (
    <Menu.Root defaultOpen>
      <Menu.Trigger className="btn btn-icon" aria-label="More"><Icon name="more" /></Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner align="end" sideOffset={6}>
          <Menu.Popup className="menu">
            {offers.map((offer) => <Menu.Item key={offer.name} className="menu-item" onClick={() => open(offer.act)}><Icon name={offer.icon} /> {offer.name}</Menu.Item>)}
            {offers.length > 0 && <div className="menu-sep" />}
            <Menu.Item className="menu-item" onClick={() => void navigator.clipboard.writeText(store.run)}><Icon name="copy" /> Copy the id <span className="kbd push">C</span></Menu.Item>
            <Menu.Item className="menu-item" onClick={() => void navigator.clipboard.writeText(location.href)}><Icon name="link" /> Copy a link to this view</Menu.Item>
            {links.map((link) => <Menu.Item key={link.name} className="menu-item" render={<a href={link.url} target="_blank" rel="noopener noreferrer" />}><Icon name="link" /> {link.name}</Menu.Item>)}
            {detail?.parent != null && <Menu.Item className="menu-item" render={<Link href={`/runs/${encodeURIComponent(detail.parent)}`} />}><Icon name="up" /> The run that called it</Menu.Item>}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
