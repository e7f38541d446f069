"""Rows leave a store in pages and enter another: afterwards both hold the same, and numbers mean what they meant."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.contract.making import RUN, TOKEN, begin, commit
from tests.dumping import dump
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.model.references import EntityRef
from treadle.model.states import RunStatus
from treadle.store.entities import EntityQuery
from treadle.store.port import Batch, Fence, GateQuery, InboxAnswer, InboxRequest, RunQuery
from treadle.store.postgres import PostgresStore
from treadle.store.postgres import transfer as postgres
from treadle.store.postgres.transfer import PostgresTransfer
from treadle.store.rows import shard_of
from treadle.store.service import Changes, Entry, Note
from treadle.store.sqlite import SqliteStore
from treadle.store.sqlite import transfer as sqlite
from treadle.store.sqlite.transfer import SqliteTransfer
from treadle.store.transfer import SHELVES, Mark, Transfer


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several to a shelf."""
    for module in (sqlite, postgres):
        monkeypatch.setattr(module, "ROWS_MAX", 7)
        monkeypatch.setattr(module, "BYTES_MAX", 3_000)


async def fence_of(store: Any, run: RunId) -> Fence:
    fence: Fence | None = await store.lease(shard_of(run, store.shards), "a", 0, 100)
    assert fence is not None
    return fence


async def fill(store: Any, random: Random) -> None:
    """Something of everything, with texts that databases stumble over."""
    for number in range(40):
        run = RunId(f"run-{number}" if number % 3 else f"Ärger \0 {number} ' \1")
        key = f"key\0{number}" if number % 4 == 0 else None
        work = f.RunTask(TOKEN, 1, "a", {"x": number})
        about = EntityRef(f"e\0{number % 7}", "lead", "Ärger", {"big": "y" * random.choice([3, 900])})
        move = f.NoteMove(2, number, "w", about, "entered", edge="->a", progress=0.5, set_type=f"t{number % 3}")
        item = f.NoteItem(RunId(f"item \0{number}"), "w", f"of an item \0{number}" if number % 2 else None)
        effects = (work, f.SetTimer(TimerId(1), number * 10), f.OpenGate(TOKEN, "ask"), move, item)
        big = "x" * random.choice([3, 5_000])
        fence = await fence_of(store, run)
        rows = await store.commit(
            begin(
                run,
                *effects,
                key=key,
                tags=("t", f"t{random.randrange(5)}"),
                input={"big": big},
                busy=random.random() < 0.5,
            ),
            fence,
        )
        later = (
            [commit(1, e.RunPaused(2, 3, "wait"), run=run, status=RunStatus.PAUSED)] if random.random() < 0.2 else []
        )
        parked = [(rows[0].id, "nobody there")] if random.random() < 0.2 else []
        await store.commit(Batch(later, parked=parked, done=[rows[0].id] if random.random() < 0.2 else []), fence)
        await store.submit(InboxRequest(f"q{number}", run, c.PauseRun("no \0"), number))
        if random.random() < 0.4:
            await store.commit(Batch(answers=[InboxAnswer(f"q{number}", None, {"n": number}, run)]), fence)
        await store.put_blob(run, b"shared" if random.random() < 0.5 else bytes([number]) * 2_000)
    for name in ("one", "two"):
        for version in range(3):
            await store.put_document("workflow", name, f"h{version}", {"v": version})
    await store.put_document("workflow", "two", "", None)
    await store.put_document("_callback_key", "key", "h", "secret")
    for number in range(20):
        entries = [Entry("audit", "me \0", {"n": number}, number), Entry("delivery:hook", "h", "x" * 500, number)]
        await store.write(Changes(entries=entries, notes=[Note(f"note \0{number}", {"n": number}, number)]))
    await store.prune("audit", 3)


async def copy(source: Transfer, target: Transfer) -> None:
    mark = Mark("m1", "arriving", "elsewhere", 5, outbox_last=await source.outbox_last())
    await target.begin(mark)
    for shelf in SHELVES:
        after: Any = ()
        while (page := await source.page(shelf, after)).rows:
            await target.put(shelf, page.rows, mark, mark)
            after = page.after
    await target.finish()


@pytest.mark.parametrize("seed", range(3))
def test_a_store_goes_there_and_back_and_is_the_same(tmp_path: Path, dsn: str, seed: int) -> None:
    async def play() -> None:
        store = await SqliteStore.open(tmp_path / "a.db", payload_max=200)
        await fill(store, Random(seed))
        letters = [row.run for row in await store.outbox(0, parked=True)]
        last = (await store.outbox(0, limit=1_000))[-1].id
        await store.close()
        one = await SqliteTransfer.open(tmp_path / "a.db", create=False)
        two = await PostgresTransfer.open(dsn, shards=8, create=True)
        three = await SqliteTransfer.open(tmp_path / "b.db", create=True)
        before = await dump(one)
        assert {shelf for shelf, rows in before.items() if rows} == set(SHELVES), "something of everything"
        await copy(one, two)
        assert await dump(two) == before
        assert await two.counts() == await one.counts()
        await copy(two, three)
        assert await dump(three) == before
        assert await one.outbox_last() == await two.outbox_last() == await three.outbox_last()
        for end in (one, two, three):
            await end.close()
        await _answers_alike(tmp_path, dsn, letters, last)

    asyncio.run(play())


