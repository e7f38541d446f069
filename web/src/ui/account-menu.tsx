// The menu of the person in the rail: who is signed in, the theme, signing out. It is fetched when it is first opened.
import { Menu } from "@base-ui/react/menu";
import { useState, type ReactNode } from "react";
import { signOut, type Session } from "@/api/session";
import { chooseTheme, chosenTheme, type Theme } from "./theme";
import { Icon } from "./icon";

const THEMES: Theme[] = ["system", "light", "dark"];

export default function AccountMenu({ session, label, face }: { session: Session; label: string; face: ReactNode }) {
  const [theme, setTheme] = useState(chosenTheme);
  const { user, roles, project } = session;
  return (
    <Menu.Root defaultOpen>
      <Menu.Trigger className="avatar-button" aria-label={label}>{face}</Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner side="right" align="end" sideOffset={8}>
          <Menu.Popup className="menu">
            <div className="menu-about">
              <span className="b">{user}</span>
              <span className="c2">{roles.join(", ")}{project ? ` · ${project}` : ""}</span>
            </div>
            <div className="menu-sep" />
            <Menu.RadioGroup value={theme} onValueChange={(next: Theme) => { chooseTheme(next); setTheme(next); }}>
              {THEMES.map((one) => (
                <Menu.RadioItem key={one} value={one} className="menu-item" closeOnClick={false}>
                  <Icon name="sun" /> {one === "system" ? "Theme of the system" : one === "light" ? "Light" : "Dark"}
                  <Menu.RadioItemIndicator className="push">✓</Menu.RadioItemIndicator>
                </Menu.RadioItem>
              ))}
            </Menu.RadioGroup>
            <div className="menu-sep" />
            <Menu.Item className="menu-item" onClick={() => void signOut()}>Sign out</Menu.Item>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
