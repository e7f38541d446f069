"""Commands from one run to another come in the order in which they were sent, whatever the start of a child has to wait
for: an outbox that is still being read, or a batch that it is about to join."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.runtime.cores import FaultyStore, Running, one, running
from tests.runtime.executing import on_loop, turns
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED
from treadle.runtime.deliver.held_letters import HeldLetters
from treadle.store.port import OutboxRow, RunQuery

ASK = {"kind": "human"}
CALL = {"kind": "workflow_call", "workflow": "child"}
BATCH = {"size": 2, "within_ms": 60_000}


class SlowStore(FaultyStore):
    """The histories of some runs are read only when the test lets them be."""

    def __init__(self) -> None:
        super().__init__()
        self.slow: dict[RunId, asyncio.Event] = {}

    async def history(self, run: RunId, *given: Any, **more: Any) -> list[Event]:
        if run in self.slow:
            await self.slow[run].wait()
        return await super().history(run, *given, **more)


async def live(here: Running) -> list[str]:
    return [row.run for row in await here.core.coordinator.store.find_runs(RunQuery()) if row.status not in RUN_ENDED]


async def started(here: Running, workflow: str) -> None:
    """A run with the name of its workflow."""
    answer = await here.core.coordinator.ask(RunId(workflow), c.StartRun(RunId(workflow)), workflow, fresh=True)
    assert answer.rejection is None


async def cancelled(here: Running, run: str) -> None:
    answer = await here.core.coordinator.ask(RunId(run), c.CancelRun())
    assert answer.rejection is None


@pytest.mark.parametrize("child", [one("child", ASK), one("child", ASK, batch=BATCH)])
@on_loop
async def test_a_cancellation_waits_for_a_start_that_was_left_in_the_outbox(child: Any) -> None:
    """A shard is gained, and a parent of it is cancelled before the outbox has been read. The start of its child is in
    there: it comes first, else the cancellation finds no run, and the child is left behind."""
    async with running(FaultyStore(), {}) as here:
        core = here.core
        for workflow in (child, one("parent", CALL)):
            await core.library.deploy(workflow)
        core.delivery.hand(f.StartChild, lambda _row, _effect: None)  # the last owner does not get to it
        await started(here, "parent")
        await core.wait_quiet()
        core.delivery.hand(f.StartChild, core.delivery._start_child)
        fences = tuple(core.shards.fences.values())
        core.accept(fences)
        await cancelled(here, "parent")
        await turns(50)
        await core.recover_shards(fences)
        await core.wait_quiet()
        assert await live(here) == []
        assert not core.delivery.held


@on_loop
async def test_a_cancellation_waits_behind_a_start_on_its_way_into_a_batch() -> None:
    """The batch has to be read, and is cancelled before the start gets there. So the start is decided anew, and its
    parent has been cancelled meanwhile."""
    store = SlowStore()
    async with running(store, {}) as here:
        core, batch = here.core, RunId("child")
        for workflow in (one("child", ASK, batch=BATCH), one("parent", CALL)):
            await core.library.deploy(workflow)
        await started(here, "child")
        await core.wait_quiet()
        core.coordinator._hots.drop(batch)  # as if there were too many in memory
        store.slow[batch] = asyncio.Event()
        cancelling = asyncio.ensure_future(cancelled(here, "child"))
        await turns()
        await started(here, "parent")
        await turns(50)
        await cancelled(here, "parent")
        await turns(50)
        store.slow.pop(batch).set()
        await cancelling
        await core.wait_quiet()
        assert await live(here) == []


@on_loop
async def test_a_start_on_its_way_into_a_batch_is_answered_when_the_engine_stops() -> None:
    """So is what waits behind it."""
    store = SlowStore()
    async with running(store, {}) as here:
        core, batch = here.core, RunId("child")
        await core.library.deploy(one("child", ASK, batch=BATCH))
        await started(here, "child")
        await core.wait_quiet()
        core.coordinator._hots.drop(batch)
        store.slow[batch] = asyncio.Event()
        asked = core.coordinator.ask
        start = asyncio.ensure_future(asked(RunId("second"), c.StartRun(RunId("second")), "child", fresh=True))
        await turns(50)
        behind = asyncio.ensure_future(asked(RunId("second"), c.CancelRun()))
        await turns(50)
        assert not start.done() and not behind.done()
        core.coordinator.stop(RuntimeError("the disk is gone"))
        answers = await asyncio.gather(start, behind, return_exceptions=True)
        assert [type(answer).__name__ for answer in answers] == ["EngineStopped", "EngineStopped"]


def letter(id: int, run: str = "a") -> OutboxRow:
    return OutboxRow(id, RunId(run), f.CancelChild(RunId("child")))


def test_letters_of_a_gained_shard_wait_until_its_outbox_has_been_read() -> None:
    held = HeldLetters(lambda run: 1 if run == "a" else 2)
    assert not held
    held.hold([1])
    assert held.keeps(letter(5)) and held.keeps(letter(6))
    assert not held.keeps(letter(7, "b")), "its shard has been here all the time"
    assert not held.keeps(OutboxRow(8, RunId("a"), f.RunTask(1, 1, "n", {}))), "it is for nobody else"  # type: ignore[arg-type]
    held.found(letter(5))
    assert held.let_on(held.of([1, 2])) == [letter(6)]
    assert not held and held.let_on({1: 1}) == []


def test_a_shard_that_was_gained_again_waits_for_a_reading_of_its_own() -> None:
    held = HeldLetters(lambda _run: 1)
    held.hold([1])
    first = held.of([1])
    assert held.keeps(letter(5))
    held.hold([1])  # it was lost in between: another node may have delivered the letter
    assert held.keeps(letter(6))
    assert held.let_on(first) == []
    assert held.let_on(held.of([1])) == [letter(6)]