async def _answers_alike(tmp_path: Path, dsn: str, letters: list[RunId], last: int) -> None:
    stores: list[Any] = [await SqliteStore.open(tmp_path / name) for name in ("a.db", "b.db")]
    moved = await PostgresStore.open(dsn)
    stores.append(moved)
    assert moved.shards == 8, "settled by whoever came first"
    runs = await stores[0].find_runs(RunQuery())
    for store in reversed(stores):
        everywhere = list(range(store.shards))
        assert await store.integrity() == []
        assert sorted(row.run for row in await store.outbox(everywhere, parked=True)) == sorted(letters)
        assert await store.find_runs(RunQuery()) == runs
        assert await store.find_runs(RunQuery(tag="t1")) == await stores[0].find_runs(RunQuery(tag="t1"))
        key = RunQuery(workflow="w", idempotency_key="key\x0012")
        assert [row.run for row in await store.find_runs(key)] == [RunId("Ärger \0 12 ' \1")]
        for of_item in (RunQuery(workflow="w", idempotency_key="of an item \x007"), RunQuery(item=RunId("item \x007"))):
            assert [row.run for row in await store.find_runs(of_item)] == ["run-7"]
        for run in (RUN, RunId("run-7"), RunId("Ärger \0 12 ' \1")):
            assert await store.history(run) == await stores[0].history(run)
            assert await store.find_gates(GateQuery(run=run)) == await stores[0].find_gates(GateQuery(run=run))
        assert await store.find_entities(EntityQuery()) == await stores[0].find_entities(EntityQuery())
        assert await store.conversion("w", 0) == await stores[0].conversion("w", 0)
        assert len(await store.timers(everywhere)) == len(await stores[0].timers(0))
        assert [request.id for request in await store.inbox(everywhere)] == [
            request.id for request in await stores[0].inbox(0)
        ]
        assert (await store.verify_log("audit")).ok
        assert (await store.verify_log("audit")).checked == 17
        assert await store.entries("audit") == await stores[0].entries("audit")
        assert await store.note("note \0" + "7") == Note("note \0" + "7", {"n": 7}, 7)
        fence = await fence_of(store, RUN)
        (row,) = await store.commit(begin(RUN, f.RunTask(TOKEN, 1, "a", {})), fence)
        assert row.id > last, "no number is given twice"
    for store in stores:
        known = {entry.id for entry in await store.entries("delivery:hook")}
        (made,) = (await store.write(Changes(entries=[Entry("delivery:hook", "h", 1, 1)]))).entries
        assert made.id not in known
        assert (await store.write(Changes(entries=[Entry("audit", "h", 1, 1)]))).entries[0].id == 21
    for store in stores:
        await store.close()


def test_queue_work_of_workers_becomes_rows_of_the_outbox(tmp_path: Path, dsn: str) -> None:
    offer = f.OfferWork(TOKEN, 1, "a", {"big": "x" * 5_000}, "gpu", "w", "w", 1, "a")

    async def play() -> None:
        store = await PostgresStore.open(dsn, shards=4, payload_max=200)
        await store.commit(begin(RUN, offer, f.RunTask(TokenId(2), 1, "b", {})), await fence_of(store, RUN))
        await store.close()
        one = await PostgresTransfer.open(dsn, shards=1, create=False)
        two = await SqliteTransfer.open(tmp_path / "a.db", create=True)
        before = await dump(one)
        await copy(one, two)
        assert await dump(two) == before
        await one.close()
        await two.close()
        moved = await SqliteStore.open(tmp_path / "a.db")
        assert offer.task() in [row.effect for row in await moved.outbox(0)]
        assert len(await moved.outbox(0)) == 2
        await moved.close()

    asyncio.run(play())


def test_a_wish_for_another_try_still_means_its_dead_letter(tmp_path: Path, dsn: str) -> None:
    async def play() -> None:
        store = await SqliteStore.open(tmp_path / "a.db")
        fence = await fence_of(store, RUN)
        (row,) = await store.commit(begin(RUN, f.RunTask(TOKEN, 1, "a", {})), fence)
        await store.commit(Batch(parked=[(row.id, "lost")]), fence)
        await store.submit(InboxRequest("q", RUN, None, 1, revive=row.id))
        await store.close()
        one = await SqliteTransfer.open(tmp_path / "a.db", create=False)
        two = await PostgresTransfer.open(dsn, shards=8, create=True)
        await copy(one, two)
        await one.close()
        await two.close()
        moved = await PostgresStore.open(dsn)
        (letter,) = await moved.outbox(range(8), parked=True)
        (request,) = await moved.inbox(range(8))
        assert request.revive == letter.id
        await moved.close()

    asyncio.run(play())
