"""A whole store is moved in the middle of everything: nothing is lost, runs go on, a killed move can be repeated."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.dumping import dump
from tests.postgres import new_database
from tests.runtime.moving import BUSY_ELSEWHERE, FLOWS
from treadle import Engine, connect
from treadle.errors import EngineStopped, OwnedElsewhere, StorePlaceError
from treadle.language import load_text
from treadle.model.commands import StartAttempt
from treadle.model.states import RunStatus
from treadle.runtime.operate.moving import MoveResult, move, undo
from treadle.runtime.operate.upkeep import check_everything
from treadle.store.postgres import PostgresStore
from treadle.store.postgres.transfer import PostgresTransfer
from treadle.store.sqlite.transfer import SqliteTransfer

Dump = dict[str, list[Any]]
WORKING = {"die": lambda: 1, "work": lambda: 1}


def program(*words: str) -> int:
    """The exit code of a program that is expected to be killed."""
    done = subprocess.run([sys.executable, "-m", "tests.runtime.moving", *words], capture_output=True, text=True)
    assert done.returncode in (0, -9), done.stderr
    return done.returncode


async def ask_in_vain(place: Path) -> None:
    """Requests that nobody is there to answer: a start and the answer of a gate."""
    async with connect(place) as client:
        gate = (await client.gates())[1]
        with pytest.raises(EngineStopped, match="is kept"):
            await client.start("quick", {}, key="asked in vain")
        with pytest.raises(EngineStopped, match="is kept"):
            await client.complete_gate(gate.run, gate.token, {"yes": True}, by="ann")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose engine was killed in the middle of everything."""
    place = tmp_path_factory.mktemp("original") / "a.db"
    assert program("engine", str(place)) == -9
    asyncio.run(ask_in_vain(place))
    return place


@pytest.fixture
def source(original: Path, tmp_path: Path) -> Path:
    for end in ("", "-wal", ".key"):
        if Path(f"{original}{end}").exists():
            shutil.copy(f"{original}{end}", tmp_path / f"a.db{end}")
    return tmp_path / "a.db"


def dumped(place: str | Path) -> Dump:
    async def read() -> Dump:  # but for the callback key: a file has it in another file, and it travels as a document
        end: Any
        if str(place).startswith("postgres"):
            end = await PostgresTransfer.open(str(place), shards=64, create=False)
        else:
            end = await SqliteTransfer.open(place, create=False)
        try:
            found = await dump(end)
            return {**found, "documents": [row for row in found["documents"] if row[0] != "_callback_key"]}
        finally:
            await end.close()

    return asyncio.run(read())


async def callback_key(place: Path) -> str:
    """As an engine finds it."""
    async with Engine(place):
        return place.with_name(f"{place.name}.key").read_text()


def moved(source: str | Path, target: str | Path, **options: Any) -> MoveResult:
    return asyncio.run(move(source, target, **options))


def opens(place: str | Path) -> None:
    async def enter() -> None:
        async with connect(place):
            pass

    asyncio.run(enter())


def test_a_store_goes_there_and_back_and_is_the_same(source: Path, dsn: str, tmp_path: Path) -> None:
    before = dumped(source)
    assert all(before.values()), "something of everything"
    seen: list[tuple[str, int, int]] = []
    result = moved(source, dsn, progress=lambda *news: seen.append(news))
    key = {"documents": len(before["documents"]) + 1}
    assert result.rows == {shelf: len(rows) for shelf, rows in before.items()} | key, "the callback key, too"
    assert {what for what, _, _ in seen} >= set(before)
    assert dumped(dsn) == dumped(source) == before
    with pytest.raises(StorePlaceError, match="was moved to postgresql://"):
        opens(source)
    opens(dsn)
    moved(dsn, tmp_path / "b.db")
    assert dumped(tmp_path / "b.db") == before
    with pytest.raises(StorePlaceError, match=r"was moved to .*b\.db"):
        opens(dsn)
    for place in (source, dsn, tmp_path / "b.db"):
        assert asyncio.run(check_everything(place)).ok, "also of a store that was moved"
    assert asyncio.run(callback_key(tmp_path / "b.db")) == source.with_name("a.db.key").read_text(), "tokens verify"


