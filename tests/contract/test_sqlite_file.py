"""What only a file can promise: it outlives its process, it knows its version, it is shared, it can be copied."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from tests.contract.making import ONE, OTHER, RUN, WORK, Opener, Spoken, begin, commit, ended, started
from treadle.errors import StoreConflict, StorePlaceError, StoreUnavailable
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.store.port import Batch, InboxAnswer, InboxRequest
from treadle.store.rows import SHARD
from treadle.store.sqlite import SqliteStore
from treadle.store.sqlite.connect import migrations


def test_what_was_committed_is_there_after_reopening(opened: Opener) -> None:
    store = opened()
    fence = store.held()
    rows = store.commit(begin(RUN, WORK, f.SetTimer(ONE, 5)), fence)
    store.submit(InboxRequest("a", RUN, c.PauseRun(), 0))
    store.put_document("workflow", "w", "h", {"a": 1})
    store.close()
    again = opened()
    assert again.history(RUN) == [started()]
    assert again.outbox(SHARD) == rows
    assert [row.due for row in again.timers(SHARD)] == [5]
    assert [kept.id for kept in again.inbox(SHARD)] == ["a"]
    assert [kept.body for kept in again.documents("workflow")] == [{"a": 1}]
    assert again.lease(SHARD, "b", 1, 10) is None, "a lease outlives its process"
    again.commit(Batch([commit(1, e.RunPaused(2, 0, "ann"))]), fence)


def test_a_commit_is_seen_by_every_other_connection(opened: Opener) -> None:
    owner, client = opened(), opened()
    fence = owner.held()
    owner.commit(begin(), fence)
    assert client.runs() == client.runs(run=RUN) == [RUN]
    assert client.submit(InboxRequest("a", RUN, c.PauseRun(), 0)) is None
    assert [kept.id for kept in owner.inbox(SHARD)] == ["a"]
    owner.commit(Batch(answers=[InboxAnswer("a", result="done")]), fence)
    assert client.submit(InboxRequest("a", RUN, c.PauseRun(), 0)) == InboxAnswer("a", result="done")


def test_the_lease_fences_connections_off_like_threads(opened: Opener) -> None:
    one, two = opened(), opened()
    old = one.held()
    new = two.lease(SHARD, "b", 1, 100, evict=True)
    with pytest.raises(StoreConflict, match="epoch 2 of b, not to epoch 1 of a"):
        one.commit(begin(), old)
    two.commit(begin(), new)


def test_a_value_is_stored_once_however_often_it_is_mentioned(opened: Opener, place: Path) -> None:
    big = {"scan": "x" * 300_000}
    store = opened()
    fence = store.held()
    store.commit(begin(RUN, f.RunTask(1, 1, "a", big), input=big), fence)  # type: ignore[arg-type]
    store.commit(Batch([commit(1, e.Custom(2, 0, "x", {"again": big}))]), fence)
    store.commit(begin(OTHER, input=big), fence)
    assert store.history(RUN)[1].data == {"again": big}
    with sqlite3.connect(place) as plain:
        assert plain.execute("SELECT count(*) FROM blobs").fetchone() == (1,)
        assert plain.execute("SELECT count(*) FROM blobs_of_runs").fetchone() == (2,)
        assert plain.execute("SELECT max(length(block)) FROM history").fetchone()[0] < 500
    plain.close()


CLIENT = """
import asyncio, sys
from treadle.model import commands as c
from treadle.store.port import InboxRequest
from treadle.store.sqlite import SqliteStore

async def main(path, name):
    async with await SqliteStore.open(path) as store:
        await asyncio.gather(*(store.submit(InboxRequest(f"{name}-{i}", "r1", c.PauseRun(), i)) for i in range(20)))
        for i in range(20):
            await store.submit(InboxRequest(f"{name}+{i}", "r1", c.PauseRun(), i))
        await store.put_document("workflow", name, "h", {})

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


@pytest.mark.slow
def test_other_processes_submit_while_the_owner_commits(opened: Opener, place: Path) -> None:
    store = opened()
    fence = store.held()
    store.commit(begin(), fence)
    clients = [subprocess.Popen([sys.executable, "-c", CLIENT, str(place), name]) for name in ("x", "y")]
    seq = 1
    while any(client.poll() is None for client in clients):
        store.commit(Batch([commit(seq, e.Custom(seq + 1, 0, "x"))]), fence)
        seq += 1
    assert [client.returncode for client in clients] == [0, 0]
    assert len(store.inbox(SHARD)) == 80
    assert len(store.history(RUN)) == seq
    assert [kept.name for kept in store.documents("workflow")] == ["x", "y"]
    assert store.integrity() == []


