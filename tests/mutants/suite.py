"""The fast suites, one per room; a suite stops at the first thing that fails, and the likeliest catchers come first.

    kernel    tables of decisions, every scenario, a part of the properties, seeds of the simulator
    runtime   the tests that name the changed module, seeds of the simulator, the core's own tests, more seeds
    store     the tests that name the changed module, the contract every store keeps, seeds on that store

If it was recorded which tests execute the changed function (`reach`), the quickest of them come before all others.

Run as `python -m tests.mutants.suite ROOM [--about FILE --at LINE] [IGNORED…]` with PYTHONPATH showing the sources
under test first; FILE, below the room, is what was changed, LINE where. Prints the name of what failed as its last line
and exits 1; exits 0 when everything passed. IGNORED are names that fail without any mutant. `--all` goes on after
failures and prints every name: the state of the unpatched sources.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import resource
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.bug import ROOMS, Room
from tests.mutants.reach import Reaching, function_at, reaching

TESTS = Path(__file__).parents[1]
MEMORY_MAX = 2 << 30
"""A mutant may breed tokens without end; it shall not take the machine with it."""

QUICK = ["-m", "not slow"]
# What was imported before pytest began, for a simulation, shows plainer assertions: nobody reads them here.
PYTEST = ["-p", "no:cacheprovider", "--tb=no", "-q", "-W", "ignore::pytest.PytestAssertRewriteWarning"]

# Fastest first: most mistakes are found in a second.
BEFORE_SCENARIOS = [["tests/unit/kernel", "tests/property/test_regressions.py", *QUICK]]
AFTER_SCENARIOS = [
    ["tests/property/test_order.py", "-k", "small_join or merges"],
    ["tests/property/test_invariants.py", "tests/property/test_replay.py", "tests/property/test_idempotence.py"],
    ["tests/property/test_oracle_control_flow.py", "tests/property/test_oracle_scope.py"],
    ["tests/property/test_oracle_compensation.py"],
]
RUNTIME = [
    *("core", "order", "due", "timers", "recovering", "restart", "claims", "answers", "trying_again", "limits"),
    *("paused_in_line", "taking_up", "told_when_durable", "claims_trouble"),
    *("leases", "handing_over", "many_nodes", "moving_shards", "doubt", "crossing"),
]
"""Of tests/runtime: those about the engine itself, in memory or on a file."""
SEEDS_FROM = 4_000
SEEDS_FIRST = 60
SEEDS_MORE = 240
SEEDS_ON_FILES = 20
REACHING_SCENARIOS = 150
REACHING_TESTS = 60
"""Of those that execute a changed function; there are many for a function that everything uses."""

Step = Callable[[set[str], bool], list[str]]


class Witness:
    """A pytest plug-in that remembers what failed."""

    def __init__(self, ignored: set[str], stop: bool) -> None:
        self.failed: list[str] = []
        self._ignored = ignored
        self._stop = stop

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self._ignored:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        if self.failed and self._stop:
            item.session.shouldstop = "one is enough"


def tests(arguments: list[str], ignored: set[str], stop: bool, renamed: bool = False) -> list[str]:
    """What failed of these tests. `renamed`: some may no longer exist, and then none is run."""
    witness = Witness(ignored, stop)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = pytest.main([*PYTEST, *arguments], plugins=[witness])
    if not witness.failed and code not in (0, 1, pytest.ExitCode.USAGE_ERROR if renamed else 1):
        return [f"pytest ended with {code}: {said.getvalue()[-300:]}"]
    return witness.failed


def all_scenarios(only: set[str] | None = None) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Every scenario, or these: its name, and a function that plays it. Whatever it raises is a failure too: a mutant
    breaks things nobody expects."""
    from treadle.testing.scenario.documents import read_file
    from treadle.testing.scenario.runner import run_document

    def played(document: Any) -> bool:
        try:
            return run_document(document).ok
        except Exception:
            return False

    for file in sorted([*TESTS.glob("scenarios/*.scenario.yaml"), *TESTS.glob("patterns/*.scenario.yaml")]):
        place = f"{file.relative_to(TESTS.parent)}::"
        if only is not None and not any(name.startswith(place) for name in only):
            continue
        for document in read_file(file):
            name = f"{place}{document.title}"
            if only is None or name in only:
                yield name, partial(played, document)


