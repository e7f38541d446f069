"""The coordinator and what is around it, on the memory store: order, faults, recovery, requests, dead letters."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.runtime.cores import FaultyStore, Letters, chain, running
from tests.runtime.executing import on_loop
from treadle.errors import CommandRefused, EngineStopped
from treadle.kernel.evolve import replay
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.surroundings.ports import Undeliverable
from treadle.store.port import InboxRequest
from treadle.store.rows import SHARD


class Counting:
    """Functions that count how often they ran."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()

    def __call__(self, name: str) -> Any:
        async def function() -> dict[str, Any]:
            self.ran[name] += 1
            return {"ran": self.ran[name]}

        return function


@pytest.mark.parametrize("faults", [[], ["lost"], ["unseen"], ["lost", "unseen", "lost"], ["unseen"] * 4])
@on_loop
async def test_a_chain_completes_whatever_becomes_of_its_commits(faults: list[str]) -> None:
    store, counting = FaultyStore(), Counting()
    store.faults = list(faults)
    async with running(store, {name: counting(name) for name in "abc"}) as here:
        run = await here.client.start(chain("a", "b", "c"))
        ended = await run.wait(10)
    assert ended.status is RunStatus.COMPLETED
    assert set(counting.ran) == set("abc")
    if "unseen" not in faults:
        assert counting.ran == Counter("abc"), "nothing ran twice"
    history = await store.history(run.id)
    assert [event.seq for event in history] == list(range(1, len(history) + 1))


@on_loop
async def test_a_step_of_a_chain_costs_one_commit() -> None:
    store, counting = FaultyStore(), Counting()
    async with running(store, {name: counting(name) for name in "abcde"}) as here:
        run = await here.client.start(chain(*"abcde"))
        await run.wait(10)
    assert len(store.batches) == 6, "one for the start, one for each of the five results"


@on_loop
async def test_many_runs_share_commits() -> None:
    store, counting = FaultyStore(), Counting()
    async with running(store, {name: counting(name) for name in "abcde"}) as here:
        await here.client.deploy(chain(*"abcde"))
        runs = await asyncio.gather(*(here.client.start("chain") for _ in range(200)))
        await asyncio.gather(*(run.wait(30) for run in runs))
    assert sum(len(batch.commits) for batch in store.batches) == 200 * 6
    assert len(store.batches) < 200


@on_loop
async def test_work_of_an_engine_that_is_gone_is_done_by_the_next() -> None:
    store, begun = FaultyStore(), asyncio.Event()

    async def hangs() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with running(store, {"a": hangs}) as first:
        run = await first.client.start(chain("a"))
        await begun.wait()
    async with running(store, {"a": Counting()("a")}, owner="next") as second:
        ended = await second.client.run(run.id).wait(10)
    assert ended.status is RunStatus.COMPLETED
    assert "token.retry_scheduled" not in {event.type for event in await store.history(run.id)}, "not a task's failure"


@on_loop
async def test_an_engine_that_lost_its_lease_stops_and_tells_those_who_wait() -> None:
    store, begun = FaultyStore(), asyncio.Event()

    async def hangs() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with running(store, {"a": hangs}) as zombie:
        run = await zombie.client.start(chain("a"))
        await begun.wait()
        await store.lease(SHARD, "other", 0, 1 << 50, evict=True)
        with pytest.raises(EngineStopped):
            await run.cancel()
        with pytest.raises(EngineStopped):
            await run.cancel()
    assert (await store.history(run.id))[-1].type == "token.started", "a zombie writes nothing"


@on_loop
async def test_the_same_key_gives_the_same_run_however_close_the_starts() -> None:
    store = FaultyStore()
    async with running(store, {"a": Counting()("a")}) as here:
        await here.client.deploy(chain("a"))
        runs = await asyncio.gather(*(here.client.start("chain", key="order-1") for _ in range(20)))
        assert len({run.id for run in runs}) == 1
        assert (await here.client.start("chain", key="order-1")).id == runs[0].id
        assert (await here.client.start("chain", key="order-2")).id != runs[0].id
        assert len(await here.client.runs()) == 2


@on_loop
async def test_a_request_of_another_process_is_answered_once_with_the_decision() -> None:
    store = FaultyStore()
    async with running(store, {"a": Counting()("a")}) as here:
        await here.client.deploy(chain("a"))
        request = InboxRequest("q1", RunId("r1"), c.StartRun(RunId("r1"), version=0), 0, "chain")
        assert await store.submit(request) is None
        await here.core.look()
        await here.core.look()
        await here.core.coordinator.wait_quiet()
        await here.client.run("r1").wait(10)
        await here.core.coordinator.wait_quiet()
        answer = await store.submit(request)
        assert answer is not None
        assert (answer.rejection, answer.result) == (None, "r1")
        assert await store.inbox(SHARD) == []


@on_loop
async def test_requests_are_taken_up_in_the_order_in_which_they_were_made() -> None:
    store, run = FaultyStore(), RunId("r1")
    async with running(store, {"a": Counting()("a")}) as here:
        await here.client.deploy(chain("a"))
        asked = (c.StartRun(run, version=0), c.PauseRun(), c.ResumeRun())
        requests = [InboxRequest(f"q{at}", run, command, at, "chain") for at, command in enumerate(asked)]
        for request in requests:
            assert await store.submit(request) is None
        await here.core.look()
        await here.core.coordinator.wait_quiet()
        await here.client.run("r1").wait(10)
        answers = [await store.submit(request) for request in requests]
        assert [answer is not None and answer.rejection for answer in answers] == [None, None, None]
        types = [event.type for event in await store.history(run)]
        assert [type for type in types if type in ("run.started", "run.paused", "run.resumed")] == [
            "run.started",
            "run.paused",
            "run.resumed",
        ]