async def _finish(engine: Any, workflow: str, count: int) -> None:
    """All runs of a workflow, as soon as there are so many, complete."""
    heard = asyncio.Event()
    stop = engine.listen(heard.set)
    while len(found := await engine.runs(workflow=workflow)) < count:
        await asyncio.wait_for(heard.wait(), 30)
        heard.clear()
    stop()
    assert len(found) == count, found
    for row in found:
        assert (await engine.run(row.run).wait(30)).status is RunStatus.COMPLETED


def test_runs_go_on_where_they_stood(source: Path, dsn: str, tmp_path: Path) -> None:
    async def play() -> None:
        await move(source, dsn)
        async with Engine(dsn, functions=WORKING, settings=BUSY_ELSEWHERE) as engine:
            await _finish(engine, "dying", 1)  # whoever executed it is gone
            await _finish(engine, "napping", 1)  # its time came while no engine ran, or comes now
            await _finish(engine, "quick", 2)  # asked for while nobody was there
            assert (await engine.start("quick", {}, key="first")).id in {
                row.run for row in await engine.runs(workflow="quick")
            }, "a key still means its run"
            answered, open_ = await _by_gate(engine)
            assert (await engine.run(answered).wait(30)).output == {"answer": {"yes": True}}
            await engine.complete_gate(open_.run, open_.token, {"yes": False})
            await _finish(engine, "asking", 2)
            paused = await engine.runs(workflow="sleeping", statuses=[RunStatus.PAUSED])
            await engine.run(paused[0].run).resume()
            assert [schedule.name for schedule in await engine.schedules()] == ["yearly"]
            assert [row.run for row in await engine.runs(tag="two")] == [
                row.run for row in await engine.runs(workflow="quick") if row.idempotency_key == "first"
            ]
        await move(dsn, tmp_path / "b.db", wait=True)
        async with Engine(tmp_path / "b.db", functions=WORKING) as engine:
            await _finish(engine, "queued", 1)  # somebody here works for its queue
            assert (await engine.fsck()).ok

    asyncio.run(play())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_a_worker_had_in_hand_is_done_again(kind: str, dsn: str, tmp_path: Path) -> None:
    async def begin() -> str:
        async with Engine(dsn, functions=WORKING, settings=BUSY_ELSEWHERE) as engine:
            run = await engine.start(load_text(FLOWS["queued"], "queued").require(), {})
            async with await PostgresStore.open(dsn) as store:
                (claimed,) = await store.claim("gpu", "somebody", 1, 60_000)
            offer = claimed.offer
            await run.ask(StartAttempt(offer.token, offer.attempt, claimed.holder, recovery=offer.recovery))
            return run.id

    async def go_on(run: str, target: str | Path) -> None:
        await move(dsn, target, wait=True)
        async with Engine(target, functions=WORKING) as engine:
            assert (await engine.run(run).wait(30)).status is RunStatus.COMPLETED

    run = asyncio.run(begin())
    if kind == "sqlite":
        asyncio.run(go_on(run, tmp_path / "b.db"))
    else:
        with new_database() as other:
            asyncio.run(go_on(run, other))


async def _by_gate(engine: Any) -> tuple[str, Any]:
    """The run whose gate was answered in vain, and the gate that is open still."""
    answered, waiting = [row.run for row in await engine.runs(workflow="asking")]  # newest first
    (gate,) = await engine.gates(waiting)
    return answered, gate


def test_a_move_that_is_killed_again_and_again_arrives(source: Path, dsn: str, tmp_path: Path) -> None:
    before = dumped(source)
    for here, there in ((str(source), dsn), (dsn, str(tmp_path / "b.db"))):
        kills = 0
        while program("move", str((3, 8, 4, 9)[kills % 4]), here, there) != 0:
            kills += 1
            usable = []
            for place in (here, there):
                try:
                    opens(place)
                except StorePlaceError as refused:
                    assert "moved" in str(refused) or "incomplete" in str(refused) or "no such" in str(refused)
                else:
                    usable.append(place)
            assert usable in ([], [here], [there]), "never two stores with the same runs"
            assert usable != [here] or kills == 1, "once it has begun nobody writes the source"
        assert kills > 1
        assert dumped(there) == before
        opens(there)


