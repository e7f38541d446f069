"""Who watches a run takes over when nobody coordinates the store any more: two real processes on one store."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell, hear
from tests.cli.test_engine_verbs import SIGNALLED

TAKES = "this process takes over and executes"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    made.write("signalled.yaml", SIGNALLED)
    return made


@pytest.fixture
def shared(shell: Shell) -> Iterator[Shell]:
    """On a database; its nodes are missed soon."""
    from tests.postgres import new_database

    with new_database() as dsn:
        shell.environment |= {"TREADLE_STORE": dsn, "TREADLE_ENGINE_LEASE_MS": "1000"}
        yield shell


def waiting_runs(shell: Shell) -> list[str]:
    """Newest first."""
    return [row["run"] for row in shell.json("runs", "list", "--status", "running")]


@pytest.mark.parametrize("how", ["normally", "killed"])
def test_a_second_run_takes_over_when_the_first_ones_process_is_gone(shell: Shell, how: str) -> None:
    first = shell.begin("run", "signalled.yaml")
    hear(first, "waits for signal")
    second = shell.begin("run", "signalled.yaml")
    hear(second, "waits for signal")
    mine, its = waiting_runs(shell)
    if how == "normally":
        shell("runs", "signal", its, "news", '"first"')
    else:
        first.kill()
    first.communicate(timeout=60)
    hear(second, TAKES)
    shell("runs", "signal", mine, "news", '"second"')
    output, said = second.communicate(timeout=60)
    assert (second.returncode, json.loads(output)) == (0, {"got": "second"}), said
    assert shell.json("fsck")["ok"]


def test_a_watcher_that_executes_takes_over(shell: Shell) -> None:
    first = shell.begin("run", "signalled.yaml")
    hear(first, "waits for signal")
    run = shell("run", "signalled", "--no-wait").stdout.strip()
    watching = shell.begin("runs", "watch", run, "--execute")
    hear(watching, "waits for signal")
    first.kill()
    first.communicate(timeout=60)
    hear(watching, TAKES)
    shell("runs", "signal", run, "news", "2")
    assert json.loads(watching.communicate(timeout=60)[0]) == {"got": 2}


def test_a_watcher_that_executes_needs_nobody_else(shell: Shell) -> None:
    shell("deploy", "signalled.yaml")
    run = shell("run", "signalled", "--no-wait").stdout.strip()
    with shell.going("runs", "watch", run, "--execute", until="waits for signal") as watching:
        shell("runs", "signal", run, "news", "3")
        assert json.loads(watching.communicate(timeout=60)[0]) == {"got": 3}


def test_who_stops_watching_before_it_had_to_take_over_leaves_nothing_behind(shell: Shell) -> None:
    with shell.going("run", "signalled.yaml", until="waits for signal") as first:
        second = shell.begin("run", "signalled.yaml")
        hear(second, "waits for signal")
        second.send_signal(signal.SIGINT)
        assert "no longer watching; run" in second.communicate(timeout=60)[1]
        for run in waiting_runs(shell):
            shell("runs", "signal", run, "news", "4")
        assert json.loads(first.communicate(timeout=60)[0]) == {"got": 4}


def test_on_a_database_the_last_watcher_takes_over_when_its_nodes_are_gone(shared: Shell) -> None:
    first = shared.begin("run", "signalled.yaml")
    hear(first, "waits for signal")
    second = shared.begin("run", "signalled.yaml")
    hear(second, "waits for signal")
    mine, _its = waiting_runs(shared)
    first.kill()
    first.communicate(timeout=60)
    hear(second, TAKES)
    shared("runs", "signal", mine, "news", '"second"')
    assert json.loads(second.communicate(timeout=60)[0]) == {"got": "second"}
