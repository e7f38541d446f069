"""Which tests execute which functions, recorded once: a test that never calls a function cannot notice a bug in it.

Owns the record, a file in `.dev/` that is made anew with `./dev mutants --record` (it takes as long as the tests do).
With it, a hunt begins with what reaches the changed function, the quickest first; then comes the whole suite of the
room, so a record that is old or has gaps makes a hunt slower, never wrong. What runs in other processes (a service, a
command) is not seen. Must not decide which mutants there are.
"""

from __future__ import annotations

import ast
import json
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
RECORD = ROOT / ".dev" / "reach.json"
FOLDERS = [
    "tests/unit/kernel",
    "tests/unit/runtime",
    "tests/unit/store",
    "tests/runtime",
    "tests/contract",
    "tests/property",
]
QUIETLY = ["-p", "no:cacheprovider", "--tb=no", "-q", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
IN_THIS_PROCESS = ["-m", "not slow", "-k", "not postgres and not pgbouncer and not system"]


OFTEN = 200
"""Tests between two writings of the record."""


class Reaching(NamedTuple):
    """One test that executes a function."""

    name: str
    """As pytest calls it; a scenario's is `file::title`."""
    seconds: float
    """How long it took while it was recorded."""

    @property
    def is_scenario(self) -> bool:
        return ".scenario.yaml::" in self.name


class Recorder:
    """Notes every function of the product that is called, test by test. Also a pytest plug-in."""

    def __init__(self) -> None:
        self._tests: list[tuple[str, float]] = []
        self._reached: dict[str, dict[str, list[int]]] = {}
        self._left_out: set[str] = set()

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Notes what is called meanwhile as reached by this test."""
        called: dict[int, CodeType] = {}

        def noted(frame: FrameType, _event: str, _argument: Any) -> None:
            code = frame.f_code
            called[id(code)] = code

        began = time.perf_counter()
        threading.settrace(noted)
        sys.settrace(noted)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)
            self._add(name, time.perf_counter() - began, called)

    def _add(self, name: str, seconds: float, called: dict[int, CodeType]) -> None:
        number = len(self._tests)
        self._tests.append((name, round(seconds, 4)))
        if number % OFTEN == OFTEN - 1:
            self.write(RECORD)  # what is recorded so far is of use, whatever happens to the rest
        for code in called.values():
            _, below, file = code.co_filename.rpartition("/treadle/")
            if below and "/src" in code.co_filename and not code.co_qualname.endswith("<module>"):
                of_file = self._reached.setdefault(file, {})
                tests = of_file.setdefault(code.co_qualname, [])
                if not tests or tests[-1] != number:
                    tests.append(number)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        with self.during(item.nodeid):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.leave_out(report.nodeid)

    def leave_out(self, name: str) -> None:
        self._left_out.add(name)

    def write(self, file: Path) -> None:
        """A test that fails without any mutant would catch them all: it is left out, and so is one that was skipped."""
        file.parent.mkdir(exist_ok=True)
        record = {"tests": self._tests, "reached": self._reached, "left_out": sorted(self._left_out)}
        file.write_text(json.dumps(record), "utf-8")


def function_at(text: str, line: int) -> str:
    """The qualified name of the innermost function around a line, "" for a line of no function."""

    def within(node: ast.AST, name: str, inside: bool) -> str:
        found = name if inside else ""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                assert child.end_lineno is not None
                if child.lineno <= line <= child.end_lineno:
                    is_function = not isinstance(child, ast.ClassDef)
                    joint = ".<locals>." if inside else "." if name else ""
                    return within(child, f"{name}{joint}{child.name}", is_function)
            elif getattr(child, "lineno", line) <= line <= (getattr(child, "end_lineno", line) or line):
                deeper = within(child, name, inside)
                if deeper != found:
                    return deeper
        return found

    return within(ast.parse(text), "", False)


def reaching(file: str, function: str) -> list[Reaching] | None:
    """The tests that execute a function, the quickest first. `file` is below src/treadle. None: nobody knows, because
    nothing was recorded, or the line is executed when the module is imported."""
    if not function or not RECORD.exists():
        return None
    record = json.loads(RECORD.read_text("utf-8"))
    if file not in record["reached"]:
        return None
    left_out = set(record.get("left_out", ()))
    found = [Reaching(*record["tests"][number]) for number in record["reached"][file].get(function, [])]
    return sorted((one for one in found if one.name not in left_out), key=lambda one: one.seconds)


def record(say: Callable[[str], None]) -> int:
    """Runs every test in this process, and writes down what each reaches."""
    from tests.mutants.suite import all_scenarios

    recorder = Recorder()
    for name, ok in all_scenarios():
        with recorder.during(name):
            if not ok():
                recorder.leave_out(name)
    for folder in FOLDERS:
        say(f"recording {folder}")
        pytest.main([*QUIETLY, *IN_THIS_PROCESS, folder], plugins=[recorder])
    recorder.write(RECORD)
    return 0
