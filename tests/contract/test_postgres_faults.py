"""When the server or the way to it fails: everybody who waits learns it, and nobody is told a lie."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import pytest
from asyncpg.pool import PoolConnectionProxy

from tests.contract.making import OTHER, RUN, WORK, Spoken, begin, commit, ended, started
from tests.postgres import Database, run_all
from treadle.errors import StoreConflict, StoreUnavailable
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.store.port import Batch, Fence, RunQuery
from treadle.store.postgres import transactions
from treadle.store.postgres.queries import SQL
from treadle.store.rows import SHARD


@pytest.fixture
def store(database: Database, runner: asyncio.Runner) -> Iterator[Any]:
    made = Spoken(runner.run(database.open(payload_max=200)), runner)
    yield made
    assert made.integrity() == []
    made.close()


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[..., Any], int], list[str]]:
    """Something else happens instead of a statement, some times."""
    real = PoolConnectionProxy.execute

    def plan(statement: str, happens: Callable[..., Any], times: int = 1) -> list[str]:
        seen: list[str] = []

        async def execute(connection: Any, sql: str, *given: Any, **named: Any) -> Any:
            if sql == statement and len(seen) < times:
                seen.append(sql)
                return await happens(connection, lambda: real(connection, sql, *given, **named))
            return await real(connection, sql, *given, **named)

        monkeypatch.setattr(PoolConnectionProxy, "execute", execute)
        return seen

    return plan


def _killed(database: Database) -> Callable[..., Any]:
    async def happens(connection: Any, really: Callable[[], Any]) -> Any:
        await run_all(database.dsn, f"SELECT pg_terminate_backend({connection.get_server_pid()})")
        return await really()

    return happens


def _refused(kind: type[Exception]) -> Callable[..., Any]:
    async def happens(connection: Any, really: Callable[[], Any]) -> Any:
        raise kind("try again")

    return happens


async def _answer_lost(connection: Any, really: Callable[[], Any]) -> Any:
    await really()
    raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")


def test_a_connection_lost_before_the_commit_has_written_nothing(store: Any, trouble: Any, database: Database) -> None:
    fence = store.held()
    assert trouble(SQL["append_history"], _killed(database)) == []
    with pytest.raises(StoreUnavailable) as failed:
        store.commit(begin(), fence)
    assert not failed.value.outcome_unknown
    assert store.runs() == []
    store.commit(begin(), fence)
    assert store.runs() == [RUN]


def test_a_connection_lost_with_the_commit_leaves_its_outcome_unknown(
    store: Any, trouble: Any, database: Database
) -> None:
    fence = store.held()
    trouble("COMMIT", _killed(database))
    with pytest.raises(StoreUnavailable, match="unknown") as failed:
        store.commit(begin(), fence)
    assert failed.value.outcome_unknown
    assert store.runs() == []


def test_a_commit_whose_answer_is_lost_has_happened_and_says_unknown(store: Any, trouble: Any) -> None:
    fence = store.held()
    trouble("COMMIT", _answer_lost)
    with pytest.raises(StoreUnavailable) as failed:
        store.commit(begin(), fence)
    assert failed.value.outcome_unknown
    assert store.runs() == [RUN]
    with pytest.raises(StoreConflict, match="is at 1, the decision saw 0"):
        store.commit(begin(), fence)


def test_a_plain_step_whose_answer_is_lost_has_happened_and_says_unknown(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = store.held()
    store.commit(begin(), fence)
    real = PoolConnectionProxy.fetchval
    lost = asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    async def fetchval(connection: Any, sql: str, *given: Any) -> Any:
        await real(connection, sql, *given)
        raise lost

    step = Batch([commit(1, e.Custom(2, 1, "x"))])
    with monkeypatch.context() as patched:
        patched.setattr(PoolConnectionProxy, "fetchval", fetchval)
        with pytest.raises(StoreUnavailable) as failed:
            store.commit(step, fence)
    assert failed.value.outcome_unknown
    assert [event.seq for event in store.history(RUN)] == [1, 2]
    with pytest.raises(StoreConflict, match="run r1 is at 2, the decision saw 1"):
        store.commit(step, fence)


@pytest.mark.parametrize("statement", ["append_history", "COMMIT"])
@pytest.mark.parametrize("kind", [asyncpg.SerializationError, asyncpg.DeadlockDetectedError])
def test_what_the_server_wants_tried_again_is_tried_again(
    store: Any, trouble: Any, kind: type[Exception], statement: str
) -> None:
    fence = store.held()
    tried = trouble(SQL.get(statement, statement), _refused(kind), 3)
    (row,) = store.commit(begin(RUN, WORK), fence)
    assert len(tried) == 3
    assert store.outbox(SHARD) == [row]
    assert [event.seq for event in store.history(RUN)] == [1]


def test_conflicts_without_end_are_reported(store: Any, trouble: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "PAUSE_S", 0)
    fence = store.held()
    tried = trouble(SQL["append_history"], _refused(asyncpg.SerializationError), 1_000)
    with pytest.raises(StoreUnavailable, match="refused 10 times: try again") as failed:
        store.commit(begin(), fence)
    assert not failed.value.outcome_unknown
    assert len(tried) == transactions.TRIES


def test_a_closed_store_says_so(database: Database, runner: asyncio.Runner) -> None:
    made: Any = Spoken(runner.run(database.open(payload_max=200)), runner)
    made.close()
    for ask in (lambda: made.history(RUN), lambda: made.put_blob(RUN, b"x")):
        with pytest.raises(StoreUnavailable, match="closed"):
            ask()


def test_an_heir_waits_for_the_commit_under_way_and_then_fences_it_off(
    store: Any, trouble: Any, runner: asyncio.Runner
) -> None:
    fence = store.held()
    order: list[str] = []

    async def both() -> Fence | None:
        reached, go = asyncio.Event(), asyncio.Event()

        async def pause(connection: Any, really: Callable[[], Any]) -> Any:
            reached.set()
            await go.wait()
            order.append("committed")
            return await really()

        trouble("COMMIT", pause)
        committing = asyncio.create_task(store.store.commit(begin(), fence))
        await reached.wait()

        async def inherit() -> Fence | None:
            heir = await store.store.lease(SHARD, "b", 1_000, 100)
            order.append("inherited")
            return heir

        inheriting = asyncio.create_task(inherit())
        assert await store.store.find_runs(RunQuery()) == [], "readers do not wait"
        go.set()
        await committing
        return await inheriting

    heir = runner.run(both())
    assert heir is not None and heir.epoch == 2
    assert order == ["committed", "inherited"]
    with pytest.raises(StoreConflict):
        store.commit(begin(OTHER), fence)


def test_who_gives_up_waiting_leaves_nothing_behind(store: Any, trouble: Any, runner: asyncio.Runner) -> None:
    fence = store.held()

    async def cancelled(connection: Any, really: Callable[[], Any]) -> Any:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return await really()

    async def give_up() -> None:
        for _ in range(6):  # more than there are connections
            trouble(SQL["append_history"], cancelled)
            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(store.store.commit(begin(), fence))

    runner.run(give_up())
    assert store.runs() == []
    store.commit(begin(), fence)


def test_a_process_that_stands_still_in_a_transaction_loses_it(
    store: Any, trouble: Any, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = store.held()
    monkeypatch.setattr(transactions, "BEGIN", "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 50")

    async def still() -> Fence | None:
        reached, go = asyncio.Event(), asyncio.Event()

        async def pause(connection: Any, really: Callable[[], Any]) -> Any:
            reached.set()
            await go.wait()
            return await really()

        trouble(SQL["append_history"], pause)
        zombie = asyncio.create_task(store.store.commit(begin(), fence))
        await reached.wait()
        heir: Fence | None = await store.store.lease(SHARD, "b", 1_000, 100)
        go.set()
        with pytest.raises(StoreUnavailable) as failed:
            await zombie
        assert not failed.value.outcome_unknown
        return heir

    heir = runner.run(still())
    assert heir is not None
    assert store.runs() == []
    store.commit(begin(), heir)


def test_texts_people_write_come_back_even_with_a_nul_in_them(store: Any) -> None:
    fence = store.held()
    odd = ["a\0b", "a\1\2b", "\1\1", "\0\0\1", "→\u0002"]
    for i, text in enumerate(odd):
        store.commit(begin(RunId(f"r{i}"), entity=text, tags=(text,), key=text), fence)
    for i, text in enumerate(odd):
        (row,) = store.find_runs(RunQuery(entity=text))
        assert (row.run, row.entity, row.tags, row.idempotency_key) == (f"r{i}", text, (text,), text)
        assert store.runs(tag=text) == store.runs(workflow="w", idempotency_key=text) == [f"r{i}"]


def test_a_doctor_learns_what_it_runs_on(store: Any) -> None:
    facts = store.facts()
    assert facts["shards"] == 1
    assert facts["schema_version"] == 1
    assert int(facts["server_version"].split(".")[0]) >= 14
    assert facts["bytes"] > 0


def test_damage_is_found(store: Any, database: Database, runner: asyncio.Runner) -> None:
    fence = store.held()
    store.commit(ended(), fence)
    store.commit(Batch([commit(0, started(OTHER), e.Custom(2, 1, "x"), run=OTHER)]), fence)
    runner.run(run_all(database.dsn, "UPDATE runs SET seq = 7 WHERE run = 'r1'", "DELETE FROM runs WHERE run = 'r2'"))
    assert store.integrity() == [
        "run r1 is at 7, its history ends at 2",
        "a row of history is of the run r2, which does not exist",
    ]
    runner.run(run_all(database.dsn, "TRUNCATE runs, history"))