@pytest.mark.parametrize("steps", range(1, 5))
def test_a_move_that_is_killed_at_its_beginning_can_be_undone(source: Path, dsn: str, steps: int) -> None:
    before = dumped(source)
    assert program("move", str(steps), str(source), dsn) == -9
    asyncio.run(undo(source))
    opens(source)
    assert dumped(source) == before
    assert not moved(source, dsn).resumed, "what the other has left is thrown away"
    assert dumped(dsn) == before


def test_who_coordinates_a_store_is_named_or_waited_for(source: Path, dsn: str) -> None:
    async def play() -> None:
        async with Engine(source, functions=WORKING, name="me"):
            with pytest.raises(OwnedElsewhere, match="engine me"):
                await move(source, dsn)
            waiting = asyncio.create_task(move(source, dsn, wait=True))
            done, _ = await asyncio.wait([waiting], timeout=0.2)
            assert not done
        assert (await waiting).rows["runs"] == 10

    asyncio.run(play())


def test_a_target_that_is_not_empty_is_refused_and_nothing_has_happened(source: Path, dsn: str, tmp_path: Path) -> None:
    before = dumped(source)
    shutil.copy(source, tmp_path / "full.db")
    with pytest.raises(StorePlaceError, match="is not empty"):
        moved(source, tmp_path / "full.db")
    with pytest.raises(StorePlaceError, match="cannot be moved to itself"):
        moved(source, source)
    with pytest.raises(StorePlaceError, match="no such store"):
        moved(tmp_path / "none.db", dsn)
    with pytest.raises(StorePlaceError, match="there is no store in it"):
        moved(dsn, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
    opens(source)
    assert dumped(source) == before


def test_a_copy_leaves_its_source_in_use(source: Path, dsn: str) -> None:
    assert moved(source, dsn, keep_source=True).kept_source
    opens(source)
    opens(dsn)
    assert dumped(source) == dumped(dsn)


def test_a_store_that_was_moved_stays_so_unless_somebody_insists(source: Path, dsn: str) -> None:
    moved(source, dsn)
    with pytest.raises(StorePlaceError, match="was moved to"):
        moved(source, dsn)
    with pytest.raises(StorePlaceError, match="may have gone on"):
        asyncio.run(undo(source))
    asyncio.run(undo(source, force=True))
    opens(source)
    with pytest.raises(StorePlaceError, match="nothing to undo"):
        asyncio.run(undo(source))


def test_a_damaged_store_is_not_moved(source: Path, dsn: str) -> None:
    import apsw

    connection = apsw.Connection(str(source))
    connection.execute("UPDATE runs SET status = 'failed' WHERE workflow = 'quick'")
    connection.close()
    with pytest.raises(StorePlaceError, match=r"fsck has 1 findings.*status.*nothing was moved"):
        moved(source, dsn)
    opens(source)
    opens(dsn)


def test_a_target_that_differs_is_not_handed_over(source: Path, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PostgresTransfer.put

    async def forgetful(self: Any, shelf: str, rows: Any, was: Any, now: Any) -> None:
        await whole(self, shelf, rows[1:] if shelf == "timers" else rows, was, now)

    monkeypatch.setattr(PostgresTransfer, "put", forgetful)
    with pytest.raises(StorePlaceError, match=r"differs from its source \(timers: \d rows here, \d there\)"):
        moved(source, dsn)
    with pytest.raises(StorePlaceError, match="is incomplete"):
        opens(dsn)
    monkeypatch.undo()
    with pytest.raises(StorePlaceError, match="differs"):
        moved(source, dsn)
    assert moved(source, dsn, restart=True).rows["timers"] >= 3
    opens(dsn)
