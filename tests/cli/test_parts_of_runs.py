"""Verbs about a part of a run, in a process beside the engine's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import treadle
from tests.runtime.test_parts_of_runs import GROWING, WAITING
from treadle.cli.frame.exits import INVALID, OK, REFUSED, USAGE
from treadle.cli.main import run_verb


@pytest.fixture
def verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """One verb, its exit code, what it printed as JSON or said."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, Any]:
        code = run_verb([*words, "--output", "json"], debug=False)
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else err

    return run


def test_a_visit_or_a_group_is_cancelled_and_a_group_grows_and_is_closed(verb: Any) -> None:
    with treadle.open("treadle.db") as engine:
        run = engine.start(WAITING)
        while len(gates := [gate.token for gate in engine.gates()]) < 3:
            pass  # it has just begun
        assert verb("runs", "cancel", run.id, "--visit", "1", "--group", "fan")[0] == USAGE
        assert verb("runs", "cancel", run.id, "--visit", str(gates[0]))[0] == OK
        assert [gate.token for gate in engine.gates()] == gates[1:]
        _code, [group] = verb("runs", "groups", run.id)
        assert (group["names"], group["total"], group["node"]) == (["fan"], 3, "begin")
        assert verb("runs", "cancel", run.id, "--group", "fan")[0] == OK
        assert engine.gates() == []
        growing = engine.start(GROWING, {"items": ["a"]})
        assert verb("runs", "groups", growing.id, "--add", "fan", "--items", '["b"]')[0] == OK
        assert verb("runs", "groups", growing.id, "--add", "nothing", "--count", "1")[0] == REFUSED
        assert verb("runs", "groups", growing.id, "--add", "fan", "--items", '{"b": 1}')[0] == USAGE
        assert verb("runs", "groups", growing.id, "--add", "fan")[0] == USAGE
        assert verb("runs", "groups", growing.id, "--count", "2")[0] == USAGE
        assert verb("runs", "groups", growing.id, "--close", "fan")[1]["done"] == "closed"
        for gate in engine.gates():
            engine.complete_gate(growing.id, gate.visit, {"v": 1})
        assert growing.result() == {"votes": [1, 1]}


def test_a_run_about_an_entity_is_shown_as_it_was(verb: Any) -> None:
    with treadle.open("treadle.db") as engine:
        engine.deploy(WAITING)
        _code, told = verb("run", "waiting", "--no-wait", "--entity", "order/42", "--trigger", '{"by": "hand"}')
        assert "TYPE/ID" in verb("run", "waiting", "--no-wait", "--entity", "order")[1]
        run = engine.run(told["run"])
        while not engine.gates():
            pass  # it has just begun
        opened = next(event.seq for event in run.history() if event.type == "gate.opened")
        code, then = verb("runs", "show", run.id, "--at", str(opened))
        assert (code, then["entity"], then["seq"], then["state"]) == (OK, "42", opened, {"n": 1})
        assert verb("runs", "show", run.id, "--at", "100000")[0] == REFUSED
        assert verb("runs", "show", run.id, "--at", "0")[0] == INVALID
