// The menu of the editor: files out and in. Pictures show the draft as it is drawn, deployed or not.
import { Menu } from "@base-ui/react/menu";
import { useState } from "react";
import { Icon } from "@/ui/icon";
import { Dialog } from "@/ui/dialog";
import { Trouble } from "@/ui/parts";
import { useEditing } from "./context";
import type { Shown } from "./draft";
import { download, pictureOf, pngOf } from "./files";
import { chooseFile, takeFile } from "./import";
import { translate } from "./load";

export function More({ shown, fixed }: { shown: Shown; fixed: boolean }) {
  const { draft, placesNow, select } = useEditing();
  const [error, setError] = useState<unknown>(null);
  const { flow, text, marks } = shown;
  const name = (flow.name || "workflow").replaceAll("/", "-");
  const attempt = (act: () => Promise<void>) => () => void act().catch(setError);
  const picture = () => pictureOf({ flow, places: placesNow.current, marks });
  const mermaid = async () => {
    const found = await translate(text);
    if (found === null) throw new Error("the definition has errors: put them right first, Mermaid shows what would run");
    download(`${name}.mmd`, found.mermaid ?? "", "text/plain");
  };
  const take = async () => {
    const file = await chooseFile();
    if (file !== null) await takeFile(draft, file);
    select(null);
  };
  const items: [string, string, () => void][] = [
    ["download", "Export YAML", () => download(`${name}.yaml`, text, "application/yaml")],
    ["download", "Export Mermaid", attempt(mermaid)],
    ["download", "Export SVG", attempt(async () => download(`${name}.svg`, await picture(), "image/svg+xml"))],
    ["download", "Export PNG", attempt(async () => download(`${name}.png`, await pngOf(await picture()), "image/png"))],
    ...(fixed ? [] : ([["export", "Import a file…", attempt(take)]] as [string, string, () => void][])),
  ];
  return (
    <>
      <Menu.Root>
        <Menu.Trigger className="btn btn-ghost btn-icon" aria-label="Export and import"><Icon name="more" /></Menu.Trigger>
        <Menu.Portal>
          <Menu.Positioner align="end" sideOffset={4}>
            <Menu.Popup className="menu">
              {items.map(([icon, words, act]) => <Menu.Item key={words} className="menu-item" onClick={act}><Icon name={icon} />{words}</Menu.Item>)}
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
      {error !== null && <Dialog title="That did not work" onClose={() => setError(null)}><Trouble error={error} /></Dialog>}
    </>
  );
}
