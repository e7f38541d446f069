"""A run whose compensation failed is no dead end: what was undone is listed, what failed is retried or skipped."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from tests.runtime.executing import on_loop
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine, load_value, task
from treadle.model.states import RunStatus


class Shop:
    """Books two things, breaks, and cannot undo what is `stuck`."""

    def __init__(self, *stuck: str) -> None:
        self.stuck = set(stuck)
        self.undone: list[str] = []

    def functions(self) -> dict[str, Any]:
        @task
        def book(what: str) -> dict[str, str]:
            return {"ticket": what}

        @task
        def undo(what: str) -> dict[str, str]:
            if what in self.stuck:
                raise RuntimeError(f"{what} does not answer")
            self.undone.append(what)
            return {}

        @task
        def fail() -> None:
            raise ValueError("no money")

        return {"book": book, "undo": undo, "break": fail}


def journey(**fields: Any) -> Any:
    def booking(what: str) -> dict[str, Any]:
        undo = {"action": {"kind": "python", "function": "undo"}, "input_mapping": {"what": "$.output.ticket"}}
        return {"action": {"kind": "python", "function": "book"}, "input": {"what": what}, "compensate": undo}

    nodes = {"flight": booking("flight"), "hotel": booking("hotel")}
    nodes["pay"] = {"action": {"kind": "python", "function": "break"}}
    edges = [{"from": "flight", "to": "hotel"}, {"from": "hotel", "to": "pay"}]
    return load_value({"workflow": "journey", "nodes": nodes, "transitions": edges, **fields}).require()


@pytest.mark.parametrize("way", ["itself", "server"])
@on_loop
async def test_what_could_not_be_undone_is_tried_again(way: str) -> None:
    shop = Shop("hotel")
    async with Engine(":memory:", functions=shop.functions()) as owner, reached(owner, way) as engine:
        run = await engine.start(journey())
        assert (await run.wait(10)).status is RunStatus.COMPENSATION_FAILED
        flight, hotel = await run.compensations()
        assert (flight.node, flight.status, flight.output) == ("flight", "recorded", {"ticket": "flight"})
        assert (hotel.node, hotel.status, hotel.attempts) == ("hotel", "failed", 1)
        assert hotel.error is not None
        assert "hotel does not answer" in hotel.error.message
        shop.stuck.clear()
        assert await run.retry_compensation(by="Ada") == hotel.record
        assert (await run.wait(10)).status is RunStatus.COMPENSATED
        assert shop.undone == ["hotel", "flight"]
        assert [(one.status, one.error) for one in await run.compensations()] == [("completed", None)] * 2


@pytest.mark.parametrize("way", ["itself", "server"])
@on_loop
async def test_what_cannot_be_undone_is_left_and_the_rest_is_undone(way: str) -> None:
    shop = Shop("hotel")
    async with Engine(":memory:", functions=shop.functions()) as owner, reached(owner, way) as engine:
        run = await engine.start(journey())
        await run.wait(10)
        assert await run.skip_compensation(by="Ada") == 2
        assert (await run.wait(10)).status is RunStatus.COMPENSATED
        assert shop.undone == ["flight"]
        assert [(one.status, one.by) for one in await run.compensations()] == [("completed", None), ("skipped", "Ada")]


@pytest.mark.parametrize("way", ["itself", "server"])
@on_loop
async def test_which_of_several_must_be_said(way: str) -> None:
    shop = Shop("hotel", "flight")
    async with Engine(":memory:", functions=shop.functions()) as owner, reached(owner, way) as engine:
        run = await engine.start(journey(on_compensation_failure="continue"))
        assert (await run.wait(10)).status is RunStatus.COMPENSATION_FAILED
        with pytest.raises(CommandRefused, match=re.escape("name one of 1 (flight), 2 (hotel)")):
            await run.skip_compensation()
        with pytest.raises(CommandRefused, match="has no compensation 3"):
            await run.retry_compensation(3)
        await run.skip_compensation(2)
        assert (await run.wait(10)).status is RunStatus.COMPENSATION_FAILED
        shop.stuck.clear()
        assert await run.retry_compensation() == 1
        assert (await run.wait(10)).status is RunStatus.COMPENSATED
        with pytest.raises(CommandRefused, match=r"no compensation of run .* has failed"):
            await run.retry_compensation()


@pytest.mark.parametrize("way", ["itself", "server"])
@on_loop
async def test_a_retry_of_the_run_is_refused_with_what_can_be_done_instead(way: str) -> None:
    async with Engine(":memory:", functions=Shop("hotel").functions()) as owner, reached(owner, way) as engine:
        run = await engine.start(journey())
        await run.wait(10)
        with pytest.raises(CommandRefused, match=f"treadle runs compensations {run.id}` .* --retry or --skip"):
            await run.retry()


@pytest.mark.parametrize("way", ["itself", "server"])
@on_loop
async def test_the_reason_of_a_failure_is_told_however_much_was_undone_after_it(way: str) -> None:
    shop = Shop()
    stops = [f"stop{number}" for number in range(40)]
    undo = {"action": {"kind": "python", "function": "undo"}, "input_mapping": {"what": "$.output.ticket"}}
    nodes: dict[str, Any] = {
        stop: {"action": {"kind": "python", "function": "book"}, "input": {"what": stop}, "compensate": undo}
        for stop in stops
    }
    nodes["pay"] = {"action": {"kind": "python", "function": "break"}}
    edges = [{"from": a, "to": b} for a, b in pairwise([*stops, "pay"])]
    tour = load_value({"workflow": "tour", "nodes": nodes, "transitions": edges}).require()
    async with Engine(":memory:", functions=shop.functions()) as owner, reached(owner, way) as engine:
        ended = await (await engine.start(tour)).wait(20)
        assert ended.status is RunStatus.COMPENSATED
        assert shop.undone == stops[::-1]
        assert ended.error is not None
        assert "no money" in ended.error.message
        assert "ValueError: no money" in (ended.traceback or "")
