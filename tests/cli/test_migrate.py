"""`treadle migrate`: the plan of every run, what is in the way, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.cli.test_engine_verbs import started

FIRST = "workflow: w\nnodes: {ask: {action: {kind: human}}, end: {}}\ntransitions: [{from: ask, to: end}]\n"
SECOND = "workflow: w\nnodes: {review: {action: {kind: human}}, end: {}}\ntransitions: [{from: review, to: end}]\n"


@pytest.fixture
def attended(desk: Shell) -> Iterator[Shell]:
    """With an engine, on a store or behind a service."""
    desk("deploy", desk.write("first.yaml", FIRST))
    with desk.going("engine", until="coordinates"):
        yield desk


def test_a_run_that_has_something_in_the_way_is_listed_and_stays(attended: Shell) -> None:
    run = started(attended, "w")
    attended("deploy", attended.write("second.yaml", SECOND))
    told = attended("migrate", run, "--to", "2", "--dry-run", code=4)
    assert "'ask' is not in version 2" in told.stdout
    (report,) = json.loads(attended("migrate", "--workflow", "w", "--to", "2", "-o", "json", code=4).stdout)
    assert (report["run"], report["from"], report["to"], report["outcome"]) == (run, 1, 2, "refused")
    assert [entry["place"] for entry in report["obstacles"]] == ["node ask"]
    assert "possible" in attended("migrate", run, "--to", "2", "--node", "ask=review", "--dry-run").stdout
    assert "migrated" in attended("migrate", run, "--to", "2", "--node", "ask=review").stdout
    assert json.loads(attended("runs", "list", "-o", "json").stdout)[0]["version"] == 2


def test_runs_or_a_workflow_are_named(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert "one of the two" in shell("migrate", "--to", "2", code=2).stderr
    assert "OLD=NEW" in shell("migrate", "x", "--to", "2", "--node", "a", code=2).stderr
