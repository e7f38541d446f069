"""The fast suite: tables of decisions, every scenario, a part of the properties; stops at the first thing that fails.

Run as `python -m tests.mutants.suite [IGNORED…]` with PYTHONPATH showing the sources under test first. Prints the name
of what failed as its last line and exits 1; exits 0 when everything passed. IGNORED are names that fail without any
mutant. `--all` goes on after failures and prints every name: the state of the unpatched sources.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MEMORY_MAX = 2 << 30
"""A mutant may breed tokens without end; it shall not take the machine with it."""

# Fastest first: most mistakes are found in a second.
BEFORE_SCENARIOS = [["tests/unit/kernel", "tests/property/test_regressions.py", "-m", "not slow"]]
AFTER_SCENARIOS = [
    ["tests/property/test_order.py", "-k", "small_join or merges"],
    ["tests/property/test_invariants.py", "tests/property/test_replay.py", "tests/property/test_idempotence.py"],
    ["tests/property/test_oracle_control_flow.py", "tests/property/test_oracle_scope.py"],
    ["tests/property/test_oracle_compensation.py"],
]


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


def tests(arguments: list[str], ignored: set[str], stop: bool) -> list[str]:
    """What failed of these tests."""
    witness = Witness(ignored, stop)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = pytest.main(["-p", "no:cacheprovider", "--tb=no", "-q", *arguments], plugins=[witness])
    if not witness.failed and code not in (0, 1):
        return [f"pytest ended with {code}: {said.getvalue()[-300:]}"]
    return witness.failed


def scenarios(ignored: set[str], stop: bool) -> list[str]:
    """Which scenarios failed. Whatever they raise is a failure too: a mutant breaks things nobody expects."""
    from treadle.testing.scenario.documents import read_file
    from treadle.testing.scenario.runner import run_document

    failed = []
    for file in sorted([*TESTS.glob("scenarios/*.scenario.yaml"), *TESTS.glob("patterns/*.scenario.yaml")]):
        for document in read_file(file):
            name = f"{file.relative_to(TESTS.parent)}::{document.title}"
            try:
                ok = run_document(document).ok
            except Exception:
                ok = False
            if not ok and name not in ignored:
                failed.append(name)
                if stop:
                    return failed
    return failed


def main(arguments: list[str]) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    os.chdir(TESTS.parent)
    stop = "--all" not in arguments
    ignored = set(arguments)
    failed: list[str] = []
    steps = [lambda group=group: tests(group, ignored, stop) for group in BEFORE_SCENARIOS]
    steps.append(lambda: scenarios(ignored, stop))
    steps += [lambda group=group: tests(group, ignored, stop) for group in AFTER_SCENARIOS]
    for step in steps:
        failed += step()
        if failed and stop:
            break
    sys.stdout.write("".join(f"{name}\n" for name in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
