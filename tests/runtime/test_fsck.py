"""`fsck` agrees with every sound store, and finds each way in which rows and histories can disagree."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.postgres import new_database
from tests.runtime.cores import running
from tests.runtime.executing import VirtualClock, on_loop
from treadle.language import load_text
from treadle.model.states import RunStatus
from treadle.runtime.engine import Engine
from treadle.runtime.operate import fsck
from treadle.runtime.operate.fsck import Report
from treadle.runtime.operate.moving import move
from treadle.runtime.operate.upkeep import back_up, check_everything, examine
from treadle.store.port import RunQuery, RunRow
from treadle.store.sqlite import SqliteStore
from treadle.testing.world.postgres import run_all

WAITING = """\
workflow: waiting
nodes:
  begin: {}
  ask: {action: {kind: human, title: Yes?, due_ms: 600000}}
  nap: {action: {kind: wait, ms: 600000}}
transitions: [{from: begin, to: ask}, {from: begin, to: nap}]
"""
QUICK = "workflow: quick\noutput: {x: 1}\nnodes: {only: {action: {kind: set, values: {a: 1}}}}\n"


async def _fill(place: Path) -> None:
    async with Engine(place) as engine:
        ended = await engine.start(load_text(QUICK, "quick").require(), {})
        await ended.wait(30)
        paused = await engine.start(load_text(WAITING, "waiting").require(), {})
        await engine.start("waiting", {}, entity="order/o-1")
        await paused.pause("look")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an ended, a waiting and a paused run."""
    place = tmp_path_factory.mktemp("sound") / "treadle.db"
    asyncio.run(_fill(place))
    return place


