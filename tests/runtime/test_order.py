"""The order in which a coordinator takes things, and starts by a key, when the store stumbles."""

from __future__ import annotations

import asyncio

import pytest

from tests.runtime.cores import FaultyStore, chain, running
from tests.runtime.executing import on_loop
from treadle.model.commands import StartRun
from treadle.model.ids import RunId
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.coordinate.incoming import Incoming
from treadle.store.port import RunQuery


@pytest.mark.parametrize("fault", ["lost", "unseen"])
@on_loop
async def test_a_start_by_key_is_answered_when_its_commit_had_to_be_repeated(fault: str) -> None:
    store = FaultyStore()
    async with running(store, {"a": dict}) as here:
        await here.core.library.deploy(chain("a"))
        store.faults = [fault]
        starts = [StartRun(RunId(f"r{number}"), idempotency_key="k") for number in (1, 2)]
        answers = await asyncio.wait_for(
            asyncio.gather(*(here.core.coordinator.ask(start.run, start, "chain") for start in starts)), 10
        )
    assert [answer.result for answer in answers] == ["r1", "r1"]
    assert len(await store.find_runs(RunQuery(workflow="chain"))) == 1


def test_what_waited_for_its_run_is_taken_in_the_order_in_which_it_became_ready() -> None:
    incoming = Incoming()
    first, second, third, fourth = (Item(RunId(name), StartRun(RunId(name))) for name in "abcd")
    incoming.put(fourth)
    incoming.give_back([second])
    incoming.give_back([third])
    incoming.put_first([first])
    assert list(incoming) == [first, second, third, fourth]
    assert [incoming.take() for _ in range(4)] == [first, second, third, fourth]
    assert not incoming


def test_what_waited_for_its_run_comes_before_later_commands_that_are_to_be_decided_again() -> None:
    """A turn ended while such commands were being taken: the first of them went to wait, and was ready before the next
    turn. Found as work that ended before it had begun, and was then waited for, or done twice."""
    incoming = Incoming()
    first, second, third = (Item(RunId("a"), StartRun(RunId("a"))) for _ in range(3))
    other, later = Item(RunId("b"), StartRun(RunId("b"))), Item(RunId("c"), StartRun(RunId("c")))
    incoming.put_first([first, second, third, other])
    waiting = [incoming.take(), incoming.take()]
    incoming.give_back([later])
    incoming.give_back(waiting)  # type: ignore[arg-type]
    order = [incoming.take() for _ in range(5)]
    assert [item is expected for item, expected in zip(order, [first, second, third, other, later], strict=True)] == (
        [True] * 5
    )