def scenarios(ignored: set[str], stop: bool, only: set[str] | None = None) -> list[str]:
    """Which scenarios failed, of all or only of these."""
    failed = []
    for name, ok in all_scenarios(only):
        if name not in ignored and not ok():
            failed.append(name)
            if stop:
                break
    return failed


def seeds(first: int, number: int, store: str = "memory") -> Step:
    """So many seeds of the simulator."""

    def step(ignored: set[str], stop: bool) -> list[str]:
        from tests.simulator.simulate import simulate

        failed = []
        for seed in range(first, first + number):
            failure = simulate(seed, store=store).failure  # type: ignore[arg-type]
            name = f"./dev sim {seed}" + (f" --store {store}" if store != "memory" else "")
            if failure is not None and name not in ignored:
                failed.append(f"{name}: {failure.rule}" if stop else name)
                if stop:
                    break
        return failed

    return step


def naming(module: str, *folders: str) -> list[str]:
    """Test files that import the changed module: likelier than others to say what it does."""
    found = []
    for folder in folders:
        for file in sorted((TESTS / folder).glob("test_*.py")):
            package, _, last = module.rpartition(".")
            text = file.read_text("utf-8")
            if module in text or f"from {package} import {last}\n" in text:
                found.append(f"tests/{folder}/{file.name}")
    return found


def sources_under_test() -> Path:
    """The folder of the package that this process imports."""
    import treadle

    return Path(treadle.__path__[0])


def pytested(arguments: list[str]) -> Step:
    return lambda ignored, stop: tests(arguments, ignored, stop)


def steps_reaching(tests_of_it: list[Reaching]) -> Iterator[Step]:
    """What executes the changed function: the quickest scenarios and tests."""
    played = [one.name for one in tests_of_it if one.is_scenario]
    others = [one.name for one in tests_of_it if not one.is_scenario]
    if played:
        yield partial(scenarios, only=set(played[:REACHING_SCENARIOS]))
    if others:
        yield partial(tests, others[:REACHING_TESTS], renamed=True)


def steps_of(room: Room, about: str, at: int) -> Iterator[Step]:
    """The suite of a room, the likeliest catchers first."""
    if at:
        text = (sources_under_test() / room / about).read_text("utf-8")
        found = reaching(f"{room}/{about}", function_at(text, at))
        if found:
            yield from steps_reaching(found)
    module = f"treadle.{room}.{about.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")
    if room == "kernel":
        yield from map(pytested, BEFORE_SCENARIOS)
        yield scenarios
        yield from map(pytested, AFTER_SCENARIOS)
        yield seeds(SEEDS_FROM, SEEDS_FIRST)
    elif room == "runtime":
        named = naming(module, "unit/runtime", "runtime", "outside") if about else []
        if named:
            yield pytested([*named, "-k", "not postgres", *QUICK])
        yield seeds(SEEDS_FROM, SEEDS_FIRST)
        yield pytested([*(f"tests/runtime/test_{name}.py" for name in RUNTIME), "-k", "not postgres", *QUICK])
        yield seeds(SEEDS_FROM + SEEDS_FIRST, SEEDS_MORE)
    else:
        which = about.split("/")[0] if "/" in about else "memory or sqlite"
        named = naming(module, "unit/store", "contract") if about else []
        if named:
            yield pytested([*named, "-k", "not system"])
        yield pytested(["tests/contract", "-k", f"({which}) and not system", *QUICK])
        yield pytested(["tests/unit/store", *QUICK])
        if which != "postgres":
            yield seeds(SEEDS_FROM, SEEDS_ON_FILES, "sqlite")
            yield seeds(SEEDS_FROM, SEEDS_FIRST)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.suite")
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("ignored", nargs="*")
    parser.add_argument("--about", default="")
    parser.add_argument("--at", type=int, default=0)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seconds", type=int, help="of the processor, after which the process is killed")
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    if options.seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (options.seconds, options.seconds + 5))
    os.chdir(TESTS.parent)
    failed: list[str] = []
    for step in steps_of(options.room, options.about, options.at):
        failed += step(set(options.ignored), not options.all)
        if failed and not options.all:
            break
    sys.stdout.write("".join(f"{name}\n" for name in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
