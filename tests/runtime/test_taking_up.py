"""What an engine takes up: rows and requests others left, effects of what is durable. Nothing is dropped on the way."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.cores import FaultyStore, calls, chain, one, running
from tests.runtime.executing import on_loop, turns
from tests.runtime.reaching import reached
from treadle.errors import CommandRefused, EngineStopped, StoreUnavailable
from treadle.kernel.state import RunState
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.connecting import connect
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.coordinate.library import Library
from treadle.runtime.engine import Engine
from treadle.store.port import InboxRequest, OutboxRow, StoredDocument
from treadle.store.rows import SHARD


async def works() -> dict[str, Any]:
    return {}


async def hangs() -> None:
    await asyncio.Event().wait()


@on_loop
async def test_the_rows_of_a_wide_fan_out_share_one_reading_of_its_history() -> None:
    class Counts(FaultyStore):
        read = 0

        async def history(self, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
            self.read += 1
            await turns(2)
            return await super().history(run, after, limit)

    store = Counts()
    document = {
        "workflow": "wide",
        "nodes": {"s": {}, "a": calls("a", concurrency={"limit": 1})},
        "transitions": [{"from": "s", "to": "a", "spawn_count": 100}],
    }
    async with running(store, {"a": hangs}) as here:
        run = await here.client.start(load_value(document).require())
        await here.core.coordinator.wait_quiet()
    store.read = 0
    async with running(store, {"a": works}, owner="next") as here:
        assert (await here.client.run(run.id).wait(10)).status is RunStatus.COMPLETED
    assert store.read < 10


@on_loop
async def test_a_request_is_decided_knowing_what_was_deployed_before_it() -> None:
    class Meanwhile(FaultyStore):
        happens: Callable[[], Awaitable[Any]] | None = None

        async def inbox(self, shard: int, limit: int = 1_000) -> list[InboxRequest]:  # type: ignore[override]
            happens, self.happens = self.happens, None
            if happens is not None:
                await happens()
            return await super().inbox(shard, limit)

    store = Meanwhile()
    asks = InboxRequest("q", RunId("r"), c.StartRun(RunId("r"), version=0), 0, "chain")

    async def deploys_and_asks() -> None:
        await Library(store).deploy(chain("a"))  # type: ignore[arg-type]
        await store.submit(asks)

    async with running(store, {"a": works}) as here:  # type: ignore[arg-type]
        store.happens = deploys_and_asks
        await here.core.look()
        await here.core.coordinator.wait_quiet()
        answer = await store.submit(asks)
        assert answer is not None
        assert answer.rejection is None


@on_loop
async def test_a_request_for_a_dead_letter_is_answered_although_the_store_was_away() -> None:
    class Away(FaultyStore):
        away = 0

        async def outbox(self, shard: int, after: int = 0, limit: int = 1_000, parked: bool = False) -> list[OutboxRow]:  # type: ignore[override]
            if parked and self.away:
                self.away -= 1
                raise StoreUnavailable("busy")
            return await super().outbox(shard, after, limit, parked)

    store = Away()
    async with running(store, {}) as here:  # type: ignore[arg-type]
        asks = InboxRequest("q", RunId("r"), None, 0, None, 5)
        await store.submit(asks)
        store.away = 1
        await here.core.look()
        await here.core.coordinator.wait_quiet()
        assert await store.submit(asks) is not None
        assert await store.inbox(SHARD) == []


@on_loop
async def test_what_was_deployed_before_it_was_asked_for_is_known_to_whoever_takes_it_up() -> None:
    """Children too, although nobody has said a word of it; a look that finds nothing new reads no definitions."""

    class Counts(FaultyStore):
        read = 0

        async def documents(
            self, kind: str, name: str | None = None, version: int | None = None
        ) -> list[StoredDocument]:
            self.read += 1
            return await super().documents(kind, name, version)

    store = Counts()
    async with running(store, {"a": works}) as here:
        await here.client.deploy(chain("a", name="child", output={"version": 1}))
        elsewhere = Library(store)
        await elsewhere.deploy(chain("a", name="child", output={"version": 2}))
        await elsewhere.deploy(one("parent", {"kind": "workflow_call", "workflow": "child"}))
        run = RunId("r")
        await store.submit(InboxRequest("q", run, c.StartRun(run, {}), 0, "parent"))
        await here.core.look()
        await here.core.wait_quiet()
        assert (await here.client.run(run).wait(5)).status is RunStatus.COMPLETED
        [child] = await here.client.runs(workflow="child")
        assert child.version == 2
        await here.core.wait_quiet()
        store.read = 0
        await here.core.look()
        assert store.read == 0


@pytest.mark.parametrize("way", ["store", "server"])
@on_loop
async def test_a_client_does_not_refuse_what_a_version_deployed_elsewhere_takes(tmp_path: Path, way: str) -> None:
    strict, place = chain("a", input_schema={"type": "object", "required": ["n"]}), tmp_path / "t.db"
    async with Engine(place, functions={"a": works}) as engine, reached(engine, way, place) as client:
        await client.deploy(strict)
        with pytest.raises(CommandRefused, match="SCHEMA"):
            await client.start("chain", {})
        await engine.deploy(chain("a"))
        assert (await (await client.start("chain", {})).wait(5)).status is RunStatus.COMPLETED


@on_loop
async def test_work_that_cannot_be_begun_fails_and_the_rest_of_its_batch_begins() -> None:
    async with running(FaultyStore(), {"a": works}) as here:
        real, asked = here.core.own_work._attempts.attempt, list[Any]()

        def breaks_once(state: RunState, effect: Any) -> Any:
            asked.append(effect)
            if len(asked) == 1:
                raise RuntimeError("a defect")
            return real(state, effect)

        here.core.own_work._attempts.attempt = breaks_once  # type: ignore[method-assign]
        await here.client.deploy(chain("a"))
        runs = await asyncio.gather(*(here.client.start("chain") for _ in range(5)))
        ended = [await run.wait(5) for run in runs]
        assert [one.status for one in ended] == [RunStatus.FAILED] + [RunStatus.COMPLETED] * 4
        assert ended[0].error is not None
        assert "a defect" in ended[0].error.message


@on_loop
async def test_an_engine_opens_however_deep_the_temporary_directory_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 90)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    async with Engine(tmp_path / "t.db", functions={"a": works}), connect(tmp_path / "t.db") as client:
        run = await client.start(chain("a"))
        assert (await run.wait(10)).status is RunStatus.COMPLETED
    assert list(deep.iterdir()) == []


@on_loop
async def test_an_engine_that_lost_its_lease_stops_its_work() -> None:
    store, begun, stopped = FaultyStore(), asyncio.Event(), asyncio.Event()

    async def notices() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with running(store, {"a": notices}) as here:
        run = await here.client.start(chain("a"))
        await begun.wait()
        await store.lease(SHARD, "other", 0, 1 << 50, evict=True)
        with pytest.raises(EngineStopped):
            await run.cancel()
        await stopped.wait()


@on_loop
async def test_a_request_that_is_read_again_before_its_answer_is_durable_is_taken_up_once() -> None:
    store = FaultyStore()
    async with running(store, {}) as here:
        taken: list[Item] = []
        here.core.coordinator.put = taken.append  # type: ignore[method-assign, assignment]
        await store.submit(InboxRequest("q", RunId("r"), c.PauseRun(), 0))
        for _ in range(2):
            await here.core.inbox.read()
        assert [item.request for item in taken] == ["q"]
        del here.core.coordinator.put


@on_loop
async def test_a_message_that_the_last_owner_did_not_deliver_is_delivered_by_the_next() -> None:
    store = FaultyStore()
    await Library(store).deploy(one("emits", {"kind": "emit", "type": "news"}))
    async with running(store, {}, owner="first") as first:
        first.letters.failures = [ConnectionError("not now")]
        await first.core.coordinator.ask(RunId("r"), c.StartRun(RunId("r"), version=0), "emits")
        await turns(50)
        assert not first.letters.failures and first.letters.carried == [], "it was tried once"
    async with running(store, {}, owner="second") as second:
        await turns(50)
        assert [run for run, _effect in second.letters.carried] == ["r"]
