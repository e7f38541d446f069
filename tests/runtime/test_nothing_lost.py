"""What a review of the engine found one by one: nothing is stranded, nothing is forgotten."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.cores import FaultyStore, chain, one, running
from tests.runtime.executing import VirtualClock, on_loop, turns
from treadle.actions.protocol import AttemptFacts
from treadle.errors import EngineStopped, StoreUnavailable
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.errors import Rejection
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.coordinate.gathering import Decided, Gathering, Item
from treadle.runtime.deliver import core as core_module
from treadle.runtime.deliver import outgoing
from treadle.runtime.engine import Engine
from treadle.store.port import Batch, Fence, InboxAnswer, InboxRequest, OutboxRow, StoredDocument
from treadle.store.rows import SHARD
from treadle.store.sqlite import SqliteStore


async def works() -> dict[str, Any]:
    return {}


async def hangs() -> None:
    await asyncio.Event().wait()


# Nothing is forgotten


@on_loop
async def test_a_late_result_of_an_older_attempt_leaves_the_run_busy() -> None:
    async with running(FaultyStore(), {"a": hangs}) as here:
        run = await here.client.start(chain("a"))
        hot = here.core.coordinator._hots.get(run.id)
        assert hot is not None
        hot.state.tokens[TokenId(1)].attempt = 2
        assert hot.update_attempts(c.FinishAttempt(TokenId(1), 1, {}), []), "attempt 2 is still at work"
        assert not hot.update_attempts(c.FinishAttempt(TokenId(1), 2, {}), [])
        hot.state.tokens[TokenId(1)].attempt = 1


@on_loop
async def test_a_start_that_was_refused_is_not_decided_again_when_the_answer_of_the_store_is_lost() -> None:
    class Unseen(FaultyStore):
        async def commit(self, batch: Batch, *fences: Fence) -> list[OutboxRow]:
            rows = await super().commit(batch, *fences)
            if batch.answers and not batch.commits:
                raise StoreUnavailable("connection lost")
            return rows

    store, second = Unseen(), RunId("second")
    async with running(store, {"a": hangs}) as here:
        first = await here.client.start(one("asks", {"kind": "human"}, concurrency={"limit": 1, "on_limit": "skip"}))
        request = InboxRequest("q", second, c.StartRun(second), 0, "asks")
        await store.submit(request)
        here.core.coordinator.put(Item(second, request.command or c.StartRun(second), "asks", request="q"))
        await turns()
        await first.cancel()
        await here.core.coordinator.wait_quiet()
        answer = await store.answer(request)
        assert answer is not None and answer.rejection is not None and answer.rejection.kind == "DUPLICATE"
        assert await store.history(second) == [], "its sender was told that there is no run"


@on_loop
async def test_a_row_that_starts_a_child_stays_until_the_parent_knows_it_was_refused() -> None:
    store = FaultyStore()
    child = one("child", {"kind": "human"}, input_schema={"type": "object", "required": ["x"]})
    parent = one("parent", {"kind": "workflow_call", "workflow": "child"})
    async with running(store, {}) as here:
        await here.client.deploy(child)
        run = await here.client.start(parent)
        coordinator = here.core.coordinator
        assert (await run.wait(5)).status is RunStatus.FAILED
        await coordinator.wait_quiet()
        item = Item(RunId("r.1"), c.StartRun(RunId("r.1"), version=0), "child", row=7, keeps_row=True)
        gathered = Gathering()
        gathered.add(Decided(item, None, list[f.Effect](), InboxAnswer("", Rejection("NOT_FOUND", "no"))), None)
        assert gathered.done == [], "the parent's decision settles it"
        gathered.add(Decided(item, None, list[f.Effect](), InboxAnswer("", None)), None)
        assert gathered.done == [7]
    assert await store.outbox(SHARD) == []


@on_loop
async def test_a_delivery_that_raises_does_not_hold_up_what_is_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    emits = {"task": {"steps": [{"ref": "do", "action": {"kind": "emit", "type": "news", "data": {"n": 1}}}]}}
    document = {"workflow": "w", "nodes": {"a": emits, "b": emits}, "transitions": [{"from": "a", "to": "b"}]}
    real, asked = outgoing.context_of, list[int]()

    def breaks_once(state: Any, row: OutboxRow) -> Any:
        asked.append(row.id)
        if len(asked) == 1:
            raise RuntimeError("a defect")
        return real(state, row)

    monkeypatch.setattr(outgoing, "context_of", breaks_once)
    async with running(FaultyStore(), {}) as here:
        run = await here.client.start(load_value(document).require())
        await run.wait(5)
        await here.core.wait_quiet()
        assert len(here.letters.carried) == 1
        [dead] = await here.client.dead_letters()
        assert dead.parked == "RuntimeError: a defect"
        await here.client.requeue(dead.id)
        await here.core.wait_quiet()
        assert len(here.letters.carried) == 2


@on_loop
async def test_who_waits_between_two_tries_does_not_keep_others_from_being_delivered() -> None:
    clock = VirtualClock()
    async with running(FaultyStore(), {}, clock) as here:
        here.letters.failures = [OSError("receiver is away")]
        flow = one("emits", {"kind": "emit", "type": "news"})
        await here.client.start(flow)
        await turns(50)
        await here.client.start(flow)
        await turns(50)
        assert len(here.letters.carried) == 1, "the second; the first waits for its next try"
        await clock.advance(60_000)
        assert len(here.letters.carried) == 2


@on_loop
async def test_what_was_deployed_while_the_list_was_read_is_not_forgotten() -> None:
    class Slow(FaultyStore):
        hold: asyncio.Event | None = None

        async def documents(
            self, kind: str, name: str | None = None, version: int | None = None
        ) -> list[StoredDocument]:
            found = await super().documents(kind, name, version)
            if self.hold is not None and name is None:  # only the list; `deploy` asks for its own workflow by name
                await self.hold.wait()
            return found

    store = Slow()
    async with running(store, {"a": works}) as here:
        store.hold = asyncio.Event()
        refreshing = asyncio.create_task(here.core.library.refresh())
        await turns(3)
        await here.client.deploy(chain("a"))
        store.hold.set()
        await refreshing
        assert here.core.library.newest("chain") == 1
        assert (await (await here.client.start("chain")).wait(5)).status is RunStatus.COMPLETED


@on_loop
async def test_what_a_stopped_attempt_has_said_is_not_kept_for_ever() -> None:
    async def says(facts: AttemptFacts) -> None:
        assert facts.emit is not None
        facts.emit("x", {"n": 1})
        await asyncio.Event().wait()

    clock = VirtualClock()
    async with running(FaultyStore(), {"a": says}, clock) as here:
        run = await here.client.start(chain("a"))
        await turns(20)
        assert len(here.core.own_work._progress._streams) == 1
        await clock.advance(1_000)
        await run.cancel()
        await turns(20)
        gc.collect()
        assert len(here.core.own_work._progress._streams) == 0


# Closing


@on_loop
async def test_an_engine_can_be_closed_while_its_store_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_module, "PATIENCE_S", 0.01)

    class Full(FaultyStore):
        full = False

        async def commit(self, batch: Batch, fence: Fence) -> list[OutboxRow]:  # type: ignore[override]
            if self.full:
                raise StoreUnavailable("disk full")
            return await super().commit(batch, fence)

    store = Full()
    async with running(store, {"a": hangs}) as here:  # type: ignore[arg-type]
        run = await here.client.start(chain("a"))
        store.full = True
        cancelling = asyncio.create_task(run.cancel())
        await turns(20)
    with pytest.raises(EngineStopped):
        await cancelling


@on_loop
async def test_an_engine_lets_go_of_its_file_whatever_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(_store: SqliteStore, _fence: Fence) -> None:
        raise StoreUnavailable("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(SqliteStore, "release", breaks)
        with pytest.raises(StoreUnavailable):
            async with Engine(tmp_path / "t.db"):
                pass
    async with Engine(tmp_path / "t.db") as engine:
        assert await engine.runs() == []


# The inbox


@on_loop
async def test_a_dead_letter_can_be_requeued_from_another_process(tmp_path: Path) -> None:
    wish = InboxRequest("q", RunId("r"), None, 5, None, 7)
    async with await SqliteStore.open(tmp_path / "t.db") as store:
        await store.submit(wish)
        assert await store.inbox(SHARD) == [wish]
    async with Engine(tmp_path / "t.db") as engine:
        await engine._core.wait_quiet()
        answer = await engine._commander.store.submit(wish)
        assert answer is not None
        assert answer.rejection is not None, "there is no such letter, and the engine opens all the same"
