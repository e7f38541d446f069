"""When the server or the way to it fails: everybody who waits learns it, and nobody is told a lie."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from tests.contract.making import OTHER, RUN, WORK, Spoken, begin, commit, ended, on_postgres, started
from tests.postgres import Database, run_all
from treadle.errors import StoreConflict, StoreUnavailable
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import Batch, Fence, RunQuery
from treadle.store.postgres import transactions
from treadle.store.postgres.connect import migrations
from treadle.store.rows import SHARD


@pytest.fixture
def store(database: Database, runner: asyncio.Runner) -> Iterator[Any]:
    yield from on_postgres(database, runner)


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Something else happens instead of a statement that looks like this, some times."""
    real = {verb: getattr(asyncpg.Connection, verb) for verb in ("execute", "fetch", "fetchrow", "fetchval")}

    def plan(word: str, happens: Callable[..., Any], times: int = 1) -> list[str]:
        seen: list[str] = []

        def troubled(verb: str) -> Callable[..., Any]:
            async def ask(connection: Any, sql: str, *given: Any, **named: Any) -> Any:
                if re.search(word, sql) and len(seen) < times:
                    seen.append(sql)
                    return await happens(connection, lambda: real[verb](connection, sql, *given, **named))
                return await real[verb](connection, sql, *given, **named)

            return ask

        for verb in real:
            monkeypatch.setattr(asyncpg.Connection, verb, troubled(verb))
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


A_COMMIT = r"append_history AS"
THE_END = "^COMMIT$"
A_TRANSACTION = "^DELETE FROM runs"
"""A statement of `forget`, which takes several."""


def test_a_connection_lost_inside_a_transaction_has_written_nothing(
    store: Any, trouble: Any, database: Database
) -> None:
    fence = store.held()
    store.commit(ended(), fence)
    trouble(A_TRANSACTION, _killed(database))
    with pytest.raises(StoreUnavailable) as failed:
        store.forget([RUN], fence)
    assert not failed.value.outcome_unknown
    assert len(store.history(RUN)) == 2
    store.forget([RUN], fence)
    assert store.runs() == []


@pytest.mark.parametrize("word", [THE_END, A_COMMIT])
def test_a_connection_lost_with_the_commit_leaves_its_outcome_unknown(
    store: Any, trouble: Any, database: Database, word: str
) -> None:
    fence = store.held()
    if word == THE_END:
        store.commit(ended(), fence)
    trouble(word, _killed(database))
    with pytest.raises(StoreUnavailable, match="unknown") as failed:
        store.forget([RUN], fence) if word == THE_END else store.commit(begin(), fence)
    assert failed.value.outcome_unknown
    assert store.runs() == ([RUN] if word == THE_END else [])


@pytest.mark.parametrize("seq", [0, 1])
def test_a_commit_whose_answer_is_lost_has_happened_and_says_unknown(store: Any, trouble: Any, seq: int) -> None:
    fence = store.held()
    if seq:
        store.commit(begin(), fence)
    batch = Batch([commit(1, e.Custom(2, 1, "x"))]) if seq else begin()
    trouble(A_COMMIT, _answer_lost)
    with pytest.raises(StoreUnavailable) as failed:
        store.commit(batch, fence)
    assert failed.value.outcome_unknown
    assert len(store.history(RUN)) == seq + 1
    with pytest.raises(StoreConflict, match=f"is at {seq + 1}, the decision saw {seq}"):
        store.commit(batch, fence)


def test_what_the_server_refuses_has_surely_not_happened(store: Any, trouble: Any, database: Database) -> None:
    fence = store.held()
    trouble(A_COMMIT, _refused(asyncpg.DiskFullError))
    with pytest.raises(StoreUnavailable, match="disk is full") as failed:
        store.commit(begin(), fence)
    assert not failed.value.outcome_unknown


@pytest.mark.parametrize("kind", [asyncpg.SerializationError, asyncpg.DeadlockDetectedError])
def test_what_the_server_wants_tried_again_is_tried_again(store: Any, trouble: Any, kind: type[Exception]) -> None:
    fence = store.held()
    tried = trouble(A_COMMIT, _refused(kind), 3)
    (row,) = store.commit(begin(RUN, WORK), fence)
    assert len(tried) == 3
    assert store.outbox(SHARD) == [row]
    assert [event.seq for event in store.history(RUN)] == [1]
    store.commit(Batch([commit(1, e.RunCompleted(2, 2, {}), status=RunStatus.COMPLETED)]), fence)
    tried = trouble(THE_END, _refused(kind), 3)
    store.forget([RUN], fence)
    assert (len(tried), store.runs()) == (3, [])