@on_loop
async def test_a_refused_request_changes_nothing_and_says_why() -> None:
    store = FaultyStore()
    async with running(store, {}) as here:
        with pytest.raises(CommandRefused, match="NOT_FOUND"):
            await here.client.start("nothing")
        with pytest.raises(CommandRefused, match="there is no run 'nobody'"):
            await here.client.run("nobody").cancel()
    assert store.batches == []


@on_loop
async def test_a_defect_in_a_decision_harms_only_its_run() -> None:
    store = FaultyStore()
    async with running(store, {"a": Counting()("a")}) as here:
        step = {"ref": "ask", "action": {"kind": "human"}}
        run = await here.client.start(load_value({"workflow": "w", "nodes": {"g": {"task": {"steps": [step]}}}}))
        with pytest.raises(CommandRefused, match="could not be decided"):
            await run.ask(c.SendSignal(["unhashable"]))  # type: ignore[arg-type]
        assert (await (await here.client.start(chain("a"))).wait(10)).status is RunStatus.COMPLETED
        await run.complete_gate(TokenId(1), {})
        assert (await run.wait(10)).status is RunStatus.COMPLETED, "its own state is as it was before"


def emitting(letters: Letters, failures: list[Exception]) -> Any:
    letters.failures = failures
    step = {"ref": "do", "action": {"kind": "emit", "type": "news", "data": {"n": 1}}}
    return load_value({"workflow": "emits", "nodes": {"a": {"task": {"steps": [step]}}}}).require()


@on_loop
async def test_what_cannot_be_delivered_is_a_dead_letter_that_can_be_requeued() -> None:
    store = FaultyStore()
    async with running(store, {}) as here:
        run = await here.client.start(emitting(here.letters, [Undeliverable("410 Gone")]))
        await run.wait(10)
        await here.core.outgoing.wait_idle()
        await here.core.coordinator.wait_quiet()
        dead = await here.client.dead_letters()
        assert [(letter.run, letter.parked) for letter in dead] == [(run.id, "410 Gone")]
        await here.client.requeue(dead[0].id)
        await here.core.outgoing.wait_idle()
        assert len(here.letters.carried) == 1
        assert await here.client.dead_letters() == []
        with pytest.raises(CommandRefused, match="no dead letter"):
            await here.client.requeue(dead[0].id)


@on_loop
async def test_a_child_run_is_started_and_its_result_comes_back() -> None:
    store = FaultyStore()
    child = chain("a", name="child", output={"n": "$.nodes.a.output.ran"})
    step = {"ref": "do", "action": {"kind": "workflow_call", "workflow": "child"}}
    parent = load_value(
        {"workflow": "parent", "nodes": {"p": {"task": {"steps": [step]}}}, "output": {"n": "$.nodes.p.output.n"}}
    ).require()
    async with running(store, {"a": Counting()("a")}) as here:
        await here.client.deploy(child)
        run = await here.client.start(parent)
        assert await run.result(10) == {"n": 1}
        assert len(await here.client.runs(parent=run.id)) == 1


@on_loop
async def test_history_can_be_watched_while_it_is_written() -> None:
    store = FaultyStore()
    async with running(store, {name: Counting()(name) for name in "ab"}) as here:
        run = await here.client.start(chain("a", "b"))
        seen = [event async for event in run.events()]
    assert seen == await store.history(run.id)
    state = replay((await here.core.library.graph("chain")), seen)  # type: ignore[arg-type]
    assert state.status is RunStatus.COMPLETED


@on_loop
async def test_a_gate_is_listed_until_it_is_answered() -> None:
    store = FaultyStore()
    step = {"ref": "ask", "action": {"kind": "human", "title": "Approve?", "assign": ["ann"]}}
    document = {"workflow": "asks", "nodes": {"g": {"task": {"steps": [step]}}}, "output": "$.nodes.g.output"}
    async with running(store, {}) as here:
        run = await here.client.start(load_value(document).require())
        [gate] = await here.client.gates()
        assert (gate.title, gate.node, gate.assign) == ("Approve?", "g", ["ann"])
        await here.client.complete_gate(run.id, gate.token, {"ok": True}, by="ann")
        assert await run.result(10) == {"ok": True}
        assert await here.client.gates() == []


@on_loop
async def test_an_operator_retries_what_has_failed() -> None:
    store, outcomes = FaultyStore(), [ValueError("no"), None]

    async def fails_once() -> dict[str, Any]:
        problem = outcomes.pop(0)
        if problem is not None:
            raise problem
        return {}

    async with running(store, {"a": fails_once}) as here:
        run = await here.client.start(chain("a"))
        assert (await run.wait(10)).error is not None
        assert await run.retry() == [TokenId(1)]
        assert (await run.wait(10)).status is RunStatus.COMPLETED
        with pytest.raises(CommandRefused, match="nothing failed unhandled"):
            await run.retry()


@on_loop
async def test_starting_with_the_definition_in_hand_deploys_it_once() -> None:
    store, workflow = FaultyStore(), chain("a")
    async with running(store, {"a": Counting()("a")}) as here:
        for _ in range(3):
            await here.client.start(workflow)
        assert await here.client.deploy(chain("a")) == await here.client.deploy(workflow)
        other = await here.client.deploy(chain("a", "b"))
        again = await here.client.deploy(workflow)
    assert (other.version, again.version) == (2, 3), "what is not the newest any more becomes it again"