@pytest.fixture
def place(sound: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil."""
    asyncio.run(back_up(sound, tmp_path / "copy.db"))
    return tmp_path / "copy.db"


def spoil(place: Path, statement: str) -> None:
    connection = apsw.Connection(str(place))
    connection.execute(statement)
    assert connection.changes() > 0, "nothing was spoilt"
    connection.close()


def checked(place: Path) -> Report:
    return asyncio.run(check_everything(place))


def test_a_sound_store_has_no_findings_and_everything_was_looked_at(sound: Path) -> None:
    seen: list[int] = []
    report = asyncio.run(check_everything(sound, seen.append))
    assert report.findings == []
    assert (report.runs, seen[-1]) == (3, 3)
    assert report.events > 20
    assert report.gates == 2


@pytest.mark.parametrize(
    ("statement", "check", "words"),
    [
        ("UPDATE runs SET status = 'failed' WHERE workflow = 'quick'", "row", "status"),
        ("UPDATE runs SET started = started + 1 WHERE workflow = 'quick'", "row", "started"),
        ("UPDATE runs SET idempotency_key = 'x' WHERE workflow = 'quick'", "row", "idempotency_key"),
        ("UPDATE runs SET version = 9 WHERE workflow = 'quick'", "row", "its row says version 9, its history 1"),
        ("DELETE FROM gates", "gate", "has no row"),
        ("UPDATE gates SET token = 77", "gate", "which has none open"),
        ("UPDATE gates SET claimed_by = 'eve'", "gate", "claimed_by None, its row says 'eve'"),
        ("UPDATE gates SET answered = 3", "gate", "answered 0, its row says 3"),
        ("DELETE FROM timers", "timer", "has no row"),
        ("UPDATE timers SET due = due + 1", "timer", "its row says"),
        ("UPDATE timers SET timer = timer + 50", "timer", "unknown to the run"),
        ("UPDATE moves SET reason = 'x'", "move", "its journey says"),
        ("INSERT INTO batch_items SELECT 's', id, 'quick', 'k' FROM runs LIMIT 1", "item", "its history has none"),
        ("UPDATE positions SET at = at - 1", "file", "is not its last move there"),
        ("DELETE FROM moves WHERE event = 'arrived'", "file", "is not its last move there"),
        ("UPDATE runs SET seq = seq + 1 WHERE workflow = 'quick'", "file", "its history ends at"),
        ("UPDATE history SET block = x'92'", "replay", "cannot be read: "),
        ("UPDATE history SET block = x'c1'", "checksum", "its checksum does not match"),
        ("UPDATE history SET block = x'78ff'", "replay", "cannot be read: a compressed block is damaged"),
    ],
)
def test_what_does_not_agree_is_found(place: Path, statement: str, check: str, words: str) -> None:
    spoil(place, statement)
    report = checked(place)
    assert not report.ok
    assert any(finding.check == check and words in finding.message for finding in report.findings), report.findings


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE history SET block = x'c1' WHERE seq = (SELECT max(seq) FROM history)",
        "UPDATE documents SET body = x'c1' WHERE name = 'quick'",
    ],
)
def test_each_damage_is_told_once_also_where_the_store_is_named_by_a_relative_path(
    place: Path, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(place, statement)
    monkeypatch.chdir(place.parent)
    [told] = [one for one in checked(Path(place.name)).findings if one.check == "checksum"]
    assert "its checksum does not match" in told.message


@pytest.mark.parametrize(
    ("statement", "check", "words"),
    [
        ("UPDATE runs SET status = 'failed' WHERE workflow = 'quick'", "row", "status"),
        ("DELETE FROM gates", "gate", "has no row"),
        ("DELETE FROM timers WHERE run IN (SELECT run FROM runs WHERE status = 'paused')", "timer", "has no row"),
        ("UPDATE timers SET timer = timer + 50", "timer", "unknown to the run"),
        ("INSERT INTO batch_items SELECT 's', run, 'quick', NULL FROM runs LIMIT 1", "item", "its history has none"),
        ("INSERT INTO batch_items SELECT 's', run, 'quick', 'k' FROM runs LIMIT 1", "file", "does not lead to it"),
        ("INSERT INTO batch_items VALUES ('s', 'gone', 'quick', NULL)", "file", "which does not exist"),
        ("UPDATE moves SET reason = 'x'", "move", "its journey says"),
        ("UPDATE positions SET at = at - 1", "file", "is not its last move there"),
        ("DELETE FROM moves WHERE event = 'arrived'", "file", "is not its last move there"),
        ("DELETE FROM history WHERE seq = (SELECT min(seq) FROM history)", "gap", "does not begin with"),
        ("UPDATE runs SET seq = seq + 1 WHERE workflow = 'quick'", "file", "its history ends at"),
        ("DELETE FROM runs WHERE workflow = 'quick'", "file", "which does not exist"),
        (r"UPDATE history SET block = '\x78ff'", "replay", "cannot be read: a compressed block is damaged"),
    ],
)
def test_what_does_not_agree_in_a_database_is_found(place: Path, statement: str, check: str, words: str) -> None:
    with new_database() as dsn:
        asyncio.run(move(place, dsn))
        whole = asyncio.run(check_everything(dsn))
        assert (whole.findings, whole.runs, whole.gates) == ([], 3, 2)
        asyncio.run(run_all(dsn, statement))
        report = asyncio.run(check_everything(dsn))
    assert any(finding.check == check and words in finding.message for finding in report.findings), report.findings


def test_what_is_in_memory_does_not_grow_with_the_store(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    beside = SqliteStore.beside

    async def counted(self: SqliteStore, runs: Any) -> Any:
        asked.append(len(runs))
        return await beside(self, runs)

    monkeypatch.setattr(SqliteStore, "beside", counted)
    monkeypatch.setattr(fsck, "PAGE", 2)
    assert checked(sound).runs == 3
    assert asked == [2, 1]


def test_runs_that_are_started_meanwhile_do_not_keep_it_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        async with Engine(tmp_path / "t.db") as engine:
            await (await engine.start(load_text(QUICK, "quick").require(), {})).wait(30)
            store = await SqliteStore.open(tmp_path / "t.db")
            find = store.find_runs

            async def find_and_start(query: Any) -> Any:
                await (await engine.start("quick", {})).wait(30)
                return await find(query)

            store.find_runs = find_and_start  # type: ignore[method-assign]
            monkeypatch.setattr(fsck, "PAGE", 1)
            report = await fsck.check_store(store)
            assert report.findings == []
            assert 1 <= report.runs <= 4
            await store.close()

    asyncio.run(asyncio.wait_for(play(), 60))


def test_a_run_that_is_forgotten_meanwhile_does_not_end_it_too_early(
    sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = SqliteStore.find_runs
    gone: set[str] = set()

    async def found(self: SqliteStore, query: Any) -> Any:
        if query.after in gone or query.run in gone:
            return []
        rows = await find(self, query)
        if len(rows) == fsck.PAGE and not gone and not query.newest_first:
            gone.add(rows[-1].run)
        return rows

    monkeypatch.setattr(SqliteStore, "find_runs", found)
    monkeypatch.setattr(fsck, "PAGE", 2)
    assert checked(sound).runs == 3


def test_a_missing_piece_of_history_is_found(place: Path) -> None:
    spoil(place, "DELETE FROM history WHERE id = (SELECT max(id) - 1 FROM history WHERE run = 1)")
    assert {finding.check for finding in checked(place).findings} <= {"gap", "file"}
    assert not checked(place).ok


def test_an_examination_counts_what_is_open_and_who_owns_it(sound: Path) -> None:
    health = asyncio.run(examine(sound))
    assert health.owner is None
    assert (health.open_runs, health.requests, health.dead_letters) == (2, 0, 0)
    assert health.facts["journal_mode"] == "wal"

    async def owned() -> str | None:
        async with Engine(sound, name="me"):
            return (await examine(sound)).owner

    assert "me" in (asyncio.run(owned()) or "")


def test_a_file_whose_runs_lead_in_a_circle_is_reported_and_left(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged index may find rows by a scan and none of them by its id."""
    monkeypatch.setattr(fsck, "PAGE", 1)

    class Circling(SqliteStore):
        async def find_runs(self, query: RunQuery) -> list[RunRow]:
            if query.after is not None or query.run is not None:
                return []
            return await super().find_runs(query)

    async def look() -> Report:
        async with await Circling.open(sound) as store:
            return await fsck.check_store(store)

    assert "order" in {finding.check for finding in asyncio.run(look()).findings}


@on_loop
async def test_a_queued_fork_needs_no_rows_for_what_it_has_inherited(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "treadle.db")
    alone = load_text(WAITING + "concurrency: {limit: 1}\n", "alone").require()
    async with running(store, {}) as here:
        run = await here.client.start(alone)
        fork = await run.fork()
        assert (await fork.info()).status is RunStatus.QUEUED
        assert (await fsck.check_store(store)).findings == []
    await store.close()


@on_loop
async def test_forks_began_when_they_were_forked(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "treadle.db")
    clock = VirtualClock()
    async with running(store, {}, clock) as here:
        run = await here.client.start(load_text(WAITING, "waiting").require())
        for _ in range(2):
            await clock.advance(1_000)
            run = await run.fork()
        rows = await store.find_runs(RunQuery())
        assert (await fsck.check_store(store)).findings == []
        await run.cancel()
        await store.forget([run.id], history=False)
        assert [event.type for event in await run.history()] == ["run.started", "run.cancelled"]
        assert (await fsck.check_store(store)).findings == [], "a shortened history does not tell"
    await store.close()
    began = sorted(row.started for row in rows)
    assert [at - began[0] for at in began] == [0, 1_000, 2_000]