def test_conflicts_without_end_are_reported(store: Any, trouble: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "PAUSE_S", 0)
    fence = store.held()
    tried = trouble(A_COMMIT, _refused(asyncpg.SerializationError), 1_000)
    with pytest.raises(StoreUnavailable, match="refused 10 times: try again") as failed:
        store.commit(begin(), fence)
    assert not failed.value.outcome_unknown
    assert len(tried) == transactions.TRIES


def test_a_closed_store_says_so(database: Database, runner: asyncio.Runner) -> None:
    made: Any = Spoken(runner.run(database.open(payload_max=200)), runner)
    made.close()
    for ask in (lambda: made.history(RUN), lambda: made.put_blob(RUN, b"x")):
        with pytest.raises(StoreUnavailable, match="closed"):
            ask()  # type: ignore[no-untyped-call]


def test_a_process_that_stands_still_in_a_transaction_loses_it(
    store: Any, trouble: Any, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = store.held()
    store.commit(ended(), fence)
    monkeypatch.setattr(transactions, "BEGIN", "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 50")

    async def still() -> Fence | None:
        reached, go = asyncio.Event(), asyncio.Event()

        async def pause(connection: Any, really: Callable[[], Any]) -> Any:
            reached.set()
            await go.wait()
            return await really()

        trouble(A_TRANSACTION, pause)
        zombie = asyncio.create_task(store.store.forget([RUN], fence))
        # On a busy machine it may lose its transaction before it gets there.
        await asyncio.wait({zombie, asyncio.create_task(reached.wait())}, return_when=asyncio.FIRST_COMPLETED)
        heir: Fence | None = await store.store.lease(SHARD, "b", 1_000, 100)
        go.set()
        with pytest.raises(StoreUnavailable) as failed:
            await zombie
        assert not failed.value.outcome_unknown
        return heir

    heir = runner.run(still())
    assert heir is not None
    assert store.runs() == [RUN]
    store.commit(begin(OTHER), heir)


def test_texts_people_write_come_back_even_with_a_nul_in_them(store: Any) -> None:
    fence = store.held()
    odd = ["a\0b", "a\1\2b", "\1\1", "\0\0\1", "→\u0002"]
    for i, text in enumerate(odd):
        store.commit(begin(RunId(f"r{i}"), entity=text, tags=(text,), key=text), fence)
    for i, text in enumerate(odd):
        (row,) = store.find_runs(RunQuery(entity=f"order/{text}"))
        assert (row.run, row.entity, row.tags, row.idempotency_key) == (f"r{i}", f"order/{text}", (text,), text)
        assert store.runs(tag=text) == store.runs(workflow="w", idempotency_key=text) == [f"r{i}"]


def test_a_doctor_learns_what_it_runs_on(store: Any) -> None:
    facts = store.facts()
    assert facts["shards"] == 1
    assert facts["schema_version"] == migrations()[-1][0]
    assert int(facts["server_version"].split(".")[0]) >= 14
    assert facts["bytes"] > 0
    assert facts["partitions"] == 1
    assert facts["day"] <= datetime.now(UTC).date().isoformat()


def test_damage_is_found(store: Any, database: Database, runner: asyncio.Runner) -> None:
    fence = store.held()
    store.commit(ended(), fence)
    store.commit(Batch([commit(0, started(OTHER), e.Custom(2, 1, "x"), run=OTHER)]), fence)
    third = RunId("r3")
    store.commit(begin(third, WORK, key="k"), fence)
    runner.run(
        run_all(
            database.dsn,
            "UPDATE runs SET seq = 7 WHERE run = 'r1'",
            "DELETE FROM runs WHERE run = 'r2'",
            "UPDATE run_keys SET run = 'r1'",
            "UPDATE outbox SET shard = 5",
            "INSERT INTO history SELECT run, seq, block, day - 1 FROM history WHERE run = 'r3'",
            "UPDATE runs SET shard = 6, first_day = first_day - 1 WHERE run = 'r3'",
        )
    )
    assert store.integrity() == [
        "run r1 is at 7, its history ends at 2",
        "run r3 has two blocks that end at 1",
        "run r3 has the idempotency key 'k', which does not lead to it",
        "a row of outbox is of the run r3, and filed under another shard",
        "a row of history is of the run r2, which does not exist",
        "run r3 is filed under shard 6, and belongs to 0",
    ]
    runner.run(run_all(database.dsn, "TRUNCATE runs, run_keys, outbox, history"))
