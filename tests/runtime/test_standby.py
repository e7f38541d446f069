"""A client that stands by: what it asks for while a store changes hands is answered by its own engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Self

import pytest

from tests.runtime.cores import chain
from tests.runtime.executing import on_loop, turns
from tests.runtime.hall import nothing
from treadle import Engine
from treadle.errors import EngineStopped, StoreUnavailable
from treadle.model.states import RunStatus
from treadle.runtime.standby import StandBy
from treadle.store.places import place_of


class Hesitant(Engine):
    """Opens when it is told to, or fails to."""

    problem: Exception | None = None
    told: asyncio.Event

    async def __aenter__(self) -> Self:
        await self.told.wait()
        if self.problem is not None:
            raise self.problem
        return await super().__aenter__()


def hesitant(place: Path) -> Hesitant:
    made = Hesitant(place, functions={"a": nothing}, wait_for_ownership=True)
    made.told = asyncio.Event()
    return made


@on_loop
async def test_who_asks_between_two_owners_is_answered_by_the_second(tmp_path: Path) -> None:
    heir, told = hesitant(tmp_path / "t.db"), list[Exception | None]()
    async with Engine(tmp_path / "t.db", functions={"a": nothing}) as first:
        await first.deploy(chain("a"))
    async with StandBy(place_of(tmp_path / "t.db"), heir, told.append) as standby:
        asking = asyncio.ensure_future(standby.client.start("chain"))
        await turns(50)
        assert not asking.done(), "nobody is there to answer, but somebody will be"
        heir.told.set()
        assert (await (await asking).wait(60)).status is RunStatus.COMPLETED
        assert (standby.engine, told) == (heir, [None])
    assert not heir.is_open


@on_loop
async def test_an_engine_that_cannot_take_over_says_why_and_then_nobody_is_there(tmp_path: Path) -> None:
    heir, told = hesitant(tmp_path / "t.db"), list[Exception | None]()
    heir.problem = StoreUnavailable("the disk is full")
    async with Engine(tmp_path / "t.db", functions={"a": nothing}) as first:
        await first.deploy(chain("a"))
    async with StandBy(place_of(tmp_path / "t.db"), heir, told.append) as standby:
        assert await standby.client.is_owned()
        heir.told.set()
        with pytest.raises(EngineStopped):
            await standby.client.start("chain")
        assert (standby.engine, told) == (None, [heir.problem])
