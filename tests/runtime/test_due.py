"""What is due: each timer of an avalanche once, each time of a schedule once, whatever happens in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.runtime.cores import FaultyStore, chain, one, running
from tests.runtime.executing import VirtualClock, on_loop, turns
from treadle.errors import EngineStopped, StoreUnavailable
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.client import Client
from treadle.runtime.deliver import core as core_module
from treadle.runtime.deliver import timers as timers_module
from treadle.runtime.schedule.definition import Schedule
from treadle.runtime.scheduler import AGAIN_MS, Scheduler
from treadle.store.port import StoredDocument


async def works() -> dict[str, Any]:
    return {}


async def hangs() -> None:
    await asyncio.Event().wait()


# Avalanches


@on_loop
async def test_each_timer_of_an_avalanche_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers_module, "PAGE", 50)
    store, clock = FaultyStore(), VirtualClock()
    async with running(store, {}, clock) as here:
        await here.client.deploy(one("sleeps", {"kind": "wait", "ms": 1_000}))
        for _ in range(300):
            await here.client.start("sleeps")
    clock._now += 2_000
    fired: list[RunId] = []
    real = core_module.Core._due

    def counts(core: core_module.Core, run: RunId, timer: Any) -> None:
        fired.append(run)
        assert len(core.timers._reported) <= 25, "the rest waits in the store"
        real(core, run, timer)

    monkeypatch.setattr(core_module.Core, "_due", counts)
    async with running(store, {}, clock, owner="next") as here:
        while await here.client.runs(statuses=["running"], limit=1):
            await turns(20)
    assert len(fired) == len(set(fired)) == 300


@on_loop
async def test_a_timer_that_was_early_because_the_clock_was_set_back_fires_at_its_time() -> None:
    store, clock = FaultyStore(), VirtualClock()
    async with running(store, {}, clock) as here:
        run = await here.client.start(one("sleeps", {"kind": "wait", "ms": 1_000}))
        await here.core.coordinator.wait_quiet()
        clock._now += 1_000
        here.core.timers._ring()
        clock._now -= 900
        await turns(50)
        assert await run.status() is RunStatus.RUNNING
        await clock.advance(900)
        assert (await run.wait(5)).status is RunStatus.COMPLETED


# Schedules

TICK = {"name": "tick", "workflow": "chain", "every_ms": 10_000, "overlap": "allow", "catch_up": "all"}


async def later(client: Client, clock: VirtualClock, times: int) -> int:
    """So many periods later: how many runs there are."""
    for _ in range(times):
        await clock.advance(10_000)
        await turns(50)
    return len(await client.runs())


@pytest.mark.parametrize("first_paused", [True, False])
@on_loop
async def test_a_schedule_that_was_paused_goes_on_with_what_comes(first_paused: bool) -> None:
    store, clock = FaultyStore(), VirtualClock()
    async with running(store, {"a": works}, clock) as here:
        coordinator, client = here.core.coordinator, here.client
        scheduler = Scheduler(store, clock, client, coordinator.feed, coordinator.spawn)
        await client.deploy(chain("a"))
        for paused in (first_paused, True):
            await client.put_schedule(Schedule(**TICK, paused=paused))  # type: ignore[arg-type]
            await scheduler.refresh()
            before = await later(client, clock, 2)
        assert before == (0 if first_paused else 2)
        await client.put_schedule(Schedule(**TICK))  # type: ignore[arg-type]
        await scheduler.refresh()
        assert await later(client, clock, 3) == before + 3
        scheduler.close()


@on_loop
async def test_a_schedule_survives_a_store_that_was_away_when_it_was_due() -> None:
    class Away(FaultyStore):
        away = 0

        async def documents(
            self, kind: str, name: str | None = None, version: int | None = None
        ) -> list[StoredDocument]:
            if kind.startswith("_") and self.away:
                self.away -= 1
                raise StoreUnavailable("busy")
            return await super().documents(kind, name, version)

    store, clock = Away(), VirtualClock()
    async with running(store, {"a": works}, clock) as here:
        coordinator = here.core.coordinator
        scheduler = Scheduler(store, clock, here.client, coordinator.feed, coordinator.spawn)
        await here.client.deploy(chain("a"))
        await here.client.put_schedule(Schedule(**TICK))  # type: ignore[arg-type]
        await scheduler.refresh()
        store.away = 1
        await later(here.client, clock, 1)
        await coordinator.wait_quiet()
        assert await later(here.client, clock, 1) == 2
        scheduler.close()


@on_loop
async def test_a_schedule_due_while_no_engine_has_its_shard_starts_its_run_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between two leases a start stays in the inbox, and its caller hears EngineStopped."""
    store, clock = FaultyStore(), VirtualClock()
    async with running(store, {"a": works}, clock) as here:
        coordinator = here.core.coordinator
        start, unanswered = here.client.start, [1, 2]

        async def sometimes(*arguments: Any, **named: Any) -> Any:
            if unanswered:
                raise EngineStopped(f"no engine runs ({unanswered.pop()})")
            return await start(*arguments, **named)

        monkeypatch.setattr(here.client, "start", sometimes)
        scheduler = Scheduler(store, clock, here.client, coordinator.feed, coordinator.spawn)
        await here.client.deploy(chain("a"))
        await here.client.put_schedule(Schedule(**TICK))  # type: ignore[arg-type]
        await scheduler.refresh()
        assert await later(here.client, clock, 1) == 0
        for _ in range(3):
            await clock.advance(AGAIN_MS)
            await turns(50)
        assert len(await here.client.runs()) == 1, "the first time was due while no engine answered"
        assert await later(here.client, clock, 1) == 2
        scheduler.close()


