"""A step that comes alone has a statement of its own: it writes and refuses what a shared one does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from tests.contract.making import begin, commit, on_postgres
from tests.postgres import Database
from treadle.errors import StoreConflict
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.store.port import Batch
from treadle.store.postgres import batches
from treadle.store.postgres.queries import SQL

ALONE, SHARED, BESIDE = RunId("alone\0\1"), RunId("shared\0\1"), RunId("beside")


@pytest.fixture
def store(database: Database, runner: asyncio.Runner) -> Iterator[Any]:
    yield from on_postgres(database, runner)


def step(run: RunId, seq: int = 1) -> Any:
    return commit(seq, e.Custom(seq + 1, 7, "x"), run=run)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements of commits."""
    seen: list[str] = []
    real = batches.Writing.__call__

    async def write(writing: batches.Writing, connection: asyncpg.Connection) -> Any:
        seen.append(writing._statement)
        return await real(writing, connection)

    monkeypatch.setattr(batches.Writing, "__call__", write)
    return seen


def test_a_step_alone_writes_what_a_shared_one_writes(
    store: Any, asked: list[str], database: Database, runner: asyncio.Runner
) -> None:
    fence = store.held()
    for run in (ALONE, SHARED, BESIDE):
        store.commit(begin(run), fence)
    store.commit(Batch([step(ALONE)]), fence)
    store.commit(Batch([step(SHARED), step(BESIDE)]), fence)
    assert [statement == SQL["step_one"] for statement in asked] == [False, False, False, True, False]
    assert store.history(ALONE)[1:] == store.history(SHARED)[1:] == [e.Custom(2, 7, "x")]

    async def rows() -> list[Any]:
        connection = await asyncpg.connect(database.dsn)
        try:
            columns = "status, busy, seq, changed, first_day, last_day"
            return await connection.fetch(f"SELECT {columns} FROM runs WHERE run <> $1 ORDER BY run", str(BESIDE))  # type: ignore[no-any-return]
        finally:
            await connection.close()

    alone, shared = runner.run(rows())
    assert alone == shared


def test_a_step_alone_is_refused_when_its_run_has_moved_on(store: Any, asked: list[str]) -> None:
    fence = store.held()
    store.commit(begin(ALONE), fence)
    store.commit(Batch([step(ALONE)]), fence)
    with pytest.raises(StoreConflict, match="is at 2, the decision saw 1") as refused:
        store.commit(Batch([step(ALONE)]), fence)
    assert refused.value.kind == "STALE_VERSION"
    assert asked[-1] == SQL["step_one"]
    assert len(store.history(ALONE)) == 2


def test_a_step_alone_is_refused_without_the_newest_lease(store: Any, asked: list[str]) -> None:
    fence = store.held()
    store.commit(begin(ALONE), fence)
    store.lease(fence.shard, "another", None, 10_000, evict=True)
    with pytest.raises(StoreConflict) as refused:
        store.commit(Batch([step(ALONE)]), fence)
    assert refused.value.kind == "LEASE_CONFLICT"
    assert refused.value.shards == (fence.shard,)
    assert asked[-1] == SQL["step_one"]
    assert len(store.history(ALONE)) == 1


def test_a_commit_is_sent_before_anybody_else_has_a_turn(
    store: Any, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the server would wait until all have run who were woken by the commit before."""
    fence = store.held()
    store.commit(begin(ALONE), fence)
    sent: list[str] = []
    real = asyncpg.Connection.fetchrow

    async def fetchrow(connection: asyncpg.Connection, question: str, *given: Any) -> Any:
        sent.append(question)
        return await real(connection, question, *given)

    monkeypatch.setattr(asyncpg.Connection, "fetchrow", fetchrow)

    async def story() -> None:
        committing = store.store.commit(Batch([step(ALONE)]), fence)
        assert sent == [SQL["step_one"]]
        assert await committing == []

    runner.run(story())
