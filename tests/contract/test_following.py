"""The log of all events, for every store there is: one order, no gap, no repeat, and told what is gone."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

import asyncpg
import pytest

from tests.contract.making import OTHER, RUN, Opener, begin, commit, started
from tests.postgres import Database, new_database
from tests.runtime.executing import turns
from treadle.errors import PositionGone
from treadle.model import events as e
from treadle.model.codec import pack_events
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.following import EventPosition
from treadle.store.port import Batch, Commit
from treadle.store.postgres import PostgresStore
from treadle.store.rows import shard_of
from treadle.store.seals import seal_block


def paused(seq: int, run: RunId = RUN, status: RunStatus = RunStatus.RUNNING) -> Commit:
    """A decision with two events."""
    return commit(seq, e.RunPaused(seq + 1, 3, "a"), e.RunResumed(seq + 2, 3, "a"), run=run, status=status)


def over(seq: int, run: RunId = RUN) -> Batch:
    return Batch([commit(seq, e.RunCompleted(seq + 1, 9, {}), run=run, status=RunStatus.COMPLETED)])


def walked(store: Any, position: str | None, limit: int = 100) -> list[tuple[str, int]]:
    """Everything behind a position, page by page."""
    found: list[tuple[str, int]] = []
    while page := store.events_after(position, limit):
        assert len(page) <= limit
        found += [(one.run, one.event.seq) for one in page]
        position = page[-1].position
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_events_of_all_runs_come_in_the_order_of_commits_and_a_reader_continues_anywhere(
    store: Any, limit: int
) -> None:
    fence = store.held()
    assert store.events_after(None) == []
    now = store.last_position()
    assert store.events_after(now) == []
    store.commit(begin(RUN, entity="e1"), fence)
    store.commit(begin(OTHER, workflow="other"), fence)
    store.commit(Batch([paused(1), paused(1, OTHER)]), fence)
    store.commit(Batch([paused(3)]), fence)
    wanted = [(RUN, 1), (OTHER, 1), (RUN, 2), (RUN, 3), (OTHER, 2), (OTHER, 3), (RUN, 4), (RUN, 5)]
    assert walked(store, None, limit) == wanted
    assert walked(store, now, limit) == wanted
    whole = store.events_after(None)
    assert [(one.workflow, one.entity) for one in whole[:2]] == [("w", "order/e1"), ("other", None)]
    assert [one.event for one in whole if one.run == RUN] == store.history(RUN)
    for place, one in enumerate(whole):
        assert walked(store, one.position, limit) == wanted[place + 1 :]
    assert walked(store, store.last_position()) == []


def test_a_text_that_is_no_position_is_refused(store: Any) -> None:
    wrong = ("", "0", "a-b", "x" * 200, "l-1-2-3", "l-1-2-3-4-5", "l--1-2-3-4", "l-1-2-3-٣", f"l-{9**30}-1-1-1")
    no_day = "l-1-2-3-3652060"  # the day after 31 December 9999
    for text in (*wrong, no_day):
        with pytest.raises(ValueError, match="no position"):
            store.events_after(text)


@pytest.mark.parametrize("is_own", [False, True])
def test_a_position_that_was_never_given_hides_nothing_from_others(store: Any, is_own: bool) -> None:
    fence = store.held()
    store.commit(begin(), fence)
    (one,) = store.events_after(None)
    known = EventPosition.read(one.position)
    for ahead in (1, 1_000_000):
        made_up = EventPosition(known.log if is_own else "elsewhere", known.forgets, known.number + ahead, 0, known.day)
        with suppress(PositionGone):
            assert store.events_after(str(made_up)) == []
    now = store.last_position()
    store.commit(Batch([paused(1)]), fence)
    assert walked(store, now) == [(RUN, 2), (RUN, 3)]
    assert walked(store, one.position) == [(RUN, 2), (RUN, 3)]


def test_a_position_ahead_of_the_store_is_gone(store: Any) -> None:
    fence = store.held()
    store.commit(begin(), fence)
    store.commit(over(1), fence)
    newest = EventPosition.read(store.last_position())
    assert store.events_after(str(newest)) == []
    with pytest.raises(PositionGone, match="ahead of the store"):
        store.events_after(str(EventPosition(newest.log, newest.forgets, newest.number + 1, 0, newest.day)))
    store.forget([RUN], fence)
    assert store.events_after(store.last_position()) == []


def test_a_position_of_another_store_is_gone(store: Any) -> None:
    store.commit(begin(), store.held())
    (one,) = store.events_after(None)
    elsewhere = EventPosition(
        "elsewhere", *(getattr(EventPosition.read(one.position), n) for n in ("forgets", "number"))
    )
    with pytest.raises(PositionGone, match="another store"):
        store.events_after(str(elsewhere))


def test_a_reader_is_told_what_was_forgotten_before_it_came(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN), fence)
    store.commit(begin(OTHER), fence)
    first, second = store.events_after(None)
    store.commit(over(1), fence)
    end = store.events_after(None)[-1]
    store.commit(Batch([paused(1, OTHER)]), fence)
    store.forget([RUN], fence)
    for missed in (first, second):
        with pytest.raises(PositionGone, match="forgotten"):
            store.events_after(missed.position)
    assert walked(store, end.position) == [(OTHER, 2), (OTHER, 3)], "it has read what was forgotten"
    assert walked(store, None, 1) == [(OTHER, 1), (OTHER, 2), (OTHER, 3)], "the beginning is what is kept"


def test_numbers_of_forgotten_events_are_not_used_again(store: Any) -> None:
    fence = store.held()
    store.commit(begin(OTHER), fence)
    store.commit(begin(RUN), fence)
    store.commit(over(1), fence)
    read = store.events_after(None)[-1].position
    now = store.last_position()
    store.forget([RUN], fence)
    assert store.last_position() != "" and walked(store, read) == []
    store.commit(begin(RUN), fence)
    store.commit(Batch([paused(1, OTHER)]), fence)
    for position in (read, now, store.last_position() and read):
        assert walked(store, position) == [(RUN, 1), (OTHER, 2), (OTHER, 3)]
    store.commit(over(1), fence)
    store.forget([RUN], fence)
    with pytest.raises(PositionGone):
        store.events_after(read)


@pytest.mark.parametrize("together", [False, True])
def test_events_that_are_left_of_a_shortened_run_are_not_given_again(store: Any, together: bool) -> None:
    fence = store.held()
    if together:
        store.commit(
            Batch([commit(0, started(), e.RunPaused(2, 1, "x"), e.RunCompleted(3, 9, {}), status=RunStatus.COMPLETED)]),
            fence,
        )
    else:
        store.commit(begin(RUN), fence)
        store.commit(Batch([paused(1)]), fence)
        store.commit(over(3), fence)
    store.commit(begin(OTHER), fence)
    whole = store.events_after(None)
    last = store.history(RUN)[-1].seq
    store.forget([RUN], fence, history=False)
    end = next(one for one in whole if (one.run, one.event.seq) == (RUN, last))
    assert walked(store, end.position) == [(OTHER, 1)]
    assert walked(store, whole[-1].position) == []
    assert walked(store, None) == [(RUN, 1), (RUN, last), (OTHER, 1)]
    store.forget([RUN], fence, history=False)
    assert walked(store, whole[-1].position) == []
    with pytest.raises(PositionGone):
        store.events_after(whole[0].position)


def test_a_file_goes_on_after_a_restart(opened: Opener) -> None:
    store = opened()
    fence = store.held()
    store.commit(begin(), fence)
    store.commit(over(1), fence)
    position = store.events_after(None)[-1].position
    store.forget([RUN], fence)
    store.close()
    again = opened()
    again.commit(begin(OTHER), again.lease(0, "b", 1_000, 100))
    assert walked(again, position) == [(OTHER, 1)]
    assert walked(again, None) == [(OTHER, 1)]


# Several nodes that commit at the same moment


def test_a_commit_that_is_late_is_waited_for(database: Database, runner: asyncio.Runner) -> None:
    """The second of two commits is visible first: its events wait for the first."""

    async def play() -> None:
        store, other = await database.open(payload_max=200), await PostgresStore.open(database.dsn)
        fence = await store.lease(0, "a", 0, 100)
        assert fence is not None
        await store.commit(begin(RUN), fence)
        (first,) = await other.events_after(None)
        held = await asyncpg.connect(database.dsn)
        await held.execute("BEGIN")
        await held.execute("SELECT 1 FROM leases FOR NO KEY UPDATE")
        place = await held.fetchval("SELECT nextval('history_positions')")
        await _committed(database, place + 1)
        assert await other.events_after(first.position) == [], "the one before may still come"
        other._waits_since = 0.0  # it has waited long enough, and asks the leases: the commit is still under way
        asking = asyncio.create_task(other.events_after(first.position))
        await asyncio.wait([asking], timeout=0.2)
        assert not asking.done()
        await held.execute("ROLLBACK")
        await held.close()
        assert [one.event.seq for one in await asking] == [2], "the first was undone"
        await store.close()
        await other.close()

    runner.run(play())


async def _committed(database: Database, place: int) -> None:
    """A block as another node would have committed it meanwhile, with a greater position."""
    connection = await asyncpg.connect(database.dsn)
    block = seal_block(RUN, 2, pack_events([e.RunPaused(2, 3, "a")]))
    await connection.execute(
        "INSERT INTO history (run, seq, day, block, position) SELECT $1, 2, day, $2, $3 FROM calendar",
        RUN,
        block,
        place,
    )
    await connection.execute("UPDATE runs SET seq = 2 WHERE run = $1", RUN)
    await connection.close()


@pytest.mark.parametrize("seed", range(3))
def test_readers_see_everything_once_while_two_nodes_commit_at_once(runner: asyncio.Runner, seed: int) -> None:
    async def play(dsn: str) -> None:
        stores = [await PostgresStore.open(dsn, shards=8, connections_max=6) for _ in range(3)]
        fences = {shard: await stores[0].lease(shard, f"n{shard % 2}", None, 60_000) for shard in range(8)}
        random = Random(seed)
        runs = [RunId(f"run-{seed}-{number}") for number in range(60)]
        committed: dict[str, int] = {}
        over = asyncio.Event()

        async def write(node: int) -> None:
            mine = [run for run in runs if shard_of(run, 8) % 2 == node]
            for turn in range(25):
                some = random.sample(mine, random.randrange(1, 6))
                commits = [
                    begin(run).commits[0] if run not in committed else paused(committed[run], run) for run in some
                ]
                held = {shard_of(run, 8) for run in some}
                given = [fence for shard, fence in fences.items() if shard in held and fence is not None]
                if turn % 7 == 3:  # undone: its positions stay empty
                    bad = Batch([*commits, paused(77, RunId(f"nobody-{turn}"))])
                    spare = [fence for fence in fences.values() if fence is not None]
                    with pytest.raises(Exception, match="STALE_VERSION"):
                        await stores[node].commit(bad, *spare)
                await stores[node].commit(Batch(commits), *given)
                for one in commits:
                    committed[one.run] = one.expected_seq + len(one.events)

        async def read() -> dict[str, list[int]]:
            seen: dict[str, list[int]] = {}
            position: str | None = None
            idle = 0
            while idle < 3:
                done = over.is_set()
                page = await stores[2].events_after(position, random.randrange(1, 50))
                for one in page:
                    seen.setdefault(one.run, []).append(one.event.seq)
                    position = one.position
                if not page:
                    idle += done
                    stores[2]._waits_since = 0.0 if done else stores[2]._waits_since  # what stays away is late by now
                    await turns(1)
            return seen

        readers = [asyncio.create_task(read()) for _ in range(2)]
        await asyncio.gather(write(0), write(1))
        over.set()
        for seen in await asyncio.gather(*readers):
            assert {run: len(seqs) for run, seqs in seen.items()} == committed
            assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in seen.values())
        for store in stores:
            await store.close()

    with new_database() as dsn:
        runner.run(play(dsn))