KILLED = """
import asyncio, os, signal, sys
from tests.contract.making import begin, commit, RUN
from treadle.model import events as e
from treadle.store.port import Batch
from treadle.store.sqlite import SqliteStore

async def main(path):
    store = await SqliteStore.open(path)
    fence = await store.lease(0, "a", 0, 100)
    await store.commit(begin(), fence)
    for seq in range(1, 50):
        await store.commit(Batch([commit(seq, e.Custom(seq + 1, 0, "x"))]), fence)
        print(seq + 1, flush=True)
    store.commit(Batch([commit(50, e.Custom(51, 0, "x"))]), fence).send(None)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_killed_process_loses_nothing_it_was_promised(opened: Opener, place: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(place)], capture_output=True, text=True, check=False)
    promised = int(killed.stdout.split()[-1])
    store = opened()
    assert promised == 50
    assert [event.seq for event in store.history(RUN)][:promised] == list(range(1, promised + 1))
    assert store.integrity() == []


def test_a_reader_cannot_write(opened: Opener) -> None:
    store = opened()
    store.commit(begin(), store.held())
    reader = opened(read_only=True)
    assert reader.runs() == [RUN]
    with pytest.raises(StoreUnavailable, match="reading only"):
        reader.submit(InboxRequest("a", RUN, c.PauseRun(), 0))


def test_a_closed_store_says_so(opened: Opener) -> None:
    store = opened()
    store.close()
    for ask in (lambda: store.runs(run=RUN), lambda: store.runs(), lambda: store.held()):
        with pytest.raises(StoreUnavailable, match="closed"):
            ask()  # type: ignore[no-untyped-call]


def test_a_backup_is_one_moment_of_a_running_store(opened: Opener, tmp_path: Path, runner: asyncio.Runner) -> None:
    store = opened()
    fence = store.held()
    store.commit(begin(input={"x": "y" * 100_000}), fence)
    target = tmp_path / "copy.db"
    seen: list[tuple[int, int]] = []
    store.backup(target, lambda left, all: seen.append((left, all)))
    store.commit(Batch([commit(1, e.RunPaused(2, 0, "ann"))]), fence)
    assert seen[-1][0] == 0 < seen[-1][1]
    assert not target.with_name("copy.db.part").exists()
    copy = Spoken(runner.run(SqliteStore.open(target)), runner)
    assert [event.seq for event in copy.history(RUN)] == [1]
    assert copy.integrity() == []
    copy.close()
    with pytest.raises(StorePlaceError, match="exists already"):
        store.backup(target)
    with pytest.raises(StorePlaceError, match="no directory"):
        store.backup(tmp_path / "nowhere" / "copy.db")


def test_a_backup_replaces_an_old_copy_only_when_the_new_one_is_complete(opened: Opener, tmp_path: Path) -> None:
    store = opened()
    fence = store.held()
    store.commit(begin(), fence)
    target = tmp_path / "copy.db"
    store.backup(target)
    old = target.read_bytes()
    store.commit(Batch([commit(1, e.RunPaused(2, 0, "ann"))]), fence)
    meanwhile: list[bool] = []
    store.backup(target, lambda _left, _all: meanwhile.append(target.read_bytes() == old), overwrite=True)
    assert meanwhile
    assert all(meanwhile), "the old copy was touched before the new one was complete"
    assert target.read_bytes() != old


def test_a_backup_replaces_no_other_file(opened: Opener, tmp_path: Path) -> None:
    script, empty = tmp_path / "trip.py", tmp_path / "empty.db"
    script.write_text("print('precious')")
    empty.touch()
    with pytest.raises(StorePlaceError, match=r"trip\.py.*it is not a Treadle store"):
        opened().backup(script, overwrite=True)
    assert script.read_text() == "print('precious')"
    opened().backup(empty, overwrite=True)
    assert empty.stat().st_size


def test_a_backup_is_not_put_beside_the_log_of_another_file(opened: Opener, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    opened().backup(target)
    old = target.read_bytes()
    (tmp_path / "copy.db-wal").write_bytes(b"commits of the old file")
    with pytest.raises(StorePlaceError, match=r"copy\.db-wal beside it has commits"):
        opened().backup(target, overwrite=True)
    assert target.read_bytes() == old


def test_a_check_finds_a_torn_run_and_a_damaged_page(opened: Opener, place: Path) -> None:
    store = opened()
    fence = store.held()
    store.commit(Batch([*begin().commits, *ended(OTHER).commits]), fence)
    store.close()
    plain = apsw.Connection(str(place))
    plain.execute("UPDATE runs SET seq = 7 WHERE run = 'r1'; DELETE FROM runs WHERE run = 'r2'")
    plain.close()
    assert opened().integrity() == [
        "row 2 of history refers to a row of runs that does not exist",
        "run r1 is at 7, its history ends at 1",
    ]


def test_facts_are_what_a_doctor_asks_for(opened: Opener) -> None:
    facts = opened().facts()
    assert (facts["journal_mode"], facts["synchronous"], facts["user_version"]) == ("wal", 2, migrations()[-1][0])
    assert {"sqlite_version", "page_size", "page_count", "freelist_count", "wal_bytes", "filesystem"} <= set(facts)


def test_ids_of_runs_may_be_anything_people_write(opened: Opener) -> None:
    store = opened()
    run = RunId("größe/1 '; DROP TABLE runs --")
    store.commit(begin(run), store.held())
    assert store.runs(run=run) == [run]


def test_a_file_whose_runs_were_dropped_gives_the_disk_its_space_back(opened: Opener, place: Path) -> None:
    store = opened()
    fence = store.held()
    runs = [RunId(f"run-{number}") for number in range(400)]
    for run in runs:
        store.commit(ended(run, input={"text": f"{run} " * 1_000}), fence)
    store.close()
    full = place.stat().st_size
    store = opened()
    fence = store.lease(SHARD, "heir", 0, 10, evict=True)
    for first in range(0, 400, 50):
        store.forget(runs[first : first + 50], fence)
    store.close()
    assert place.stat().st_size < full / 4
    again = opened()
    assert again.integrity() == [] and again.runs() == []
