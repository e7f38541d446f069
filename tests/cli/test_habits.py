"""What the command line does without being asked: bare groups list, keys are compared, clocks that stand still."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.served import opened
from tests.cli.shell import Shell
from tests.cli.test_tables import drawn
from treadle.cli.frame.exits import OK, REFUSED
from treadle.cli.nodes.schedules import COLUMNS, GIVES
from treadle.cli.screen.output import clock_time, console, live_console
from treadle.language import load_text

NAPPING = load_text("workflow: napping\nnodes:\n  nap: {action: {kind: wait, ms: 600000}}\n")


@pytest.fixture
def verb(desk: Shell) -> Any:
    """One verb: its exit code, what it printed, what it said."""

    def run(*words: str) -> tuple[int, str, str]:
        done = desk.here(*words)
        return done.returncode, done.stdout, done.stderr

    return run


def test_a_bare_group_of_verbs_lists_and_a_pause_stops_the_clocks(desk: Shell, verb: Any) -> None:
    with opened(desk) as engine:
        run = engine.start(NAPPING)
        assert run.id in verb("runs")[1]
        assert "there are no open gates" in verb("gates")[2]
        assert "there are no schedules" in verb("schedules")[2]
        assert "there are no dead letters" in verb("dead")[2]
        assert json.loads(verb("runs", "--output", "json")[1])[0]["run"] == run.id
        run.pause()
        shown = verb("runs", "show", run.id)[1]
        assert "wakes up some time after the run goes on" in shown
        assert "in 0 ms" not in shown


def test_a_key_with_another_input_is_refused_and_names_its_run(desk: Shell, verb: Any) -> None:
    with opened(desk) as engine:
        engine.deploy(NAPPING)
        code, first, _ = verb("run", "napping", "--no-wait", "--key", "k", "--input", '{"n": 1}')
        assert verb("run", "napping", "--no-wait", "--key", "k", "--input", '{"n": 1}') == (code, first, "")
        code, out, told = verb("run", "napping", "--no-wait", "--key", "k", "--input", '{"n": 2}')
        assert (code, out) == (REFUSED, "")
        assert f"key 'k' belongs to run {first.strip()}" in told
        assert '{"n":1}' in told


def test_keys_show_when_they_expire(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.here("keys", "create", "ci", "--role", "viewer", "--expires", "90d")
    [row] = json.loads(shell.here("keys", "--output", "json").stdout)
    listed, ended = shell.here("keys").stdout, shell.here("keys", "revoke", row["id"]).stdout
    assert str(clock_time(row["expires"])) in listed
    assert str(clock_time(row["expires"])) in ended and str(clock_time(row["created"])) in ended


def test_the_script_of_bash_leaves_files_to_bash(tmp_path: Path) -> None:
    done = Shell(tmp_path).here("completion", "bash")
    assert done.returncode == OK
    assert "complete -o bashdefault -o default -F _treadle treadle" in done.stdout


def test_a_schedule_keeps_its_time_on_a_narrow_terminal() -> None:
    row = {
        "name": "nightly",
        "workflow": "accounting-close",
        "when": "15 3 * * 1-5",
        "timezone": "Europe/Amsterdam",
        "next": "2026-11-18 03:15:00 CET",
        "overlap": "queue",
        "catch_up": "all",
        "paused": "",
    }
    assert any(row["next"] in line for line in drawn(COLUMNS, row, 80, GIVES))


def test_what_a_function_prints_is_no_part_of_the_answer(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("talking.py", "def talk(n):\n    print('talking', n)\n    return {'n': n}\n")
    action = "{kind: python, function: 'talking:talk'}"
    text = f"workflow: talking\nnodes:\n  a: {{action: {action}, input_mapping: {{n: $.input.n}}}}\n"
    done = shell("run", shell.write("talking.yaml", text), "--input", '{"n": 1}', "--output", "json")
    assert json.loads(done.stdout)["status"] == "completed"
    assert "talking 1" in done.stderr


def test_what_is_printed_beside_a_live_table_goes_through_its_console() -> None:
    with live_console() as screen:
        assert console(stderr=True) is screen
        assert console() is not screen
    assert console(stderr=True) is not screen
