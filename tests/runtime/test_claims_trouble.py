"""Queue work while the store does not answer: claims whose answer got lost, claims nobody could renew."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from tests.runtime.executing import VirtualClock, on_loop, turns
from tests.runtime.hall import HERE, nothing, of_kind, queued
from treadle.errors import StoreUnavailable
from treadle.model import events as e
from treadle.model.commands import FailAttempt
from treadle.model.states import RunStatus
from treadle.runtime.engine import Engine, EngineSettings
from treadle.runtime.queue.attempt_of_offer import attempt_of
from treadle.runtime.queue.offers import ClaimSweep
from treadle.store.memory_work import QueueMemoryStore
from treadle.store.work import Claimed, ExpiredClaim


class Forgetful(QueueMemoryStore):
    """Claims, and the answer gets lost on its way."""

    lost = 1

    async def claim(self, *given: Any, **named: Any) -> list[Claimed]:
        claimed = await super().claim(*given, **named)
        if claimed and self.lost:
            self.lost -= 1
            raise StoreUnavailable("connection lost", outcome_unknown=True)
        return claimed


@on_loop
async def test_when_the_answer_to_a_claim_got_lost_nobody_waits_for_it_to_run_out() -> None:
    store = Forgetful()
    async with Engine(store, functions={"work": nothing}, settings=EngineSettings(queues=HERE)) as engine:
        run = await engine.start(queued())
        claims = engine._queues.claimant  # type: ignore[union-attr]
        while store.lost:
            await turns()
        claims.wake()
        assert (await run.wait()).status is RunStatus.COMPLETED
        (started,) = await of_kind(run, e.TokenStarted)
        assert started.worker.endswith("#2")
        assert len(await of_kind(run, e.TokenDispatched)) == 1, "nothing was lost"


class Robbed(QueueMemoryStore):
    """Says of every claim that another worker has it."""

    async def renew(self, worker: str, claims: Any, lease_ms: int) -> Any:
        await super().renew(worker, claims, lease_ms)
        return list(claims)


@on_loop
async def test_work_whose_claim_was_lost_is_stopped() -> None:
    stopped = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with Engine(Robbed(), functions={"work": work}, settings=EngineSettings(queues=HERE)) as engine:
        await engine.start(queued())
        claimant = engine._queues.claimant  # type: ignore[union-attr]
        while not claimant.executing:
            await turns()
        await claimant.renew()
        async with asyncio.timeout(10):
            await stopped.wait()
        assert not claimant._in_hand


class Silent(QueueMemoryStore):
    """Does not answer when told so; counts the looks it has answered."""

    silent = False
    looks = 0

    async def expired_claims(self, *given: Any, **named: Any) -> list[ExpiredClaim]:
        if self.silent:
            raise StoreUnavailable("no answer")
        self.looks += 1
        return await super().expired_claims(*given, **named)


class Owner:
    """What a sweep needs of a coordinator."""

    def __init__(self) -> None:
        self.shards = self
        self.owned = (0,)
        self.is_shared = True
        self._spawned: list[Coroutine[Any, Any, None]] = []

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._spawned.append(work)

    async def settled(self) -> None:
        while self._spawned:
            await self._spawned.pop()


@on_loop
async def test_while_the_store_was_silent_no_worker_is_taken_for_dead() -> None:
    """Nobody could renew: everybody gets a lease's time again."""
    clock, store, owner = VirtualClock(), Silent(), Owner()
    sweep = ClaimSweep(owner, store, clock, 9_000)  # type: ignore[arg-type]
    sweep.open()

    async def later() -> int:
        await clock.advance(3_000)
        await owner.settled()
        return store.looks

    assert await later() == 1
    store.silent = True
    assert await later() == 1
    store.silent = False
    assert [await later() for _ in range(4)] == [1, 1, 2, 3]
    sweep.close()
    assert await later() == 3


@on_loop
async def test_work_whose_definition_cannot_be_read_here_fails_and_says_why() -> None:
    store = QueueMemoryStore()
    settings = EngineSettings(queues={})
    async with Engine(store, functions={"work": nothing}, settings=settings) as engine:
        run = await engine.start(queued())
        (claimed,) = await store.claim("q", "w", 1, 60_000)
        commander = engine._commander
        library = commander.library
        library._newest.clear()
        library._graphs.clear()
        store._documents._versions["workflow", "w"][0] = ("hash", b"\x93")
        attempt = await attempt_of(claimed, commander, lambda _name, _data: None, None)
        assert isinstance(attempt, FailAttempt)
        assert "w version 1 cannot be read here" in attempt.error.message
        assert run.id == claimed.run