@on_loop
async def test_a_schedule_that_was_due_elsewhere_takes_its_turn_when_its_shard_comes_back() -> None:
    """The shard went and came back before anybody read the schedules again."""
    store, clock, owned = FaultyStore(), VirtualClock(), [True]
    async with running(store, {"a": works}, clock) as here:
        coordinator = here.core.coordinator
        scheduler = Scheduler(store, clock, here.client, coordinator.feed, coordinator.spawn, lambda _name: owned[0])
        await here.client.deploy(chain("a"))
        await here.client.put_schedule(Schedule(**TICK))  # type: ignore[arg-type]
        await scheduler.refresh()
        owned[0] = False
        assert await later(here.client, clock, 1) == 0
        owned[0] = True
        await scheduler.refresh()
        assert await later(here.client, clock, 1) == 2
        scheduler.close()


@on_loop
async def test_a_run_started_just_before_a_crash_is_not_cancelled_for_its_own_time() -> None:
    """`cancel_previous`: the start was durable, that it happened was not remembered."""

    class Forgets(FaultyStore):
        forgets = False

        async def put_document(
            self, kind: str, name: str, hash: str, body: Any, expected: int | None = None
        ) -> StoredDocument:
            if self.forgets and kind.startswith("_"):
                raise RuntimeError("the crash")
            return await super().put_document(kind, name, hash, body, expected)

    store, clock = Forgets(), VirtualClock()
    tick = Schedule(name="tick", workflow="chain", every_ms=10_000, overlap="cancel_previous")
    async with running(store, {"a": hangs}, clock) as here:
        coordinator = here.core.coordinator
        scheduler = Scheduler(store, clock, here.client, coordinator.feed, coordinator.spawn)
        await here.client.deploy(chain("a"))
        await here.client.put_schedule(tick)
        await scheduler.refresh()
        store.forgets = True
        assert await later(here.client, clock, 1) == 1
        scheduler.close()
    store.forgets = False
    async with running(store, {"a": hangs}, clock, owner="next") as here:
        coordinator = here.core.coordinator
        scheduler = Scheduler(store, clock, here.client, coordinator.feed, coordinator.spawn)
        await scheduler.refresh()
        await turns(50)
        assert [row.status for row in await here.client.runs()] == [RunStatus.RUNNING]
        scheduler.close()
