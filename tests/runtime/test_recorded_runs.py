"""Recorded runs: exported as scenarios that pass as written, and replayed against other definitions (6.6)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.executing import on_loop
from tests.runtime.reaching import reached
from treadle import Engine, load_value
from treadle.kinds import Retryable, spend
from treadle.testing.recorded.export import export
from treadle.testing.recorded.past import RecordedRun, read_run
from treadle.testing.recorded.replay import replay
from treadle.testing.scenario.runner import run_text

FLOW: dict[str, Any] = {
    "workflow": "flow",
    "budget": {"cost": 2},
    "output": {"votes": "$.state.votes", "fine": "$.state.fine"},
    "nodes": {
        "ask": {"action": {"kind": "python", "function": "ask"}},
        "judge": {
            "action": {"kind": "python", "function": "judge"},
            "input_mapping": {"seat": "$._branch.index"},
            "output_mapping": {"state.vote": "$.vote"},
            "retry": {"max_attempts": 2},
        },
        "check": {"action": {"kind": "human", "title": "Fine?"}, "output_mapping": {"state.fine": "$.fine"}},
        "below": {"action": {"kind": "workflow_call", "workflow": "leaf"}},
    },
    "transitions": [
        {"id": "t", "from": "ask", "to": "judge", "spawn_count": 2},
        {
            "from": "judge",
            "to": "check",
            "synchronization": {
                "sibling_group": "t",
                "merge": {"source": "_branch.output.vote", "target": "state.votes", "strategy": "append"},
            },
        },
        {"from": "check", "to": "below", "condition": "state.fine"},
    ],
}
LEAF: dict[str, Any] = {"workflow": "leaf", "nodes": {"only": {"action": {"kind": "python", "function": "only"}}}}


class Bench:
    """Functions that are called once, when the run is recorded: a replay that calls one is counted."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def ask(self) -> dict[str, int]:
        self.calls.append("ask")
        spend(cost=0.5)
        return {"asked": 1}

    def judge(self, seat: int) -> dict[str, int]:
        self.calls.append(f"judge {seat}")
        if self.calls.count("judge 1") == 1 and seat == 1:
            raise Retryable("busy")
        return {"vote": seat * 10}

    def only(self) -> dict[str, str]:
        self.calls.append("only")
        return {"secret": "[redacted]"}


@asynccontextmanager
async def recorded_run(place: Path, way: str = "itself") -> AsyncIterator[tuple[RecordedRun, Bench]]:
    bench = Bench()
    functions: dict[str, Callable[..., Any]] = {"ask": bench.ask, "judge": bench.judge, "only": bench.only}
    async with Engine(place, functions=functions) as engine:
        for definition in (LEAF, FLOW):
            await engine.deploy(load_value(definition))
        run = await engine.start("flow", {"topic": "tea"})
        async for event in run.events():
            if event.type == "gate.opened":
                break
        [gate] = await engine.gates()
        await engine.complete_gate(run.id, gate.token, {"fine": True}, by="Ada")
        await run.wait(20)
        async with reached(engine, way, place) as client:
            yield await read_run(client, run.id), bench


@pytest.mark.parametrize("way", ["itself", "server"])
@on_loop
async def test_an_exported_run_passes_as_written_and_calls_nothing(tmp_path: Path, way: str) -> None:
    async with recorded_run(tmp_path / "store.db", way) as (recorded, bench):
        called = list(bench.calls)
        text = export(recorded)
    [result] = run_text(text)
    assert result.ok, result
    assert bench.calls == called
    assert "Not expected" not in text
    for part in (
        '"judge[1]": [{"error": {"kind": "TASK_FAILED"',
        '"by": "Ada"',
        '"cost": 0.5',
        "[redacted]",
        '"status',
    ):
        assert part in text or part == '"status', part
    assert '  status: "completed"' in text


@on_loop
async def test_a_replay_against_the_same_definition_finds_no_difference(tmp_path: Path) -> None:
    async with recorded_run(tmp_path / "store.db") as (recorded, _bench):
        assert replay(recorded, [load_value(FLOW).require()]).same


@on_loop
async def test_a_replay_shows_the_first_difference_side_by_side(tmp_path: Path) -> None:
    async with recorded_run(tmp_path / "store.db") as (recorded, _bench):
        stricter = {**FLOW, "budget": {"cost": 0.4, "on_exceeded": "fail"}}
        result = replay(recorded, [load_value(stricter).require()])
        assert (result.same, result.line) == (False, 2)
        assert result.recorded == "judge[0] on root.ask.0 completed"
        assert result.replayed is not None and "LIMIT_EXCEEDED" in result.replayed


@on_loop
async def test_an_outcome_that_was_not_recorded_is_reported_and_nothing_is_called(tmp_path: Path) -> None:
    async with recorded_run(tmp_path / "store.db") as (recorded, bench):
        called = list(bench.calls)
        longer: dict[str, Any] = {
            **FLOW,
            "nodes": {**FLOW["nodes"], "more": {"action": {"kind": "python", "function": "ask"}}},
            "transitions": [{"from": "ask", "to": "more"}, *FLOW["transitions"]],
        }
        result = replay(recorded, [load_value(longer).require()])
        assert not result.same
        assert result.missing == ("outcome of attempt 1 of more",)
        assert bench.calls == called
