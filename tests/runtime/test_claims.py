"""Queue work on a store that workers share, in one process: what is offered, claimed, lost, given back."""

from __future__ import annotations

import asyncio

import pytest

from tests.runtime.executing import on_loop, turns
from tests.runtime.hall import HERE, Hall, hall, nothing, of_kind, queued
from treadle.actions.protocol import AttemptFacts
from treadle.errors import CommandRefused
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.ids import TokenId
from treadle.model.states import RunStatus
from treadle.runtime.engine import Engine, EngineSettings


@on_loop
async def test_an_engine_claims_like_any_worker() -> None:
    async with hall(work=lambda: {"x": 1}) as here:
        run = await here.engine.start(queued())
        assert (await run.wait()).status is RunStatus.COMPLETED
        (started,) = await of_kind(run, e.TokenStarted)
        assert started.worker == "engine#1", "the only engine of a store"
        assert started.lease_until is None, "the lease is the claim's"
        assert await here.store.queue_rows() == []
        assert await here.store.outbox(0) == []


@on_loop
async def test_an_engine_without_a_list_works_for_every_queue() -> None:
    async with hall(None, work=nothing) as here:
        runs = [await here.engine.start(queued(queue=name)) for name in ("a", "b")]
        assert {(await run.wait()).status for run in runs} == {RunStatus.COMPLETED}


@on_loop
async def test_only_the_newest_holder_is_listened_to() -> None:
    async with hall({}, work=nothing) as here:
        run = await here.engine.start(queued())
        (dead,) = await here.claim("dead")
        await here.begin(dead)
        await here.lose()
        (new,) = await here.claim("new")
        assert (new.offer.recovery, new.offer.attempt) == (1, 1)
        await here.begin(new)
        with pytest.raises(CommandRefused, match="held by 'new#2', not 'dead#1'"):
            await here.finish(dead, "stale")
        await here.finish(new, "good")
        assert [event.output for event in await of_kind(run, e.TokenCompleted)] == ["good"]
        assert (await run.wait()).status is RunStatus.COMPLETED


@on_loop
async def test_an_offer_of_the_past_cannot_be_begun() -> None:
    """Its worker was slow to say that it begins, was taken for dead, and the same work is on offer again."""
    async with hall({}, work=nothing) as here:
        await here.engine.start(queued())
        (slow,) = await here.claim("slow")
        await here.lose()
        with pytest.raises(CommandRefused, match="not on offer"):
            await here.begin(slow)
        (new,) = await here.claim("new")
        await here.begin(new)


@on_loop
async def test_work_that_kills_its_workers_fails_for_good_and_leaves_no_offer() -> None:
    async with hall({}, work=nothing) as here:
        run = await here.engine.start(queued())
        for number in range(5):
            (claimed,) = await here.claim(f"w{number}")
            await here.begin(claimed)
            await here.lose()
        ended = await run.wait()
        assert ended.status is RunStatus.FAILED
        assert ended.error is not None
        assert ended.error.kind == "WORKER_LOST"
        assert await here.store.queue_rows() == []


@on_loop
async def test_losing_the_same_claim_twice_counts_once() -> None:
    async with hall({}, work=nothing) as here:
        run = await here.engine.start(queued())
        await here.claim()
        expired = c.LoseWorker(TokenId(1), 1, 0)
        for _ in range(3):
            await run.ask(expired)
        assert [event.recovery for event in await of_kind(run, e.TokenDispatched)] == [0, 1]


@on_loop
async def test_a_paused_runs_work_waits_and_its_results_are_kept() -> None:
    async with hall({}, work=nothing) as here:
        run = await here.engine.start(queued())
        (claimed,) = await here.claim()
        await here.begin(claimed)
        await run.pause()
        await here.finish(claimed, "kept")
        assert await here.store.queue_rows() == [], "it has been answered"
        other = await here.engine.start(queued())
        await other.pause()
        assert await here.claim() == []
        await other.resume()
        (waiting,) = await here.claim()
        assert waiting.run == other.id
        await run.resume()
        assert (await run.wait()).status is RunStatus.COMPLETED


@on_loop
async def test_what_a_paused_run_refuses_to_begin_begins_when_it_goes_on() -> None:
    async with hall(work=nothing) as here:
        held = await here.engine.start(queued(queue="later"))
        claims = here.engine._queues.claimant  # type: ignore[union-attr]
        await held.pause()
        here.store._offers[held.id, TokenId(1)].held = False  # as if it had been claimed a moment before the pause
        claims._queues = {"later": 1}
        claims.wake()
        while (row := here.store._offers[held.id, TokenId(1)]).number == 0 or row.worker is not None:
            await turns()
        row.held = True
        assert claims.executing == 0
        await held.resume()
        claims.wake()
        assert (await held.wait()).status is RunStatus.COMPLETED


@on_loop
async def test_a_lost_claim_stops_the_work() -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
            raise

    async with hall(work=work) as here:
        run = await here.engine.start(queued())
        await begun.wait()
        await run.cancel()
        await here.engine._queues.claimant.renew()  # type: ignore[union-attr]
        await stopped.wait()
        assert here.engine._queues.claimant.executing == 0  # type: ignore[union-attr]


@on_loop
async def test_what_an_attempt_says_comes_before_its_result() -> None:
    async def work(facts: AttemptFacts) -> str:
        facts.emit("progress", {"done": 1})  # type: ignore[misc]
        return "end"

    async with hall(work=work) as here:
        run = await here.engine.start(queued())
        await run.wait()
        kinds = [type(event) for event in await run.history()]
        assert kinds.index(e.TokenStarted) < kinds.index(e.TokenProgress) < kinds.index(e.TokenCompleted)


@on_loop
async def test_an_engine_that_closes_gives_back_what_it_has_claimed() -> None:
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    here = Hall(HERE, work=work)
    async with here.engine:
        run = await here.engine.start(queued())
        await begun.wait()
        name = run.id
    async with Engine(here.store, functions={"work": nothing}, settings=EngineSettings(queues=HERE)) as second:
        ended = await second.run(name).wait()
        assert ended.status is RunStatus.COMPLETED
        dispatched = await of_kind(second.run(name), e.TokenDispatched)
        assert [(event.recovery, event.forgiven) for event in dispatched] == [(0, False), (1, True)]


@on_loop
async def test_a_new_owner_leaves_claimed_work_to_its_worker() -> None:
    here = Hall({}, work=nothing)
    async with here.engine:
        run = await here.engine.start(queued())
        (claimed,) = await here.claim()
        await here.begin(claimed)
        name = run.id
    async with Engine(here.store, functions={"work": nothing}, settings=EngineSettings(queues={})) as second:
        here.engine = second
        await here.finish(claimed, "still good")
        run = second.run(name)
        assert (await run.wait()).status is RunStatus.COMPLETED
        assert len(await of_kind(run, e.TokenDispatched)) == 1
