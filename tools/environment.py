"""Makes `.venv`: the pinned dependencies and this project, editable.

Owns: finding or obtaining uv, and deciding whether anything has to be done. Promises: everything it makes
lies in `.venv` and `.dev` inside the checkout; an interrupted set-up is begun anew, never half used; when
nothing changed it costs one hash. Must not: need anything beyond the standard library, or touch the
interpreter it runs on.

uv comes from the first of these that works:

    uv on PATH  →  python -m pip  →  python -m venv, and the pip in it  →  the wheel, by urllib
                   (each installs the version pinned in requirements.lock, hash checked, into .dev/uv)

pip is asked before our own download because it knows everything people configure for it: proxies,
credentials, mirrors.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import wheels

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
DEV = ROOT / ".dev"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / "dev-stamp.json"
PYTHON = VENV / "bin" / "python"

# The oldest uv with every option used here.
UV_AT_LEAST = (0, 5)


class SetupFailed(Exception):
    """The environment could not be made; the message is for the person at the terminal."""


def say(text: str) -> None:
    print(f"dev: {text}", file=sys.stderr, flush=True)


def ready() -> None:
    """Returns when `.venv` matches this checkout, its lock file and this interpreter."""
    if stamped() == wanted():
        return
    DEV.mkdir(exist_ok=True)
    with one_at_a_time():
        if stamped() != wanted():  # somebody else may have done it while we waited
            build()


def wanted() -> dict[str, str]:
    """What an up-to-date environment was made from. A moved checkout counts as a new one."""
    ingredients = hashlib.sha256(LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes())
    return {
        "place": str(ROOT),
        "python": f"{sys.base_prefix} {sys.version}",
        "ingredients": ingredients.hexdigest(),
    }


def stamped() -> dict[str, str]:
    try:
        stamp: dict[str, str] = json.loads(STAMP.read_text("utf-8")) if PYTHON.exists() else {}
    except (OSError, ValueError):
        stamp = {}
    return stamp


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two `./dev` started together must not build the same environment twice."""
    with (DEV / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another ./dev is setting up; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build() -> None:
    began = time.monotonic()
    now, before = wanted(), stamped()
    uv = obtain_uv()
    STAMP.unlink(missing_ok=True)
    if any(before.get(key) != now[key] for key in ("place", "python")):
        say(f"creating .venv with Python {sys.version.split()[0]}")
        # Not sys.executable: somebody may run ./dev with .venv itself activated, and it is about to go.
        interpreter = getattr(sys, "_base_executable", sys.executable)
        run_uv(uv, "venv", "--clear", "--quiet", "--python", interpreter, str(VENV))
    say("installing the pinned dependencies (the first time takes a while)")
    run_uv(uv, "pip", "sync", "--require-hashes", str(LOCK))
    # hatchling is in the lock, so the build needs no isolated environment and no second download.
    run_uv(uv, "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    STAMP.write_text(json.dumps(now, indent=1) + "\n", "utf-8")
    say(f"environment ready after {time.monotonic() - began:.1f} s")


def lock(arguments: list[str]) -> None:
    """Writes `requirements.lock` anew: one file for every platform and Python, no host, no path in it.

    Only the default index is asked: the hashes of a private mirror's rebuilt wheels would help nobody else.
    """
    DEV.mkdir(exist_ok=True)
    settings = uv_settings()
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_INDEX_STRATEGY"):
        settings.pop(name, None)
    command = ["pip", "compile", "pyproject.toml", "--group", "dev", "--all-extras", "--universal", "--generate-hashes"]
    command += ["--python-version", "3.11", "--no-build", "--custom-compile-command", "./dev lock", "--quiet"]
    run_uv(obtain_uv(), *command, "--output-file", LOCK.name, *arguments, settings=settings)
    if "://" in LOCK.read_text("utf-8"):
        raise SetupFailed(f"{LOCK.name} names a host; it must work with anybody's index")


def run_uv(uv: Path, *arguments: str, settings: dict[str, str] | None = None) -> None:
    done = subprocess.run([uv, *arguments], cwd=ROOT, env=settings or uv_settings())
    if done.returncode:
        hint = (
            ""
            if wheels.trusted_certificates()
            else ("; this machine has no CA certificates: apt install ca-certificates, or set SSL_CERT_FILE")
        )
        raise SetupFailed(f"uv {arguments[0]} failed (exit {done.returncode}); its message is above{hint}")


def uv_settings() -> dict[str, str]:
    """The environment for uv: its own settings where given, else what pip has been told."""
    settings = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONPATH")}
    settings.setdefault("UV_CACHE_DIR", str(DEV / "cache"))
    settings["VIRTUAL_ENV"] = str(VENV)
    settings["UV_PYTHON_DOWNLOADS"] = "never"
    if not settings.get("UV_DEFAULT_INDEX") and not settings.get("UV_INDEX_URL"):
        for ours, theirs in (
            ("UV_DEFAULT_INDEX", "index-url"),
            ("UV_INDEX", "extra-index-url"),
            ("UV_FIND_LINKS", "find-links"),
        ):
            value = wheels.pip_setting(theirs)
            if value and ours not in settings:
                settings[ours] = value.replace(" ", ",") if ours == "UV_FIND_LINKS" else value
    # Every file is checked against the lock, so it may come from whichever index has that very file.
    settings.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    certificates = wheels.trusted_certificates()
    if certificates:
        settings.setdefault("SSL_CERT_FILE", certificates)
    return settings


def obtain_uv() -> Path:
    """A uv that is new enough: the one on PATH, the one we fetched before, or a fresh one in `.dev/uv`."""
    on_path = shutil.which("uv")
    ours = DEV / "uv" / "bin" / "uv"
    for candidate in (Path(on_path) if on_path else None, ours):
        if candidate and version_of(candidate) >= UV_AT_LEAST:
            return candidate
    version, sums = wheels.pin(LOCK, "uv")
    say(f"fetching uv {version} into .dev/uv")
    pins = DEV / "uv.txt"
    pins.write_text(f"uv=={version} " + " ".join(f"--hash=sha256:{one}" for one in sorted(sums)) + "\n", "utf-8")
    reasons = []
    for way in (by_pip, by_venv, by_download):
        shutil.rmtree(ours.parent.parent, ignore_errors=True)
        reason = way(pins)
        if version_of(ours) >= UV_AT_LEAST:
            return ours
        reasons.append(f"{way.__name__.replace('_', ' ')}: {reason or 'the uv it brought does not run'}")
    raise SetupFailed("uv could not be had:\n  " + "\n  ".join(reasons))


def version_of(uv: Path) -> tuple[int, ...]:
    try:
        answer = subprocess.run([uv, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ()
    numbers = re.match(r"uv (\d+)\.(\d+)", answer.stdout)
    return tuple(map(int, numbers.groups())) if numbers and not answer.returncode else ()


def by_pip(pins: Path, python: str = sys.executable) -> str | None:
    """Asks a pip. `--target` is allowed where Debian marks its Python as externally managed."""
    if outcome([python, "-m", "pip", "--version"]):
        return "this Python has no pip"
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-cache-dir", "--no-deps"]
    command += ["--only-binary=:all:", "--require-hashes", "-r", str(pins), "--target", str(DEV / "uv")]
    return outcome(command, show=sys.stderr.isatty())


def by_venv(pins: Path) -> str | None:
    place = DEV / "pip"
    problem = outcome([sys.executable, "-m", "venv", "--clear", str(place)])
    problem = by_pip(pins, str(place / "bin" / "python")) if problem is None else problem
    shutil.rmtree(place, ignore_errors=True)
    return problem


def by_download(_pins: Path) -> str | None:
    try:
        wheel = wheels.fetch(LOCK, "uv", DEV)
    except wheels.Unobtainable as reason:
        return str(reason)
    target = DEV / "uv" / "bin" / "uv"
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        binary = next(name for name in archive.namelist() if name.endswith(".data/scripts/uv"))
        target.write_bytes(archive.read(binary))
    target.chmod(0o755)
    wheel.unlink()
    return None


def outcome(command: list[str], show: bool = False) -> str | None:
    """None if the command succeeded, else the last line it said. `show` lets its progress through."""
    settings = dict(os.environ)
    certificates = wheels.trusted_certificates()
    if certificates:
        settings.setdefault("PIP_CERT", certificates)
    try:
        done = subprocess.run(
            command,
            stdout=sys.stderr if show else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=settings,
        )
    except OSError as error:
        return str(error)
    if not done.returncode:
        return None
    said = (done.stderr or done.stdout or "").strip().splitlines()
    return said[-1] if said else f"exit {done.returncode}"
