"""The verbs of `./dev`.

Owns: what each verb runs, and the stages of `test` and `check`. Promises: the environment is up to date
before anything runs in it; a stage that fails stops the rest and is named in the last lines; exit code 0
only if all of it passed. Must not: know how the environment is made (environment.py does).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import environment
import native
import web
from environment import ROOT, VENV

PYTHON = str(environment.PYTHON)
PYTEST = [PYTHON, "-m", "pytest", "-p", "tests.skips"]
"""What is skipped is told, and fails unless the reason is known."""
RUFF = [str(VENV / "bin" / "ruff")]

TERMINAL = "--terminal"
PACKAGE = "TREADLE_DEV_PACKAGE"
"""Set for children of `native`: where they find the package."""


class Stage(NamedTuple):
    name: str
    command: list[str]
    remedy: str = ""


MYPY_TESTS = [PYTHON, "-m", "mypy", "--strict", "--explicit-package-bases", "tests"]
CHECK = [
    Stage("format", [*RUFF, "format", "--check", "."], "./dev fmt"),
    Stage("lint", [*RUFF, "check", "."], "./dev fmt fixes some of it"),
    Stage("types", [PYTHON, "-m", "mypy", "--strict", "src/treadle", "tools"]),
    Stage("types of the tests", ["env", "MYPYPATH=src:.", *MYPY_TESTS]),
    Stage("tidy", [*PYTEST, "tests/arch"]),
]

SEED = "TREADLE_TEST_SEED"
"""Where random tests begin, for children of `test`: the same place each time for one commit, another for the next."""

# 200 fixed seeds with every feature and two minutes of torture on every run of CI; the regression seeds are part of the
# tests. The seeds are fixed because CI must not fail by chance: `./dev sim` plays fresh ones.
TEST = [
    Stage("tests", [*PYTEST, "-n", "auto"]),
    Stage("simulator", [PYTHON, "-m", "tests.simulator", "--seeds", "200", "--from", "7000"]),
    Stage("torture", [PYTHON, "-m", "tests.torture", "--store", "postgres", "--minutes", "2"]),
]

# What has to do with deciding and folding.
KERNEL_TESTS = ["tests/unit/kernel", "tests/property", "tests/scenarios", "tests/patterns", "tests/sim"]
# The canvas: its types, its model, and the application in a real browser against a real server.
WEB = str(ROOT / "tools" / "web.py")
CANVAS = [Stage("canvas: types", [PYTHON, WEB, "check"]), Stage("canvas: tests", [PYTHON, WEB, "test"])]
BROWSER = Stage("canvas: browser", [PYTHON, WEB, "browse"])
NATIVE = Stage("compiled kernel", [sys.executable, __file__, "native", "test", "-n", "auto", *KERNEL_TESTS])

FORMAT = [
    Stage("lint fixes", [*RUFF, "check", "--fix-only", "."]),
    Stage("format", [*RUFF, "format", "."]),
]

HELP = """\
./dev run [--terminal]                 set everything up and show a workflow running: on the canvas, at the link that
                                       is printed, until Ctrl+C; with --terminal in the terminal, until it has ended
./dev test [PYTEST ARGUMENTS…]         set everything up; all checks, all tests, simulations, two minutes of torture,
                                       the kernel's tests once more on the compiled one. With arguments: only pytest,
                                       with them
./dev check                            format, lint, types, tidy
./dev fmt                              format, and fix what can be fixed
./dev sim [SEED | --seeds N | --seconds N] [--store sqlite|postgres]
                                       the simulator: one seed again, or fresh ones
./dev bench [NAME] [--json]            measure
./dev mutants [--random N --seed S]    plant bugs, listed or random ones; the suite must catch each
./dev torture [--kills N] [--minutes M] [--cuts N] [--rot N] [--seed S] [--json]
                                       kill real engines at random, cut the power; nothing may be lost or doubled
./dev torture --store postgres [--campaign failover|pgbouncer] [--minutes M] [--seed S] [--json]
                                       many engines and workers on one PostgreSQL: kills, stops, crashes of the
                                       database, bad lines, wrong clocks
./dev torture --service [--store sqlite|postgres] [--minutes M] [--seed S] [--json]
                                       clients over HTTP while servers and the database are killed
./dev torture --flow [--starts N] [--kills N] [--seed S] [--json]
                                       four engines, workflows that let one run live at a time; engines are killed
./dev fuzz [--minutes M] [--store sqlite|postgres] [--seed S]
                                       random requests against a real service: none may fail, hang, or be answered
                                       otherwise than described
./dev native [VERB …]                  compile the kernel; then the verb with it: `./dev native bench`
./dev web [types | check | test | browse]
                                       build the canvas; make the types of the API anew; its checks and tests
