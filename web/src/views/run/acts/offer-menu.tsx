// The acts of a visit that have no button of their own. It is fetched when it is first opened.
import { Menu } from "@base-ui/react/menu";
import { Icon } from "@/ui/icon";
import type { Offer, Opened } from "./use-acts";

export default function OfferMenu({ offers, open }: { offers: readonly Offer[]; open: (act: Opened) => void }) {
  return (
    <Menu.Root defaultOpen>
      <Menu.Trigger className="btn btn-icon" aria-label="More acts"><Icon name="more" /></Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner align="end" sideOffset={6}>
          <Menu.Popup className="menu">{offers.map((offer) => <Menu.Item key={offer.name} className="menu-item" onClick={() => open(offer.act)}><Icon name={offer.icon} /> {offer.name}</Menu.Item>)}</Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
