"""Every expectation of the auditor is broken by a history made for it, and none is left out."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sim.forgeries import GROUPS, JOINS, ROUTING, Forged
from tests.sim.forgeries_of_changes import BUDGETS, CHANGED, FORKED, MIGRATED
from tests.sim.forgeries_of_reopening import REOPENED
from tests.sim.forgeries_of_starts import STARTS, overtaken
from tests.sim.forgeries_of_visits import ANSWERS, ENDS, FAMILY, LIFE, OUTSIDE
from tests.simulator import audit
from tests.simulator.audit.record import Record

TABLE = [*JOINS, *GROUPS, *ROUTING, *ANSWERS, *FAMILY, *LIFE, *ENDS, *OUTSIDE, *REOPENED]
TABLE += [*CHANGED, *FORKED, *MIGRATED, *BUDGETS, *STARTS]
ELSEWHERE = {"auditor.py", "journal.py"}
"""What is asked of whole runs and of clients has tests of its own, in `test_auditor`."""


@pytest.mark.parametrize("forged", TABLE, ids=lambda forged: f"{forged.rule}: {forged.words}")
def test_a_lie_is_noticed_by_the_rule_made_for_it(forged: Forged) -> None:
    complaints = forged.play().record.complaints
    fitting = [text for rule, text in complaints if rule == forged.rule and forged.words in text]
    assert fitting, f"nobody says {forged.rule}: … {forged.words} …, only {complaints}"


@pytest.mark.parametrize(("key", "is_noticed"), [(1, True), (2, False)])
@pytest.mark.parametrize(
    "keyed",
    [
        {"concurrency": {"limit": 9}, "batch": {"size": 1, "within_ms": 100, "key": "$.input.k"}},
        {"concurrency": {"limit": 9}, "rate": {"limit": 9, "per_ms": 100, "key": "$.input.k"}},
        {"concurrency": {"limit": 9, "key": "$.input.k"}},
    ],
)
def test_a_run_is_passed_over_only_by_runs_of_its_own_key(keyed: dict[str, Any], key: int, is_noticed: bool) -> None:
    assert ("turn" in overtaken({"k": key}, **keyed).rules) is is_noticed


def test_no_expectation_of_the_auditor_is_without_a_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    spoken: set[tuple[str, int]] = set()

    def complain(_record: Record, _rule: str, _text: str) -> None:
        frame = sys._getframe(1)
        if frame.f_code is Record.expect.__code__ and frame.f_back is not None:
            frame = frame.f_back
        spoken.add((Path(frame.f_code.co_filename).name, frame.f_lineno))

    monkeypatch.setattr(Record, "complain", complain)
    for forged in TABLE:
        forged.play()
    silent = [
        f"{file}:{first}"
        for file, first, last in expectations()
        if not any(spot[0] == file and first <= spot[1] <= last for spot in spoken)
    ]
    assert not silent, f"no row of the table makes these complain: {silent}"


def expectations() -> list[tuple[str, int, int]]:
    """Where the auditor says what it expects: file, first and last line."""
    found = []
    for file in sorted(Path(audit.__path__[0]).glob("*.py")):
        if file.name in ELSEWHERE:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                asked = node.func.attr in ("expect", "complain") and getattr(node.func.value, "id", "") == "record"
                if asked:
                    found.append((file.name, node.lineno, node.end_lineno or node.lineno))
    return found
