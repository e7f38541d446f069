"""An expression over more data than an operator allows fails its token; it is never taken for false."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.executing import on_loop
from treadle import Engine, EngineSettings, load_value
from treadle.model import events as e
from treadle.model.errors import Error

LARGE = {"text": "x" * 2_000}
SETTINGS = EngineSettings(cel_bytes_max=1_000)


async def ended(document: dict[str, Any]) -> tuple[Error | None, list[e.Event]]:
    async with Engine(":memory:", settings=SETTINGS) as engine:
        run = await engine.start(load_value({"workflow": "w", **document}).require(), LARGE)
        end = await run.wait(10)
        return end.error, await run.history()


def wide(**join: Any) -> dict[str, Any]:
    return {
        "nodes": {"a": {}, "b": {"action": {"kind": "mock"}}, "c": {}},
        "transitions": [
            {"id": "t", "from": "a", "to": "b", "spawn_count": 2},
            {"from": "b", "to": "c", "synchronization": {"sibling_group": "t", **join}},
        ],
    }


SIZE = "size(input.text)"
PLACES: dict[str, dict[str, Any]] = {
    "condition": {
        "nodes": {"a": {}, "b": {}, "c": {}},
        "transitions": [{"from": "a", "to": "b", "condition": f"{SIZE} > 3"}, {"from": "a", "to": "c", "priority": 2}],
    },
    "input mapping": {"nodes": {"a": {"action": {"kind": "mock"}, "input": {"n": {"cel": SIZE}}}}},
    "output mapping": {"nodes": {"a": {"action": {"kind": "mock"}, "output": {"state.n": {"cel": SIZE}}}}},
    "spawn count": {
        "nodes": {"a": {}, "b": {}},
        "transitions": [{"from": "a", "to": "b", "spawn_count": {"cel": SIZE}}],
    },
    "config": {"nodes": {"a": {"action": {"kind": "wait", "ms": {"cel": SIZE}}}}},
    "when of a step": {
        "nodes": {
            "a": {
                "input": {"text": "$.input.text"},
                "steps": [{"ref": "s", "when": f"{SIZE} > 3", "action": {"kind": "mock"}}],
            }
        }
    },
    "assertion": {
        "nodes": {"a": {"input": {"text": "$.input.text"}, "action": {"kind": "assert", "condition": f"{SIZE} > 3"}}}
    },
    "step": {
        "nodes": {
            "a": {
                "input": {"text": "$.input.text"},
                "steps": [{"ref": "s", "input": {"n": {"cel": SIZE}}, "action": {"kind": "mock"}}],
            }
        }
    },
    "trigger": {
        "nodes": {"a": {}, "b": {}},
        "transitions": [{"from": "a", "to": "b", "trigger": {"when": f"{SIZE} > 3"}}],
    },
    "strategy": wide(strategy={"cel": f"arrived > 0 && {SIZE} > 3"}),
}


@pytest.mark.parametrize("place", PLACES)
@on_loop
async def test_it_fails_wherever_it_stands(place: str) -> None:
    error, history = await ended(PLACES[place])
    assert error is not None
    assert error.kind == "LIMIT_EXCEEDED"
    assert SIZE in error.message
    assert "bytes of data; at most 1000 are allowed (setting engine.cel_bytes_max)" in error.message
    assert not [event for event in history if isinstance(event, e.ConditionUnevaluable)]


@on_loop
async def test_the_runs_output_is_null_with_a_warning() -> None:
    error, history = await ended({"nodes": {"a": {}}, "output": {"n": {"cel": SIZE}, "m": 1}})
    assert error is None
    completed = history[-1]
    assert isinstance(completed, e.RunCompleted)
    assert completed.output == {"n": None, "m": 1}
    (warning,) = [event for event in history if isinstance(event, e.ConditionUnevaluable)]
    assert warning.part == "output"
    assert warning.reason.startswith("output.n of the run: it reads ")


@on_loop
async def test_the_failure_edge_of_a_failed_node_may_be_too_large_as_well() -> None:
    nodes = {"a": {"action": {"kind": "mock", "error": {"message": "boom"}}}, "b": {}}
    edge = {"from": "a", "to": "b", "on": "failure", "condition": f"{SIZE} > 3"}
    error, _ = await ended({"nodes": nodes, "transitions": [edge]})
    assert error is not None
    assert error.kind == "LIMIT_EXCEEDED"
