"""Lists of runs by time, in pieces and by tags, where runs were created out of the order of their starts; and lists by
several filters at once."""

from __future__ import annotations

from random import Random
from typing import Any

import asyncpg
import pytest

from tests.contract.making import commit, started
from treadle.model.effects import NoteVersion
from treadle.model.events import RunMigrated
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import Batch, RunQuery, RunRow
from treadle.store.postgres import PostgresStore, run_queries

STARTS = (100, 200, 190, 300, 50, 310, 305, 400, 401, 120, 500)
"""Of runs r0, r1, … in the order of creation."""


@pytest.fixture
def mixed(store: Any) -> Any:
    fence = store.held()
    for first in (0, 4, 7):  # batches, in the middle of which starts go back, too
        batch = [
            commit(0, started(RunId(f"r{number}"), at=at, tags=("all", f"t{number % 3}")), run=RunId(f"r{number}"))
            for number, at in enumerate(STARTS[first : {0: 4, 4: 7, 7: 11}[first]], first)
        ]
        store.commit(Batch(batch), fence)
        if isinstance(store.store, PostgresStore):
            store._runner.run(store.store._connections.write(_next_block))
    return store


async def _next_block(connection: asyncpg.Connection) -> None:
    """The next runs are in another block of the index by time than those before them."""
    await connection.execute(
        "SELECT setval(name, nextval(name) + 10000) FROM pg_get_serial_sequence('runs', 'created') AS name"
    )


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_list_by_time_holds_every_run_of_that_time_however_late_it_was_created(
    mixed: Any, newest_first: bool
) -> None:
    random = Random(7)
    for _ in range(40):
        low, high = sorted(random.sample(range(40, 520), 2))
        for given in ({"started_from": low}, {"started_until": high}, {"started_from": low, "started_until": high}):
            wanted = [
                f"r{number}"
                for number, at in enumerate(STARTS)
                if given.get("started_from", 0) <= at < given.get("started_until", 1_000)
            ]
            assert mixed.runs(newest_first=newest_first, **given) == (wanted[::-1] if newest_first else wanted), given


def test_runs_below_a_number_are_left_out(mixed: Any) -> None:
    numbers = {row.run: row.number for row in mixed.find_runs(RunQuery())}
    assert mixed.runs(newest_first=True, down_to=numbers[RunId("r8")]) == ["r10", "r9", "r8"]
    assert mixed.runs(newest_first=True, down_to=numbers[RunId("r7")], beyond=numbers[RunId("r9")]) == ["r8", "r7"]


def test_runs_with_several_tags_have_them_all(mixed: Any) -> None:
    assert mixed.runs(newest_first=True, tags=("all", "t1")) == ["r10", "r7", "r4", "r1"]
    assert mixed.runs(newest_first=True, tags=("t0", "t1")) == []
    assert mixed.runs(newest_first=True, tags=("t2",), started_until=200) == ["r2"]


def test_a_text_is_found_in_key_entity_and_tags_in_any_case_of_any_letter(store: Any) -> None:
    fence = store.held()
    texts: tuple[dict[str, Any], ...] = (
        {"key": "ÄRGER-1"},
        {"entity": "Ünal"},
        {"tags": ("rot", "Größe Ω")},
        {"key": "plain"},
    )
    for number, given in enumerate(texts):
        run = RunId(f"r{number}")
        store.commit(Batch([commit(0, started(run, **given), run=run)]), fence)
    for text, wanted in (
        ("ÄRGER", ["r0"]),
        ("ärger", ["r0"]),
        ("Ünal", ["r1"]),
        ("ÜNAL", ["r1"]),
        ("größe ω", ["r2"]),
        ("ROT", ["r2"]),
        ("PLAIN", ["r3"]),
        ("é", []),
        ("%", []),
    ):
        assert store.runs(text=text) == wanted, text


def test_a_run_is_found_by_the_version_it_was_migrated_to(store: Any) -> None:
    fence = store.held()
    run = RunId("r1")
    store.commit(Batch([commit(0, started(run), run=run)]), fence)
    moved = RunMigrated(2, 5, 1, 2, {})
    store.commit(Batch([commit(1, moved, run=run, effects=(NoteVersion(2),))]), fence)
    assert [(row.run, row.version, row.seq) for row in store.find_runs(RunQuery(version=2))] == [(run, 2, 2)]
    assert store.find_runs(RunQuery(version=1)) == []
    assert store.outbox(0) == [], "the version is a column of the run, and nothing is delivered"


STATUSES = (RunStatus.COMPLETED, RunStatus.COMPLETED, RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.RUNNING)
"""Some of a run: most have completed."""
MANY = 60
FEW = 3
"""Of so many runs on, PostgreSQL takes a tag, a workflow or a status for a common one."""


@pytest.fixture
def various(store: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Many runs with random fields."""
    monkeypatch.setattr(run_queries, "RARE_MAX", FEW)
    monkeypatch.setattr(run_queries, "PROBED", FEW)
    random, fence = Random(11), store.held()
    for number in range(MANY):
        run = RunId(f"r{number}")
        event = started(
            run,
            at=random.randrange(100),
            workflow=random.choice(("w", "w", "w", "rare")),
            entity=f"e{random.randrange(9)}",
            tags=tuple(tag for tag in ("many", "few") if random.random() < {"many": 0.7, "few": 0.05}[tag]),
        )
        store.commit(Batch([commit(0, event, run=run, status=random.choice((*STATUSES, *RunStatus)))]), fence)
    return store


def _fits(row: RunRow, query: RunQuery) -> bool:
    return (
        query.workflow in (None, row.workflow)
        and (not query.statuses or row.status in query.statuses)
        and set(query.tags) <= set(row.tags)
        and query.entity in (None, row.entity)
        and (query.text is None or query.text in row.run)
        and (query.started_from is None or row.started >= query.started_from)
        and (query.started_until is None or row.started < query.started_until)
        and (query.down_to is None or row.number >= query.down_to)
    )


def test_filters_hold_together_in_both_orders_and_page_by_page(various: Any) -> None:
    random, rows = Random(13), various.find_runs(RunQuery())
    assert len(rows) == MANY
    values: dict[str, list[Any]] = {
        "workflow": ["w", "rare", "none"],
        "statuses": [(status,) for status in sorted(set(STATUSES))]
        + [(RunStatus.FAILED, RunStatus.COMPLETED), (RunStatus.PAUSED, RunStatus.FAILED), tuple(RunStatus)],
        "tags": [("many",), ("few",), ("many", "few")],
        "entity": ["order/e1"],
        "text": ["r1"],
        "started_from": [10, 50, 95],
        "started_until": [10, 50, 95],
        "down_to": [rows[MANY // 3].number],
    }
    found = 0
    for _ in range(400):
        names = random.sample(sorted(values), random.choice((1, 2, 2, 3)))
        asked = {name: random.choice(values[name]) for name in names}
        query = RunQuery(**asked, newest_first=random.random() < 0.7, limit=random.choice((1, 5, MANY)))
        wanted = [row for row in (rows[::-1] if query.newest_first else rows) if _fits(row, query)]
        if wanted and random.random() < 0.6:
            behind = random.choice(wanted)
            asked |= random.choice(({"after": behind.run}, {"beyond": behind.number}))
            wanted = wanted[wanted.index(behind) + 1 :]
        given = {**asked, "newest_first": query.newest_first, "limit": query.limit}
        assert various.runs(**given) == [row.run for row in wanted[: query.limit]], given
        found += len(wanted)
    assert found > 2 * MANY
