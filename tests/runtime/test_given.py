"""What comes in from outside: no number that JSON cannot express, no name that hides something, the place is named."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.runtime.executing import on_loop
from treadle import CommandRefused, DefinitionError, Engine, Schedule, load_value
from treadle.kinds import Call, Done, Registry

PLAIN = load_value({"workflow": "plain", "nodes": {"a": {}}})
ASKS = load_value({"workflow": "asks", "nodes": {"a": {"action": {"kind": "human"}}}})
WAITS = load_value({"workflow": "waits", "nodes": {"a": {"action": {"kind": "signal", "name": "go"}}}})
CALLS = load_value({"workflow": "calls", "nodes": {"a": {"action": {"kind": "python", "function": "odd"}}}})
BAD = [math.nan, math.inf, -math.inf, object(), 2**70, "\ud800"]


@pytest.mark.parametrize("value", BAD, ids=["nan", "inf", "-inf", "object", "huge", "surrogate"])
@on_loop
async def test_input_that_is_no_json_is_refused_with_its_place_and_starts_nothing(value: Any) -> None:
    async with Engine(":memory:") as engine:
        with pytest.raises(CommandRefused, match=r"input\.rows\[1\]\.n ") as refused:
            await engine.start(PLAIN, {"rows": [1, {"n": value}]})
        assert refused.value.kind == "BAD_REQUEST"
        with pytest.raises(CommandRefused, match=r"trigger\.n "):
            await engine.start(PLAIN, trigger={"n": value})
        assert await engine.runs() == []


@on_loop
async def test_signals_answers_and_callbacks_too() -> None:
    bad = {"n": math.nan}
    async with Engine(":memory:") as engine:
        waits, asks = await engine.start(WAITS), await engine.start(ASKS)
        [gate] = await engine.gates()
        with pytest.raises(CommandRefused, match=r"data\.n is nan"):
            await waits.signal("go", bad)
        with pytest.raises(CommandRefused, match=r"key is nan"):
            await waits.signal("go", key=math.nan)
        with pytest.raises(CommandRefused, match=r"data\.n is nan"):
            await asks.complete_gate(gate.visit, bad)
        with pytest.raises(CommandRefused, match=r"output\.n is nan"):
            await waits.callback(1, 1, bad)
        with pytest.raises(DefinitionError, match=r"\$\.n is nan"):
            await engine.put_schedule(Schedule(name="s", workflow="waits", every_ms=60_000, input=bad))
        await waits.signal("go", {"n": 1})
        assert (await waits.wait(10)).status.value == "completed"


class Odd:
    name = "odd"

    def run(self, call: Call) -> Done:
        return Done({"n": math.inf})


@on_loop
async def test_a_task_that_gives_such_a_number_fails_and_names_the_place() -> None:
    registry = Registry()
    registry.register(Odd())
    kinds = load_value({"workflow": "own", "nodes": {"a": {"action": {"kind": "odd"}}}}, kinds={"odd": None})
    async with Engine(":memory:", functions={"odd": lambda: {"n": [math.nan]}}, registry=registry) as engine:
        for workflow, says in ((CALLS, "$.n[0] is nan"), (kinds, "$.n is inf")):
            ended = await (await engine.start(workflow)).wait(10)
            assert ended.status.value == "failed"
            assert ended.error is not None
            assert says in ended.error.message


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"key": "k\u202e"}, "the key `k\\u202e` holds U+202E"),
        ({"tags": ["ok", "t\u200b"]}, "the tag `t\\u200b`"),
        ({"run_id": "r\u2066"}, "the run id `r\\u2066`"),
        ({"entity": "lead/a\u2066"}, "entity's id"),
        ({"tags": ["x" * 501]}, "has 501 characters; 500 are allowed"),
        ({"entity": f"lead/{'x' * 201}"}, "the entity's id has 201 characters; 200 are allowed"),
        ({"entity": {"type": "a/b", "id": "1"}}, "an entity's type has no slash"),
        ({"entity": {"type": "lead", "id": ""}}, "the id is empty"),
    ],
)
@on_loop
async def test_names_given_at_the_start_hide_nothing_and_have_a_length_every_store_keeps(
    given: dict[str, Any], says: str
) -> None:
    async with Engine(":memory:") as engine:
        with pytest.raises(CommandRefused) as refused:
            await engine.start(PLAIN, **given)
        assert says in str(refused.value)
        assert await engine.runs() == []
