"""Recovery beside a coordinator that is already at work: found by torture, kept here one by one."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.cores import FaultyStore, calls, chain, running
from tests.runtime.executing import on_loop
from treadle.actions.failure import Retryable
from treadle.actions.protocol import AttemptFacts
from treadle.errors import StoreUnavailable
from treadle.language import load_value
from treadle.model.definition import Workflow
from treadle.model.states import RunStatus
from treadle.runtime.cluster.store_ownership import OpenStore
from treadle.runtime.engine import Engine, EngineSettings
from treadle.store.notices import CHANGED, INBOX, Heard, Silence
from treadle.store.port import Batch, Fence, OutboxRow, RunQuery, RunRow


async def turns(count: int) -> None:
    """Lets the loop go round."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        turn: asyncio.Future[None] = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


class SlowStore(FaultyStore):
    """Commits take their time, and so does looking for busy runs: much is decided meanwhile."""

    async def commit(self, batch: Batch, fence: Fence) -> list[OutboxRow]:  # type: ignore[override]
        await turns(40)
        return await super().commit(batch, fence)

    async def find_runs(self, query: RunQuery) -> list[RunRow]:
        await turns(10 if query.busy else 0)
        return await super().find_runs(query)


def workflow(nodes: dict[str, Any], transitions: list[Any] | None = None) -> Workflow:
    return load_value({"workflow": "w", "nodes": nodes, "transitions": transitions or []}).require()


@on_loop
async def test_recovery_does_not_take_work_for_lost_that_is_about_to_begin() -> None:
    """One branch hangs when its engine ends, the other waits for its second attempt. The next engine fires that timer
    while it still looks for lost workers."""
    store, ran = SlowStore(), Counter[str]()
    body = calls("x", retry={"max_attempts": 2, "backoff": "none", "initial_delay_ms": 50})
    fan = {"id": "fan", "from": "begin", "to": "body", "spawn_count": 2}
    join = {"from": "body", "to": "end", "synchronization": {"sibling_group": "fan"}}

    async def hangs_or_fails(facts: AttemptFacts) -> None:
        if facts.branch["index"] == 0:  # type: ignore[index]
            await asyncio.Event().wait()
        raise Retryable("once")

    async with running(store, {"x": hangs_or_fails}) as first:  # type: ignore[arg-type]
        run = await first.client.start(workflow({"begin": {}, "body": body, "end": {}}, [fan, join]))
        while not await store.timers(0):
            await turns(1)

    async def counts(facts: AttemptFacts) -> None:
        ran[f"{facts.branch['index']}, attempt {facts.attempt}"] += 1  # type: ignore[index]

    async with running(store, {"x": counts}, _Later(), owner="next") as second:  # type: ignore[arg-type]
        assert (await second.client.run(run.id).wait(10)).status is RunStatus.COMPLETED
    assert ran == {"0, attempt 1": 1, "1, attempt 2": 1}
    assert [event.type for event in await store.history(run.id)].count("token.dispatched") == 4, "one was lost"


class _Later:
    """The system's clock, an hour on: every timer is due when an engine opens."""

    def __init__(self) -> None:
        from treadle.runtime.surroundings.clock import SystemClock

        self._clock = SystemClock()

    def now(self) -> int:
        return self._clock.now() + 3_600_000

    def call_at(self, due: int, action: Any) -> Any:
        return self._clock.call_at(due - 3_600_000, action)


@pytest.mark.parametrize("fault", ["lost", "unseen"])
@on_loop
async def test_work_that_waits_in_line_is_begun_once_whatever_becomes_of_its_beginning(fault: str) -> None:
    store, ran = FaultyStore(), Counter[int]()

    async def function(facts: AttemptFacts) -> None:
        ran[facts.attempt] += 1

    async with running(store, {"a": function}) as here:
        await here.client.deploy(workflow({"a": calls("a", queue="heavy")}))
        for faults in ([fault], ["", fault], ["", fault, fault]):
            store.faults = list(faults)
            run = await here.client.start("w")
            assert (await run.wait(10)).status is RunStatus.COMPLETED
    assert ran == {1: 3}


