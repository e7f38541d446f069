// The person in the rail; the menu behind it is fetched when it is first opened.
import { useSession } from "@/api/session";
import { fetched } from "./fetched";
import { Later } from "./later";

const AccountMenu = fetched(() => import("./account-menu"));

export function Account() {
  const session = useSession();
  if (session.kind !== "in") return null;
  const { user } = session.session;
  const initials = user.split(/[^\p{L}\p{N}]+/u).filter(Boolean).slice(0, 2).map((word) => word[0]?.toUpperCase()).join("");
  const face = <span className="avatar">{initials || "?"}</span>;
  const label = `Account of ${user}`;
  return (
    <Later className="avatar-button" label={label} opens="menu" face={face} part={AccountMenu}>
      {(button) => <AccountMenu session={session.session} label={label} face={face} meanwhile={button} />}
    </Later>
  );
}