./dev treadle …                        the command line, in the project's own environment
./dev python …                         the project's interpreter
./dev lock [--upgrade]                 pin the dependencies anew in requirements.lock
./dev help                             this
"""


def main(arguments: list[str]) -> int:
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("help", [])
    if verb in ("help", "-h", "--help"):
        print(HELP, end="")
        return 0
    if verb not in VERBS:
        print(f"dev: there is no verb {verb!r}\n\n{HELP}", end="", file=sys.stderr)
        return 2
    try:
        if verb != "lock":
            environment.ready()
        return VERBS[verb](rest)
    except environment.SetupFailed as problem:
        print(f"dev: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def become(*command: str) -> Callable[[list[str]], int]:
    """A verb that turns into another program, so its exit code and signals are its own."""

    def verb(arguments: list[str]) -> int:
        os.chdir(ROOT)
        os.execve(command[0], [*command, *arguments], child_settings())

    return verb


def treadle(arguments: list[str]) -> int:
    """Like `become`, in the directory and with the PYTHONPATH of the caller: paths are theirs."""
    program = str(VENV / "bin" / "treadle")
    places = filter(None, (os.environ.get(PACKAGE), os.environ.get("PYTHONPATH")))
    os.execve(program, [program, *arguments], {**os.environ, "PYTHONPATH": os.pathsep.join(places)})


def run(arguments: list[str]) -> int:
    """The first minute: on the canvas, or with --terminal (and where the canvas cannot be built) in the terminal."""
    module, wanted = "treadle.cli.nodes.tour", [one for one in arguments if one != TERMINAL]
    problem = None if TERMINAL in arguments else web.ready()
    if problem is not None:
        print(f"dev: {problem}\ndev: this machine has no canvas; here is the same in the terminal", file=sys.stderr)
    if problem is not None or TERMINAL in arguments:
        module = "treadle.cli.nodes.demo"
    return become(PYTHON, "-m", module)(wanted)


def test(arguments: list[str]) -> int:
    if arguments:
        return stages([Stage("tests", [*PYTEST, *arguments])])
    os.environ.setdefault(SEED, str(seed_of_commit()))
    if PACKAGE in os.environ:
        return stages([*CHECK, *TEST])  # all of it is on the compiled kernel
    return stages([*CHECK, *canvas_stages(), *TEST, *native_stages()])


def seed_of_commit() -> int:
    """A commit that passed will pass again, and every commit is tried with draws of its own."""
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return int(found.stdout[:8] or "0", 16)


def canvas_stages() -> list[Stage]:
    """The stages of the canvas that this machine can do; it is built first. What it cannot do is said."""
    problem = web.ready()
    if problem is not None:
        print(f"dev: the canvas is not tested here: {problem}", file=sys.stderr, flush=True)
        return []
    if web.browser() is None:
        print("dev: no Chromium: the canvas is not tested in a browser (Debian: apt install chromium)", file=sys.stderr)
        return CANVAS
    return [*CANVAS, BROWSER]


def native_stages() -> list[Stage]:
    missing = native.obstacle()
    if missing is None:
        return [NATIVE]
    print(f"dev: the compiled kernel is not tested here: {missing}", file=sys.stderr, flush=True)
    return []


def stages(todo: list[Stage]) -> int:
    """Runs stages in order, each with a headline and its duration; stops at the first that fails."""
    done: list[tuple[str, float]] = []
    for stage in todo:
        print(mark(f"── {stage.name} ", "1") + "─" * max(2, 60 - len(stage.name)), flush=True)
        began = time.monotonic()
        code = subprocess.run(stage.command, cwd=ROOT, env=child_settings()).returncode
        done.append((stage.name, time.monotonic() - began))
        if code:
            print(mark(f"✗ {stage.name} failed (exit {code})", "31"), f"after {summary(done)}", flush=True)
            print("  again: " + " ".join(stage.command).replace(f"{ROOT}/", ""))
            print(f"  remedy: {stage.remedy}\n" if stage.remedy else "", end="", flush=True)
            return 1
    print(mark("✓ all passed:", "32"), summary(done), flush=True)
    return 0


def summary(done: list[tuple[str, float]]) -> str:
    return " · ".join(f"{name} {seconds:.1f} s" for name, seconds in done)


def mark(text: str, colour: str) -> str:
    plain = "NO_COLOR" in os.environ or not sys.stdout.isatty()
    return text if plain else f"\033[{colour}m{text}\033[0m"


def child_settings() -> dict[str, str]:
    """Somebody's PYTHONPATH must not decide whether our tests pass; `native` chooses another package than `src`."""
    settings = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONPATH")}
    return {**settings, "PYTHONPATH": package} if (package := os.environ.get(PACKAGE)) else settings


def with_compiled_kernel(arguments: list[str]) -> int:
    """Another verb, on the compiled kernel; without one it is only built."""
    built = subprocess.run([PYTHON, native.__file__], cwd=ROOT, env=child_settings()).returncode
    if built or not arguments:
        return built
    os.environ[PACKAGE] = str(native.PLACE)
    return main(arguments)


def lock(arguments: list[str]) -> int:
    environment.lock(arguments)
    return 0


VERBS: dict[str, Callable[[list[str]], int]] = {
    "run": run,
    "test": test,
    "check": lambda _arguments: stages(CHECK),
    "fmt": lambda _arguments: stages(FORMAT),
    "sim": become(PYTHON, "-m", "tests.simulator"),
    "bench": become(PYTHON, "-m", "bench"),
    "mutants": become(PYTHON, "-m", "tests.mutants"),
    "torture": become(PYTHON, "-m", "tests.torture"),
    "fuzz": become(PYTHON, "-m", "tests.fuzz"),
    "native": with_compiled_kernel,
    "web": become(PYTHON, str(ROOT / "tools" / "web.py")),
    "treadle": treadle,
    "python": become(PYTHON),
    "lock": lock,
}


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a Latin-1 terminal has no ✓
    sys.exit(main(sys.argv[1:]))
