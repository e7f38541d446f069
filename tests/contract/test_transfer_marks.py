"""A store that takes part in a move says so: what it refuses, to whom, and in which words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.contract.making import RUN, begin, commit
from treadle.errors import OwnedElsewhere, StoreConflict, StorePlaceError, StoreUnavailable
from treadle.model import commands as c
from treadle.model import events as e
from treadle.store.members import Member
from treadle.store.port import Batch, InboxRequest
from treadle.store.postgres import PostgresStore
from treadle.store.postgres.transfer import PostgresTransfer
from treadle.store.rows import shard_of
from treadle.store.sqlite import SqliteStore
from treadle.store.sqlite.transfer import SqliteTransfer
from treadle.store.transfer import Mark

ARRIVING = Mark("m1", "arriving", "elsewhere", 5)


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


async def _ends(kind: str, tmp_path: Path, dsn: str) -> tuple[Any, Any]:
    """A store with somebody at it, and an end of a move at the same place."""
    if kind == "sqlite":
        store: Any = await SqliteStore.open(tmp_path / "a.db")
        return store, await SqliteTransfer.open(tmp_path / "a.db", create=False)
    return await PostgresStore.open(dsn, shards=4), await PostgresTransfer.open(dsn, shards=4, create=True)


async def _opened(kind: str, tmp_path: Path, dsn: str, **options: Any) -> Any:
    if kind == "sqlite":
        return await SqliteStore.open(tmp_path / "a.db", **options)
    return await PostgresStore.open(dsn, **options)


def test_a_sealed_store_takes_nothing_from_anybody_and_says_why(kind: str, tmp_path: Path, dsn: str) -> None:
    async def play() -> None:
        store, end = await _ends(kind, tmp_path, dsn)
        fence = await store.lease(shard_of(RUN, store.shards), "a", 0, 100)
        await store.commit(begin(RUN), fence)
        await store.release(fence)
        await end.take(False)
        await end.seal(Mark("m2", "leaving", "postgresql://there/db", 5))
        refused = (
            store.submit(InboxRequest("q", RUN, c.PauseRun(), 1)),
            store.put_document("workflow", "w", "h", {}),
            store.put_blob(RUN, b"x"),
            store.lease(0, "b", 10**15, 100),
        )
        for verb in refused:
            with pytest.raises(StoreUnavailable, match="moved") as told:
                await verb
            assert told.value.final
        with pytest.raises((StoreConflict, StoreUnavailable)):
            await store.commit(Batch([commit(1, e.RunPaused(2, 3, "me"), run=RUN)]), fence)
        with pytest.raises(StorePlaceError, match="being moved to postgresql://there/db"):
            await _opened(kind, tmp_path, dsn)
        reading = await _opened(kind, tmp_path, dsn, read_only=True)
        assert len(await reading.history(RUN)) == 1
        await reading.close()
        await end.unseal()
        assert await store.submit(InboxRequest("q", RUN, c.PauseRun(), 1)) is None
        assert await end.mark() is None
        await end.close()
        await store.close()

    asyncio.run(play())


def test_an_incomplete_store_is_not_opened_and_belongs_to_one_move(kind: str, tmp_path: Path, dsn: str) -> None:
    row = ("r1", "w", 1, "running", False, 1, 0, 0, None, None, None, None)

    async def play() -> None:
        store, end = await _ends(kind, tmp_path, dsn)
        await store.put_document("_remembered", "x", "h", 1)
        assert await end.is_empty(), "what an engine remembers by itself is nobody's work"
        await store.close()
        await end.begin(ARRIVING)
        further = Mark("m1", "arriving", "elsewhere", 5, "runs", (1,))
        await end.put("runs", [row], ARRIVING, further)
        with pytest.raises(StoreConflict, match="another move"):
            await end.put("runs", [row], ARRIVING, further)
        assert await end.mark() == further
        assert (await end.counts())["runs"] == 1
        with pytest.raises(StorePlaceError, match="incomplete: a move from elsewhere"):
            await _opened(kind, tmp_path, dsn)
        assert not await end.is_empty()
        await end.begin(ARRIVING)
        assert await end.is_empty()
        await end.finish()
        await (await _opened(kind, tmp_path, dsn)).close()
        await end.close()

    asyncio.run(play())


def test_rows_that_do_not_fit_are_refused_in_words(kind: str, tmp_path: Path, dsn: str) -> None:
    async def play() -> None:
        store, end = await _ends(kind, tmp_path, dsn)
        await store.close()
        await end.begin(ARRIVING)
        row = ("w", "n", 1, "h", None)
        with pytest.raises(StorePlaceError, match="do not fit"):
            await end.put("documents", [row, row], ARRIVING, ARRIVING)
        assert (await end.counts())["documents"] == 0
        await end.close()

    asyncio.run(play())


def test_whoever_is_at_work_on_a_database_is_named(dsn: str) -> None:
    async def play() -> None:
        store, end = await _ends("postgres", Path(), dsn)
        await store.beat(Member("o1", "host:7"), 60_000)
        assert await store.lease(1, "o1", None, 60_000) is not None
        for verb in (end.take(False), end.seal(ARRIVING), end.begin(ARRIVING)):
            with pytest.raises(OwnedElsewhere, match=r"node host:7 \(1 shards\)"):
                await verb
        assert await end.mark() is None
        await end.close()
        await store.close()

    asyncio.run(play())
