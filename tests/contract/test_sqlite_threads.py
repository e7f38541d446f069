"""Who writes on which thread: brief work of a lone caller on its own, the rest on the writer's (decision 0009)."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.contract.making import OTHER, RUN, begin
from treadle.model.ids import RunId
from treadle.store.port import Batch, Commit, Fence
from treadle.store.sqlite import SqliteStore
from treadle.store.sqlite import threads as t
from treadle.store.sqlite.store import BRIEF


class Watched(apsw.Connection):
    """Notes which thread commits."""

    threads: list[str] = []

    def execute(self, statements: str, *given: Any, **named: Any) -> Any:
        if statements == "COMMIT":
            self.threads.append(threading.current_thread().name)
        return super().execute(statements, *given, **named)


@pytest.fixture
def committed_on(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(apsw, "Connection", Watched)
    monkeypatch.setattr(Watched, "threads", [])
    return Watched.threads


async def held(path: Path) -> tuple[SqliteStore, Fence]:
    store = await SqliteStore.open(path)
    fence = await store.lease(0, "a", 0, 100)
    assert fence is not None
    Watched.threads.clear()
    return store, fence


def test_a_lone_step_is_durable_when_the_call_returns(tmp_path: Path, committed_on: list[str]) -> None:
    async def whole() -> None:
        store, fence = await held(tmp_path / "t.db")
        written = asyncio.ensure_future(store.commit(begin(), fence))
        assert written.done()
        assert committed_on == ["MainThread"]
        assert await store.history(RUN)
        await store.close()

    asyncio.run(whole())


def test_whoever_finds_the_writer_at_work_waits_in_line(tmp_path: Path, committed_on: list[str]) -> None:
    async def whole() -> None:
        store, fence = await held(tmp_path / "t.db")
        assert store._writer is not None
        gate = threading.Event()
        before = store._writer.do(lambda _db: gate.wait())
        written = asyncio.ensure_future(store.commit(begin(), fence))
        assert not written.done()
        gate.set()
        await asyncio.gather(before, written)
        assert set(committed_on) == {"treadle-writer"}
        await store.close()

    asyncio.run(whole())


def test_a_crowd_leaves_the_loop_free(tmp_path: Path, committed_on: list[str]) -> None:
    async def whole() -> None:
        store, fence = await held(tmp_path / "t.db")
        crowd: list[Commit] = [commit for n in range(BRIEF + 1) for commit in begin(RunId(f"run-{n}")).commits]
        written = asyncio.ensure_future(store.commit(Batch(crowd), fence))
        assert not written.done()
        await written
        assert committed_on == ["treadle-writer"]
        await store.close()

    asyncio.run(whole())


def test_a_slow_disk_is_not_waited_for_on_the_loop(
    tmp_path: Path, committed_on: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def whole() -> None:
        store, fence = await held(tmp_path / "t.db")
        monkeypatch.setattr(t, "QUICK_S", 0.0)  # no disk is as quick as that
        await store.commit(begin(), fence)
        monkeypatch.setattr(t, "QUICK_S", 60.0)
        await store.commit(begin(OTHER), fence)
        assert committed_on == ["treadle-writer", "MainThread"]
        await store.close()

    asyncio.run(whole())


def test_the_log_is_carried_over_by_the_thread_after_the_commit(
    tmp_path: Path, committed_on: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_on: list[str] = []
    carry_over = t.carry_over

    def carried(connection: apsw.Connection) -> None:
        carried_on.append(threading.current_thread().name)
        carry_over(connection)

    monkeypatch.setattr(t, "carry_over", carried)

    async def whole() -> None:
        store, fence = await held(tmp_path / "t.db")
        monkeypatch.setattr(t, "WAL_PAGES", 1)
        await store.commit(begin(), fence)
        await store.close()  # when the thread has done what it was asked
        assert (committed_on, carried_on) == (["MainThread"], ["treadle-writer"])

    asyncio.run(whole())
