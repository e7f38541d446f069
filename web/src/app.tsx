// The frame of the application: who is signed in, the rail, and which screen the address names.
import { Link, Redirect, Route, Router, Switch, useLocation } from "wouter";
import { base } from "./api/base";
import { useSession } from "./api/session";
import { Account } from "./ui/account";
import { useOpenGates } from "./ui/gate-count";
import { fetched, type Fetched } from "./ui/fetched";
import { Guard } from "./ui/guard";
import { Icon } from "./ui/icon";
import { Loading, Trouble } from "./ui/parts";
import { SignIn } from "./views/sign-in";

/** The screens: path, and the part that is fetched when the path is first opened. */
const SCREENS: [path: string, screen: Fetched<object>][] = [
  ["/", fetched(() => import("./views/overview"), "screen")],
  ["/runs", fetched(() => import("./views/runs"), "screen")],
  ["/runs/:run", fetched(() => import("./views/run"), "screen")],
  ["/gates/:run?/:visit?", fetched(() => import("./views/gates"), "screen")],
  ["/journeys/:workflow?", fetched(() => import("./views/journeys"), "screen")],
  ["/workflows", fetched(() => import("./views/workflows"), "screen")],
  ["/workflows/:workflow", fetched(() => import("./views/editor"), "screen")],
  ["/operate", fetched(() => import("./views/operate"), "screen")],
  ["/operate/:part", fetched(() => import("./views/operate"), "screen")],
];

const RAIL: [path: string, icon: string, name: string][] = [
  ["/", "overview", "Overview"],
  ["/runs", "runs", "Runs"],
  ["/gates", "gates", "Gates"],
  ["/journeys", "journeys", "Journeys"],
  ["/workflows", "editor", "Editor"],
  ["/operate", "operate", "Operate"],
];

export function App() {
  const session = useSession();
  if (session.kind === "asking") return <Loading what="your session" />;
  if (session.kind === "unreachable") return <div className="lone"><Trouble error={session.problem} onRetry={() => location.reload()} /></div>;
  if (session.kind === "out") return <SignIn />;
  return (
    <Router base={base.replace(/\/$/, "")}>
      <div className="app">
        <Rail />
        <Screens />
      </div>
    </Router>
  );
}

/** The screen that the address names. One that cannot be shown leaves the rail, and the way to another one. */
function Screens() {
  const [place] = useLocation();
  return (
    <Guard key={place.split("/")[1]}>
      <Switch>
        {SCREENS.map(([path, Screen]) => (
          <Route key={path} path={path}>
            <Screen meanwhile={<Loading what="this screen" />} />
          </Route>
        ))}
        <Route>
          <Redirect to="/" replace />
        </Route>
      </Switch>
    </Guard>
  );
}

function Rail() {
  const [place] = useLocation();
  const gates = useOpenGates();
  const isHere = (path: string) => (path === "/" ? place === "/" : place === path || place.startsWith(`${path}/`));
  return (
    <nav className="rail" aria-label="Main">
      <Link className="rail-logo" href="/" aria-label="Treadle, overview">
        <Icon name="logo" size={24} />
      </Link>
      {RAIL.map(([path, icon, name]) => (
        <Link key={path} className="rail-item" href={path} aria-current={isHere(path) ? "page" : undefined}>
          <Icon name={icon} size={20} />
          {name}
          {path === "/gates" && gates > 0 && (
            <span className="rail-badge" data-tone="ask" aria-label={`${gates} open`}>
              {gates > 99 ? "99+" : gates}
            </span>
          )}
        </Link>
      ))}
      <div className="rail-foot">
        <Account />
      </div>
    </nav>
  );
}
