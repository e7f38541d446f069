"""What is offered to workers: what an offer carries, when it is made again, and when it goes."""

from __future__ import annotations

from typing import Any

from tests.runtime.cores import calls
from tests.runtime.executing import on_loop, turns
from tests.runtime.hall import HERE, AtWork, Hall, hall, nothing, queued
from treadle.graph.compile import compile_graph
from treadle.kernel.state import RunState
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.engine import Engine, EngineSettings
from treadle.runtime.queue.offers import with_offers


@on_loop
async def test_an_offer_carries_what_a_worker_needs() -> None:
    async with hall({}, work=nothing) as here:
        document = {
            "workflow": "fan",
            "nodes": {"begin": {}, "n": calls("work", queue="q", concurrency={"limit": 2, "key": "$._branch.index"})},
            "transitions": [{"id": "fan", "from": "begin", "to": "n", "spawn_count": 2}],
        }
        run = await here.engine.start(load_value(document).require())
        one, two = await here.claim()
        assert (one.offer.workflow, one.offer.version, one.offer.node) == ("fan", 1, "n")
        assert [offer.branch["index"] for offer in (one.offer, two.offer)] == [0, 1]
        assert one.offer.path != two.offer.path
        assert [one.offer.key, two.offer.key] == ["fan/n:0", "fan/n:1"]
        await run.cancel()


@on_loop
async def test_an_offer_carries_the_run_only_where_the_task_reads_it() -> None:
    async with hall({}, work=nothing) as here:
        told = {"ref": "n", "action": {"kind": "set", "values": {"run": "$._run.id", "key": "$._visit.key"}}}
        document = {"workflow": "w", "nodes": {"a": {"steps": [told], "queue": "q"}, "b": calls("work", queue="q")}}
        run = await here.engine.start(load_value(document).require(), key="order-7")
        offers = {claimed.offer.node: claimed.offer for claimed in await here.claim()}
        assert offers["b"].about is None
        assert (offers["a"].about["id"], offers["a"].about["key"], offers["a"].retries) == (run.id, "order-7", 0)
        await run.cancel()


@on_loop
async def test_an_offer_nobody_wants_is_cleared_away() -> None:
    async with hall({}, work=nothing) as here:
        run = await here.engine.start(queued())
        (claimed,) = await here.claim()
        await run.cancel()
        stray = f.OfferWork(claimed.offer.token, 1, "n", None, "q", "w", "w", 1, "root")
        here.store._offers[run.id, stray.token] = type(_row_of(here, stray))(run.id, stray, 0, False)
        await here.claim()
        await here.lose()
        assert await here.store.queue_rows() == []


@on_loop
async def test_work_that_the_same_decision_cancels_is_not_offered() -> None:
    """A sibling that needs no work ends the run before anybody could begin."""
    async with hall({}, work=nothing) as here:
        document = {
            "workflow": "w",
            "nodes": {"begin": {}, "n": calls("work", queue="q"), "end": {"terminates": True}},
            "transitions": [{"from": "begin", "to": "n"}, {"from": "begin", "to": "end"}],
        }
        run = await here.engine.start(load_value(document).require())
        assert (await run.wait()).status is RunStatus.COMPLETED
        assert await here.claim() == []


def _row_of(here: Hall, offer: f.OfferWork) -> Any:
    from treadle.store.memory_work import _Row

    return _Row(RunId("r"), offer, here.now, False)


@on_loop
async def test_a_failing_attempt_is_retried_as_a_new_offer() -> None:
    async with hall({}, work=nothing) as here:
        retry = {"max_attempts": 2, "backoff": "none", "initial_delay_ms": 0}
        run = await here.engine.start(queued(retry=retry))
        (first,) = await here.claim()
        await here.begin(first)
        from treadle.model.errors import Error

        failed = c.FailAttempt(first.offer.token, 1, Error("TASK_FAILED", "no", retryable=True), worker=first.holder)
        await here.ask(first, failed)
        while not (again := await here.claim()):
            await turns()
        assert (again[0].offer.attempt, again[0].offer.recovery) == (2, 0)
        await here.begin(again[0])
        await here.finish(again[0])
        assert (await run.wait()).status is RunStatus.COMPLETED


@on_loop
async def test_rows_from_a_store_without_claims_are_offered() -> None:
    """A store that was moved: queue work lies in the outbox."""
    from treadle.store.port import Batch, Commit

    here = Hall(HERE, work=nothing)
    async with here.engine:
        run = await here.engine.start(queued(queue="elsewhere"))
        (row,) = here.store._offers.values()
    fence = await here.store.lease(0, "mover", None, 1, evict=True)
    assert fence is not None
    here.store._offers.clear()
    (kept,) = [one for one in await here.store.find_runs(_any()) if one.run == run.id]
    moved = [row.offer.task()]
    await here.store.commit(Batch([Commit(run.id, kept.seq, [], moved, RunStatus.RUNNING, True)]), fence)
    settings = EngineSettings(queues={"elsewhere": 1})
    async with Engine(here.store, functions={"work": nothing}, settings=settings) as second:
        assert (await second.run(run.id).wait()).status is RunStatus.COMPLETED
        assert await here.store.outbox(0) == []


def _any() -> Any:
    from treadle.store.port import RunQuery

    return RunQuery()


@on_loop
async def test_a_limit_across_runs_holds_over_all_engines_on_the_store() -> None:
    """Work without a queue that observes one is offered to every engine, and begins where there is room."""
    at = AtWork()

    async with hall({}, work=at.work) as here:
        document = {"workflow": "w", "nodes": {"n": calls("work", concurrency={"limit": 2})}}
        limited = load_value(document).require()
        runs = [await here.engine.start(limited) for _ in range(8)]
        for run in runs:
            assert (await run.wait()).status is RunStatus.COMPLETED
        assert at.most == 2
        assert await here.store.outbox(0) == []
        assert await here.engine.queues() == []


@on_loop
async def test_authors_say_what_goes_first_and_who_takes_turns() -> None:
    async with hall({}, work=nothing) as here:
        late = queued(queue={"name": "q", "priority": 9})
        tenants = queued(queue={"name": "q", "key": "$.input.tenant"})
        await here.engine.start(late)
        for tenant in ("acme", "zoo", None):
            await here.engine.start(tenants, {"tenant": tenant})
        claimed = [claimed.offer for claimed in await here.claim()]
        assert sorted((offer.priority, offer.key) for offer in claimed) == [(1, "acme"), (1, "w"), (1, "zoo"), (9, "w")]
        assert claimed[-1].priority == 9


def test_a_workflow_without_queues_and_limits_pays_nothing() -> None:
    plain = load_value({"workflow": "p", "nodes": {"n": calls("work")}}).require()
    effects: list[f.Effect] = [f.StopTask(TokenId(1), 1), f.RunTask(TokenId(2), 1, "n", None)]
    assert with_offers(RunState(compile_graph(plain)), c.CancelRun(), [], effects) is effects
    mixed = RunState(compile_graph(queued()))
    assert with_offers(mixed, c.CancelRun(), [], effects) == [effects[0], f.WithdrawWork(TokenId(1)), effects[1]]