@on_loop
async def test_a_timer_of_a_commit_nobody_heard_of_still_rings() -> None:
    store = FaultyStore()
    async with running(store, {}) as here:
        store.faults = ["unseen"]
        run = await here.client.start(workflow({"nap": {"action": {"kind": "wait", "ms": 20}}}))
        assert (await run.wait(10)).status is RunStatus.COMPLETED


@on_loop
async def test_whoever_watches_a_run_hears_of_an_end_nobody_was_told() -> None:
    store = FaultyStore()
    async with running(store, {}) as here:
        run = await here.client.start(workflow({"ask": {"action": {"kind": "human"}}}))
        (gate,) = await here.client.gates(run.id)
        watching = asyncio.create_task(run.wait(10))
        await turns(3)
        store.faults = ["unseen"]
        answering = asyncio.create_task(run.complete_gate(gate.token, {}))
        assert (await watching).status is RunStatus.COMPLETED
        await asyncio.gather(answering, return_exceptions=True)


@on_loop
async def test_recovery_is_begun_again_when_the_store_cannot_be_read() -> None:
    class Unreadable(FaultyStore):
        refusals = 0

        async def outbox(self, shard: int, after: int = 0, limit: int = 1_000, parked: bool = False) -> list[OutboxRow]:  # type: ignore[override]
            if self.refusals:
                self.refusals -= 1
                raise StoreUnavailable("disk asleep")
            return await super().outbox(shard, after, limit, parked)

    store, ran = Unreadable(), Counter[str]()

    async def function() -> None:
        ran["a"] += 1

    async with running(store, {"a": function}) as here:  # type: ignore[arg-type]
        store.faults, store.refusals = ["unseen"], 2  # the work it hands out is found by recovery, or never
        run = await here.client.start(workflow({"a": calls("a")}))
        assert (await run.wait(10)).status is RunStatus.COMPLETED
    assert ran == {"a": 1} and not store.refusals


@on_loop
async def test_a_bell_that_rings_while_an_engine_opens_harms_nobody() -> None:
    """Clients ring as soon as the lock names the engine, before it has anything to look with."""

    class Ringing(Silence):
        def hear(self, kind: str, heard: Heard) -> None:
            if kind in (INBOX, CHANGED):
                heard("0")

    class Opening(Engine):
        async def _hold(self) -> OpenStore:
            return (await super()._hold())._replace(notices=Ringing())  # type: ignore[misc, no-any-return]

    async with Opening(":memory:") as engine:
        assert await engine.workflows() == []


@on_loop
async def test_a_disk_that_is_full_is_not_tried_without_a_pause() -> None:
    """It can be read, and a transaction that writes nothing succeeds: that must not look as if it were well again."""

    class Full(FaultyStore):
        refusals = 0

        async def commit(self, batch: Batch, fence: Fence) -> list[OutboxRow]:  # type: ignore[override]
            if batch.commits and self.refusals < 4:
                self.refusals += 1
                raise StoreUnavailable("disk full")
            return await super().commit(batch, fence)

    store = Full()
    loop = asyncio.get_running_loop()
    async with running(store, {}) as here:  # type: ignore[arg-type]
        began = loop.time()
        await here.client.start(workflow({"ask": {"action": {"kind": "human"}}}))
        assert store.refusals == 4
        assert loop.time() - began >= 0.05 + 0.1 + 0.2, "the first try again is at once, the others wait ever longer"


@on_loop
async def test_engines_that_were_closed_in_good_order_say_nothing_against_the_work(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def hangs() -> None:
        begun.set()
        await asyncio.Event().wait()

    settings = EngineSettings(grace_ms=0)
    run_id = None
    for _ in range(8):  # the fifth lost worker would fail the visit
        begun.clear()
        async with Engine(tmp_path / "treadle.db", functions={"a": hangs}, settings=settings) as engine:
            run_id = run_id or (await engine.start(chain("a"))).id
            await begun.wait()

    async def answers() -> dict[str, bool]:
        return {"ok": True}

    async with Engine(tmp_path / "treadle.db", functions={"a": answers}) as engine:
        ended = await engine.run(run_id or "").wait(10)
    assert ended.status is RunStatus.COMPLETED, ended
