"""Whoever asks or waits gets an answer: at the end of a run, when the engine stops, when something is broken."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.cores import FaultyStore, chain, one, running
from tests.runtime.executing import on_loop, turns
from treadle.errors import CommandRefused, EngineStopped, StoreUnavailable
from treadle.model import commands as c
from treadle.model.events import Event
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.coordinate import loading
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.engine import Engine, EngineSettings
from treadle.store.port import Batch, Fence, OutboxRow, RunQuery, RunRow, StoredDocument
from treadle.store.rows import SHARD


async def works() -> dict[str, Any]:
    return {}


async def hangs() -> None:
    await asyncio.Event().wait()


ASKS = one("asks", {"kind": "human"})
UNPACKABLE = [2**70, "\ud800"]


# Waiting for an end


@on_loop
async def test_an_ended_run_that_is_in_memory_is_not_waited_for() -> None:
    """A command about it makes it hot once more; its end was news long ago."""

    class Slow(FaultyStore):
        async def commit(self, batch: Batch, *fences: Fence) -> list[OutboxRow]:
            await turns(50)
            return await super().commit(batch, *fences)

    async with running(Slow(), {"a": works}) as here:
        run = await here.client.start(chain("a"))
        await run.wait(5)
        other = asyncio.create_task(here.client.start(chain("a")))
        await turns(20)  # a commit is under way: what is decided now waits for it
        cancelling = asyncio.create_task(run.cancel())
        while here.core.coordinator._hots.get(run.id) is None:
            await turns(1)
        assert (await run.wait(5)).status is RunStatus.COMPLETED
        await asyncio.wait([cancelling, other])


@on_loop
async def test_a_listener_that_raises_keeps_nobody_from_hearing_the_news() -> None:
    async with running(FaultyStore(), {"a": works}) as here:

        def raises(*_news: Any) -> None:
            raise RuntimeError("of a listener")

        here.core.coordinator.feed.listen(raises)
        heard: list[RunStatus] = []
        here.core.coordinator.feed.listen(lambda newest: heard.extend(one.status for one in newest.values()))
        run = await here.client.start(chain("a"))
        assert (await run.wait(5)).status is RunStatus.COMPLETED
        await here.core.coordinator.wait_quiet()
        assert heard[-1] is RunStatus.COMPLETED


# Whoever asks gets an answer


@on_loop
async def test_whoever_asks_is_told_when_the_lease_is_lost_while_the_store_is_away() -> None:
    class Taken(FaultyStore):
        takes = False

        async def commit(self, batch: Batch, fence: Fence) -> list[OutboxRow]:  # type: ignore[override]
            if self.takes:
                self.takes = False
                await self.lease(SHARD, "other", 0, 1 << 50, evict=True)
                raise StoreUnavailable("connection lost")
            return await super().commit(batch, fence)

    store = Taken()
    async with running(store, {"a": hangs}) as here:  # type: ignore[arg-type]
        run = await here.client.start(chain("a"))
        await here.core.coordinator.wait_quiet()
        store.takes = True
        with pytest.raises(EngineStopped):
            await run.cancel()


@on_loop
async def test_whoever_starts_by_key_is_told_when_the_engine_stops_meanwhile() -> None:
    looking = asyncio.Event()

    class Slow(FaultyStore):
        async def find_runs(self, query: RunQuery) -> list[RunRow]:
            if query.idempotency_key is not None:
                looking.set()
                await asyncio.Event().wait()
            return await super().find_runs(query)

    async with running(Slow(), {"a": works}) as here:
        await here.client.deploy(chain("a"))
        starting = asyncio.create_task(here.client.start("chain", key="k"))
        await looking.wait()
        here.core.coordinator.stop(EngineStopped("for a test"))
        with pytest.raises(EngineStopped):
            await starting


@on_loop
async def test_a_run_that_cannot_be_read_is_refused_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: Any) -> Any:
        raise RuntimeError("a damaged history")

    monkeypatch.setattr(loading, "UNREADABLE_S", 0.0)  # it is mended below, and asked for at once
    async with running(FaultyStore(), {"a": works}) as here:
        run = await here.client.start(ASKS)
        await here.core.coordinator.wait_quiet()
        here.core.coordinator._hots.clear()
        with monkeypatch.context() as broken:
            broken.setattr(loading, "fold", breaks)
            for _ in range(2):
                with pytest.raises(CommandRefused, match="a damaged history"):
                    await run.cancel()
            assert (await (await here.client.start(chain("a"))).wait(5)).status is RunStatus.COMPLETED
        await run.cancel()
        assert (await run.wait(5)).status is RunStatus.CANCELLED


@on_loop
async def test_a_version_that_cannot_be_read_at_once_strands_nobody() -> None:
    class Away(FaultyStore):
        away = 0

        async def documents(
            self, kind: str, name: str | None = None, version: int | None = None
        ) -> list[StoredDocument]:
            if version is not None and self.away:
                self.away -= 1
                raise StoreUnavailable("busy")
            return await super().documents(kind, name, version)

    store = Away()
    async with running(store, {"a": works, "b": works}) as here:
        await here.client.deploy(chain("a"))
        await here.client.deploy(chain("a", "b"))
    store.away = 2
    async with running(store, {"a": works, "b": works}, owner="next") as here:
        run = await here.client.start("chain", version=1)
        assert (await run.wait(5)).status is RunStatus.COMPLETED
        assert (await run.info()).version == 1


@on_loop
async def test_a_child_whose_version_has_to_be_read_is_not_overtaken_by_its_cancellation() -> None:
    store = FaultyStore()
    async with running(store, {"a": hangs, "b": hangs}) as here:
        await here.client.deploy(chain("a"))
        await here.client.deploy(chain("a", "b"))
    async with running(store, {"a": hangs, "b": hangs}, owner="next") as here:
        coordinator = here.core.coordinator
        coordinator.put(_started("child", version=1))
        coordinator.tell(RunId("child"), c.CancelRun(by="parent"))
        await coordinator.wait_quiet()
        assert await here.client.run("child").status() is RunStatus.CANCELLED


def _started(run: str, version: int) -> Any:
    return Item(RunId(run), c.StartRun(RunId(run), version=version), "chain")


# Values nobody can pack


@pytest.mark.parametrize("value", UNPACKABLE)
@on_loop
async def test_a_value_that_cannot_be_written_harms_only_who_sent_it(value: Any) -> None:
    store = FaultyStore()
    async with running(store, {"a": works}) as here:
        await here.client.deploy(chain("a"))
        asking = await here.client.start(ASKS)
        bad = [here.client.start("chain", {"x": value}), asking.complete_gate(TokenId(1), {"x": value})]
        good = [here.client.start("chain") for _ in range(20)]
        refused = await asyncio.gather(*bad, return_exceptions=True)
        assert [type(problem) for problem in refused] == [CommandRefused, CommandRefused]
        assert [str(problem).split(" is ")[0] for problem in refused] == ["BAD_REQUEST: input.x", "BAD_REQUEST: data.x"]
        for run in await asyncio.gather(*good):
            assert (await run.wait(5)).status is RunStatus.COMPLETED
        await asking.complete_gate(TokenId(1), {"x": 1})
        assert (await asking.wait(5)).status is RunStatus.COMPLETED
        assert len(await here.client.runs()) == 21


@on_loop
async def test_a_result_that_leads_to_something_unwritable_fails_its_attempt() -> None:
    """The kernel computes the number, so nobody could check it before."""
    store = FaultyStore()
    async with running(store, {"a": works}) as here:
        run = await here.client.start(chain("a", output={"y": {"cel": "input.x * input.x"}}), {"x": 2**40})
        ended = await run.wait(5)
    assert ended.status in (RunStatus.FAILED, RunStatus.COMPLETED), "and does not hang"


@on_loop
async def test_whoever_waits_for_a_run_is_told_when_the_engine_closes(tmp_path: Path) -> None:
    async with Engine(tmp_path / "t.db", functions={"a": hangs}, settings=EngineSettings(grace_ms=0)) as engine:
        run = await engine.start(chain("a"))

        async def follows() -> None:
            async for _event in run.events():
                pass

        waiting = [asyncio.create_task(run.wait()), asyncio.create_task(follows())]
        await turns(20)
    with pytest.raises(EngineStopped):
        await waiting[0]
    with pytest.raises((EngineStopped, StoreUnavailable)):
        await waiting[1]


@on_loop
async def test_whoever_waits_is_told_of_an_end_that_came_with_the_closing() -> None:
    leave = asyncio.Event()

    async def ends() -> dict[str, Any]:
        await leave.wait()
        return {}

    async with running(FaultyStore(), {"a": ends}) as here:
        run = await here.client.start(chain("a"))
        waiting = asyncio.create_task(run.wait())
        await turns(20)
        leave.set()
        while here.core.executor.executing:
            await turns(1)
    assert (await waiting).status is RunStatus.COMPLETED


@on_loop
async def test_an_engine_whose_store_is_broken_for_good_stops_and_tells_everybody() -> None:
    class Broken(FaultyStore):
        broken = False

        async def commit(self, batch: Batch, fence: Fence) -> list[OutboxRow]:  # type: ignore[override]
            if self.broken:
                raise StoreUnavailable("a sync failed: restart", outcome_unknown=True, final=True)
            return await super().commit(batch, fence)

    store = Broken()
    async with running(store, {"a": hangs}) as here:  # type: ignore[arg-type]
        run = await here.client.start(chain("a"))
        store.broken = True
        with pytest.raises(EngineStopped, match="a sync failed"):
            await run.cancel()
        with pytest.raises(EngineStopped):
            await run.wait()


@on_loop
async def test_a_run_whose_content_is_gone_for_good_is_refused() -> None:
    class Damaged(FaultyStore):
        damaged: RunId | None = None

        async def history(self, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
            if run == self.damaged:
                raise StoreUnavailable("content is missing: restore a backup", final=True)
            return await super().history(run, after, limit)

    store = Damaged()
    async with running(store, {}) as here:
        run = await here.client.start(ASKS)
        await here.core.coordinator.wait_quiet()
        here.core.coordinator._hots.clear()
        store.damaged = run.id
        with pytest.raises(CommandRefused, match="restore a backup"):
            await run.cancel()
