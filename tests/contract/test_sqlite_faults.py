"""When the disk does not do what it is asked: everybody who waits learns it, and nobody is told a lie."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.contract.making import OTHER, RUN, Spoken, begin, commit, started
from treadle.errors import StoreConflict, StoreUnavailable
from treadle.model import events as e
from treadle.store.port import Batch, CommitRows, Fence
from treadle.store.sqlite import SqliteStore


class Frail(apsw.Connection):
    """A connection whose next COMMIT fails, after or before it has happened."""

    failure: apsw.Error | None = None
    after = False

    def execute(self, statements: str, *given: Any, **named: Any) -> Any:
        if statements == "COMMIT" and Frail.failure is not None:
            failure, Frail.failure = Frail.failure, None
            super().execute("COMMIT" if Frail.after else "ROLLBACK")
            raise failure
        return super().execute(statements, *given, **named)


@pytest.fixture
def frail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, runner: asyncio.Runner) -> Any:
    monkeypatch.setattr(apsw, "Connection", Frail)
    store = Spoken(runner.run(SqliteStore.open(tmp_path / "t.db")), runner)
    yield store
    store.close()


def _error(kind: type[apsw.Error], extended: int) -> apsw.Error:
    error = kind("it broke")
    error.extendedresult = extended  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize("after", [False, True])
def test_a_failed_commit_leaves_its_outcome_unknown(frail: Any, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    fence = frail.held()
    monkeypatch.setattr(Frail, "after", after)
    monkeypatch.setattr(Frail, "failure", _error(apsw.IOError, apsw.SQLITE_IOERR_WRITE))
    with pytest.raises(StoreUnavailable, match="the disk reports an error") as failed:
        frail.commit(begin(), fence)
    assert failed.value.outcome_unknown
    assert frail.runs() == ([RUN] if after else [])
    frail.commit(begin(OTHER), fence)


def test_after_a_failed_sync_the_connection_is_not_used_again(frail: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fence = frail.held()
    monkeypatch.setattr(Frail, "failure", _error(apsw.IOError, apsw.SQLITE_IOERR_FSYNC))
    with pytest.raises(StoreUnavailable) as failed:
        frail.commit(begin(), fence)
    assert failed.value.outcome_unknown
    with pytest.raises(StoreUnavailable, match="restart the engine") as refused:
        frail.commit(begin(OTHER), fence)
    assert not refused.value.outcome_unknown
    assert frail.runs() == []


def test_a_full_disk_refuses_the_write_and_goes_on_when_there_is_room(tmp_path: Path, runner: asyncio.Runner) -> None:
    made = runner.run(SqliteStore.open(tmp_path / "t.db"))
    store: Any = Spoken(made, runner)
    fence = store.held()
    writer: Any = Spoken(made._writer, runner)
    pages = writer.do(lambda db: db.pragma("page_count"))
    writer.do(lambda db: db.pragma("max_page_count", pages + 2))
    with pytest.raises(StoreUnavailable, match="the disk is full") as refused:
        store.commit(begin(input="x" * 60_000), fence)
    assert not refused.value.outcome_unknown
    assert store.runs() == []
    writer.do(lambda db: db.pragma("max_page_count", 1 << 30))
    store.commit(begin(input="x" * 60_000), fence)
    assert store.integrity() == []
    store.close()


def test_jobs_share_a_transaction_and_fail_alone(tmp_path: Path, runner: asyncio.Runner) -> None:
    async def together(store: SqliteStore, fence: Fence) -> list[Any]:
        assert store._writer is not None
        gate = threading.Event()
        waiting = asyncio.ensure_future(store._writer.do(lambda _db: gate.wait()))
        jobs = [
            store.commit(begin(), fence),
            store.commit(Batch([commit(0, started(OTHER), run=OTHER), commit(4, e.Custom(5, 0, "x"))]), fence),
            store.commit(begin(OTHER), Fence("zombie", 0, 1)),
            store._writer.do(lambda db: db.execute("INSERT INTO nowhere VALUES (1)")),
            store.commit(begin(OTHER, key="k"), fence),
            store._writer.do(lambda db: db.txn_state("main")),
        ]
        futures = [asyncio.ensure_future(job) for job in jobs]
        asyncio.get_running_loop().call_soon(gate.set)  # once all of them are in the queue
        await waiting
        return await asyncio.gather(*futures, return_exceptions=True)

    made = runner.run(SqliteStore.open(tmp_path / "t.db"))
    store: Any = Spoken(made, runner)
    outcomes = runner.run(together(made, store.held()))
    expected = [CommitRows, StoreConflict, StoreConflict, apsw.SQLError, CommitRows, int]
    assert [type(outcome) for outcome in outcomes] == expected
    assert "run r1 is at 1, the decision saw 4" in str(outcomes[1])
    assert "LEASE_CONFLICT" in str(outcomes[2])
    assert store.runs() == [RUN, OTHER]
    assert store.integrity() == []
    store.close()


def test_a_damaged_file_is_reported_as_such(tmp_path: Path, runner: asyncio.Runner) -> None:
    place = tmp_path / "t.db"
    place.write_bytes(b"this is a text, and not a short one at all" * 200)
    with pytest.raises(StoreUnavailable, match="no database"):
        runner.run(SqliteStore.open(place))


def test_whoever_stops_waiting_does_not_stop_the_commit(tmp_path: Path, runner: asyncio.Runner) -> None:
    async def impatient(store: SqliteStore, fence: Fence) -> None:
        assert store._writer is not None
        gate = threading.Event()
        waiting = asyncio.ensure_future(store._writer.do(lambda _db: gate.wait()))
        writing = asyncio.ensure_future(store.commit(begin(), fence))
        asyncio.get_running_loop().call_soon(writing.cancel)  # once it is in the queue
        asyncio.get_running_loop().call_soon(gate.set)
        await waiting

    made = runner.run(SqliteStore.open(tmp_path / "t.db"))
    store: Any = Spoken(made, runner)
    runner.run(impatient(made, store.held()))
    store.commit(Batch(), store.held())  # behind it in the queue
    assert store.runs() == [RUN]
    store.close()
