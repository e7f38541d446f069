"""Verbs about a part of a run, in a process beside the engine's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.served import ServedShell, opened
from tests.cli.shell import Shell
from tests.runtime.test_parts_of_runs import GROWING, WAITING
from treadle.cli.frame.exits import INVALID, OK, REFUSED, USAGE
from treadle.language import load_value

FAILING = load_value(
    {
        "workflow": "failing",
        "nodes": {
            "find": {"action": {"kind": "mock", "output": {"n": 7}}, "output_mapping": {"state.found": "$.n"}},
            "broken": {"action": {"kind": "mock", "error": {"message": "no way"}}},
        },
        "transitions": [{"from": "find", "to": "broken"}],
    }
).require()


@pytest.fixture
def verb(desk: Shell) -> Any:
    """One verb, its exit code, what it printed as JSON or said."""

    def run(*words: str) -> tuple[int, Any]:
        done = desk.here(*words, "--output", "json")
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    return run


def test_a_visit_or_a_group_is_cancelled_and_a_group_grows_and_is_closed(desk: Shell, verb: Any) -> None:
    with opened(desk) as engine:
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


def test_a_run_about_an_entity_is_shown_as_it_was(desk: Shell, verb: Any) -> None:
    with opened(desk) as engine:
        engine.deploy(WAITING)
        trigger = () if isinstance(desk, ServedShell) else ("--trigger", '{"by": "hand"}')
        _code, told = verb("run", "waiting", "--no-wait", "--entity", "order/42", *trigger)
        assert "TYPE/ID" in verb("run", "waiting", "--no-wait", "--entity", "order")[1]
        run = engine.run(told["run"])
        while not engine.gates():
            pass  # it has just begun
        waits = next(event.seq for event in run.history() if event.type == "gate.opened")
        code, then = verb("runs", "show", run.id, "--at", str(waits))
        assert (code, then["entity"], then["state"]) == (OK, "order/42", {"n": 1})
        assert then["seq"] >= waits, "the end of the decision that the event lies in"
        assert verb("runs", "show", run.id, "--at", "100000")[0] == REFUSED
        assert verb("runs", "show", run.id, "--at", "0")[0] == INVALID


def test_a_run_is_shown_with_the_numbers_of_its_visits_and_its_state(desk: Shell, verb: Any) -> None:
    with opened(desk) as engine:
        waiting, failing = engine.start(WAITING), engine.start(FAILING)
        while len(gates := [gate.visit for gate in engine.gates()]) < 3:
            pass  # it has just begun
        failing.wait()
        _code, shown = verb("runs", "show", waiting.id)
        assert ([one["visit"] for one in shown["live"]], shown["failed"], shown["state"]) == (gates, [], {"n": 1})
        _code, shown = verb("runs", "show", failing.id)
        assert [(one["visit"], one["node"], one["attempt"]) for one in shown["failed"]] == [(2, "broken", 1)]
        text = desk.here("runs", "show", failing.id).stdout
    lines = [line.split() for line in text.splitlines()]
    assert ["state", '{"found":7}'] in lines
    assert ["2", "broken", "failed", "1", "TASK_FAILED:", "no", "way"] in lines
