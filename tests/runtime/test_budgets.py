"""Budgets from the outside: what Python code spends, and raising a budget by itself, through a store and over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.executing import on_loop
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine, load_value
from treadle.kinds import spend


def think(cost: float) -> dict[str, float]:
    spend(cost=cost / 2)
    spend(cost=cost / 2, tokens=7)
    return {"cost": 1_000}


async def think_aloud(cost: float) -> None:
    spend(cost=cost, tokens=3)


def crunch(cost: float) -> None:
    spend(cost=cost)
    raise RuntimeError("too hard")


def spender(on_exceeded: str = "gate") -> dict[str, object]:
    step = {"kind": "python"}
    cost = {"cost": "$.input.cost"}
    return {
        "workflow": "spender",
        "budget": {"cost": 3, "tokens": 100, "on_exceeded": on_exceeded},
        "nodes": {
            "a": {"action": {**step, "function": "think"}, "input_mapping": cost},
            "b": {"action": {**step, "function": "think_aloud"}, "input_mapping": cost},
        },
        "transitions": [{"from": "a", "to": "b"}],
    }


FUNCTIONS = {"think": think, "think_aloud": think_aloud, "crunch": crunch}


@pytest.mark.parametrize("way", ["itself", "store", "server"])
@on_loop
async def test_a_budget_is_reached_shown_and_raised(tmp_path: Path, way: str) -> None:
    place = tmp_path / "store.db"
    async with Engine(place, functions=FUNCTIONS) as engine:
        await engine.deploy(load_value(spender()))
        async with reached(engine, way, place) as client:
            run = await client.start("spender", {"cost": 3})
            async for event in run.events():
                if event.type == "run.paused":
                    break
            detail = await run.detail()
            assert detail.budget is not None
            assert (detail.budget.exceeded, detail.budget.on_exceeded) == ("cost", "gate")
            assert detail.budget.limits == {"cost": 3, "tokens": 100}
            assert {part: detail.budget.spent[part] for part in ("cost", "tokens", "visits")} == {
                "cost": 3,
                "tokens": 7,
                "visits": 1,
            }
            assert detail.waiting[0].ends_by[0].commands == ["budget", "abort"]
            [gate] = await client.gates()
            assert gate.can == ("budget", "abort")
            with pytest.raises(CommandRefused, match="no limit on visits"):
                await run.raise_budget(visits=1)
            await run.raise_budget(cost=0.5, id="once")
            await run.raise_budget(cost=0.5, id="once")
            await run.wait()
            assert await client.gates() == []
            detail = await run.detail()
            assert detail.budget is not None and detail.budget.limits["cost"] == 3.5
            assert (detail.status, detail.budget.spent["cost"], detail.budget.spent["tokens"]) == ("completed", 6, 10)


@on_loop
async def test_a_function_that_raises_has_spent_all_the_same() -> None:
    failing = spender("pause")
    failing["nodes"] = {"a": {"action": {"kind": "python", "function": "crunch"}, "input_mapping": {"cost": 2}}}
    failing["transitions"] = []
    async with Engine(functions=FUNCTIONS) as engine:
        await engine.deploy(load_value(failing))
        run = await engine.start("spender", {"cost": 2})
        await run.wait()
        detail = await run.detail()
        assert detail.budget is not None
        assert (detail.status, detail.budget.spent["cost"]) == ("failed", 2)


def test_spending_needs_an_attempt_and_an_amount() -> None:
    with pytest.raises(LookupError, match="no attempt is running here"):
        spend(cost=1)
    with pytest.raises(ValueError, match="at least 0"):
        spend(cost=-1)
