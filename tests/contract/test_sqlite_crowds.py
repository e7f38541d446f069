"""A crowd's rows go to SQLite in one statement of each kind: what it writes and refuses is what rows one by one do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.contract.making import ONE, THREE, TOKEN, TWO, WORK, Opener, Spoken, begin, commit, started
from treadle.errors import StoreConflict
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import Batch, Commit
from treadle.store.sqlite import SqliteStore, crowds
from treadle.store.sqlite.connect import connect
from treadle.store.sqlite.queries import SQL

TABLES = ("runs", "history", "tags", "timers", "gates", "outbox", "blobs", "blobs_of_runs")
NAMES = (
    "plain-{}",
    "grüße-{}",
    "走る-{}",
    "😀{}",
    'a "quote" {}',
    "back\\slash{}",
    "line\n{}",
    "nul\0{}",
    "{}",
    "0{}",
    "1e{}",
)
"""Ids that JSON has to escape, and some that look like numbers."""
LARGE = "x" * 1_000
"""More than a store of these tests keeps in a block."""


def ids(count: int, shift: int = 0) -> list[RunId]:
    return [RunId(NAMES[n % len(NAMES)].format(n + shift)) for n in range(count)]


def step(run: RunId, seq: int = 1, **given: Any) -> Commit:
    return commit(seq, e.Custom(seq + 1, 7, "x"), run=run, **given)


def births(runs: list[RunId], *effects: f.Effect) -> list[Commit]:
    """Each with a key, tags and an entity of its own."""
    return [one for run in runs for one in begin(run, *effects, key=f"ä\0{run}", tags=("ü", run), entity=run).commits]


def everything(place: Path) -> dict[str, list[Any]]:
    connection = connect(place)
    found = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    connection.close()
    return found


@pytest.fixture(params=["at once", "one by one"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "one by one":
        monkeypatch.setattr(crowds, "CROWD", 1 << 30)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Statements, and whether they were asked once or for each row."""
    seen: list[tuple[str, str]] = []

    class Watched(apsw.Connection):
        def execute(self, statements: str, *given: Any, **named: Any) -> Any:
            seen.append(("once", statements))
            return super().execute(statements, *given, **named)

        def executemany(self, statements: str, *given: Any, **named: Any) -> Any:
            seen.append(("each", statements))
            return super().executemany(statements, *given, **named)

    monkeypatch.setattr(apsw, "Connection", Watched)
    return seen


@pytest.fixture
def store(opened: Opener) -> Any:
    return opened(payload_max=200)


def mixed(size: int) -> Iterator[Batch]:
    """Everything a run can do in a crowd, each of it often enough to be one."""
    steady, turned, ending, silent, new = (ids(size, shift) for shift in (0, 1_000, 2_000, 3_000, 4_000))
    timers = f.SetTimer(ONE, 5), f.SetTimer(TWO, 6), f.SetTimer(THREE, 6)
    yield Batch(births([*steady, *turned, *ending, *silent], WORK, *timers))
    yield Batch(
        [
            *(commit(0, started(run, input=LARGE), run=run, effects=(WORK, *timers)) for run in new),
            *(step(run, effects=(f.ClearTimer(ONE), f.SetTimer(TWO, 7))) for run in steady),
            *(commit(1, e.Custom(2, 8, "x", {"v": LARGE}), run=run, busy=True) for run in turned),
            *(commit(1, e.RunCompleted(2, 9, {"ü": 1}), run=run, status=RunStatus.COMPLETED) for run in ending),
            *(commit(1, run=run, effects=(f.OpenGate(TOKEN, "n"),)) for run in silent),
        ],
        done=list(range(1, 3 * size)),
    )


def test_both_ways_write_the_same(tmp_path: Path, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    for name, crowd in (("at once", 1), ("one by one", 1 << 30)):
        monkeypatch.setattr(crowds, "CROWD", crowd)
        place = tmp_path / name
        store: Any = Spoken(runner.run(SqliteStore.open(place, payload_max=200)), runner)
        fence = store.held()
        for batch in mixed(2 * len(NAMES)):
            store.commit(batch, fence)
        assert store.integrity() == []
        store.close()
        written.append(everything(place))
    assert all(written[0][table] for table in TABLES)
    assert written[0] == written[1]


def test_what_a_crowd_wrote_is_read_as_it_was_given(store: Any) -> None:
    fence = store.held()
    runs = ids(3 * crowds.CROWD)
    store.commit(Batch(births(runs)), fence)
    store.commit(Batch([commit(1, e.Custom(2, 7, "x", {"v": run}), run=run) for run in runs]), fence)
    assert store.runs() == runs
    for run in runs:
        assert store.history(run, after=1) == [e.Custom(2, 7, "x", {"v": run})]
        assert store.runs(tag=run) == store.runs(entity=run) == [run]


def test_a_crowd_is_one_statement_of_each_kind(opened: Opener, asked: list[tuple[str, str]]) -> None:
    store = opened()
    fence = store.held()
    crowd, few = ids(crowds.CROWD), ids(crowds.CROWD - 1, 100)
    store.commit(Batch([one for run in (*crowd, *few) for one in begin(run).commits]), fence)
    asked.clear()
    store.commit(Batch([step(run) for run in crowd]), fence)
    kinds = ("check_fence", "step_run_all", "append_history_all")
    assert asked == [("once", sql) for sql in ("BEGIN IMMEDIATE", *(SQL[kind] for kind in kinds), "COMMIT")]
    asked.clear()
    store.commit(Batch([step(run) for run in few]), fence)
    assert [sql for how, sql in asked if how == "each"] == [SQL["step_run"], SQL["append_history"]]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.COMPLETED])
def test_a_stale_run_among_a_thousand_is_named_and_nothing_is_written(
    store: Any, place: Path, status: RunStatus
) -> None:
    fence = store.held()
    runs = ids(1_000)
    store.commit(Batch(births(runs)), fence)
    store.commit(Batch([step(runs[700])]), fence)
    before = everything(place)
    good = [*births(ids(100, 5_000)), *(step(run, status=status) for run in runs)]
    with pytest.raises(StoreConflict) as refused:
        store.commit(Batch(good), fence)
    assert refused.value.kind == "STALE_VERSION"
    assert str(refused.value).endswith(f"run {runs[700]} is at 2, the decision saw 1")
    assert everything(place) == before


@pytest.mark.usefixtures("way")
def test_a_crowd_of_starts_with_one_that_is_there_already_is_refused(store: Any, place: Path) -> None:
    fence = store.held()
    runs = ids(100)
    store.commit(begin(runs[40]), fence)
    before = everything(place)
    with pytest.raises(StoreConflict, match="is at 1, the decision saw 0") as refused:
        store.commit(Batch(births(runs)), fence)
    assert refused.value.kind == "STALE_VERSION"
    assert everything(place) == before


@pytest.mark.usefixtures("way")
def test_a_crowd_of_starts_with_a_key_twice_is_refused(store: Any, place: Path) -> None:
    fence = store.held()
    store.commit(begin(RunId("first"), key="k60"), fence)
    before = everything(place)
    crowd = [one for n, run in enumerate(ids(100)) for one in begin(run, key=f"k{n}").commits]
    with pytest.raises(StoreConflict, match="idempotency key 'k60' exists already") as refused:
        store.commit(Batch(crowd), fence)
    assert refused.value.kind == "DUPLICATE"
    assert everything(place) == before


@pytest.mark.usefixtures("way")
def test_a_crowd_of_whoever_lost_the_lease_writes_nothing(store: Any, place: Path) -> None:
    fence = store.held()
    store.commit(Batch(births(ids(100))), fence)
    store.lease(0, "b", 200, 100)
    before = everything(place)
    with pytest.raises(StoreConflict):
        store.commit(Batch([step(run) for run in ids(100)]), fence)
    assert everything(place) == before


@pytest.mark.usefixtures("way")
def test_a_refused_crowd_leaves_those_that_share_its_transaction_alone(place: Path) -> None:
    async def whole() -> None:
        store = await SqliteStore.open(place)
        fence = await store.lease(0, "a", 0, 100)
        assert fence is not None and store._writer is not None
        good, bad = ids(100), ids(100, 1_000)
        await store.commit(Batch(births(good)), fence)
        gate = threading.Event()
        before = store._writer.do(lambda _connection: gate.wait())
        waiting = [
            store.commit(Batch([step(run) for run in good]), fence),
            store.commit(Batch([*births(bad), step(good[0])]), fence),
            store.commit(Batch([step(run, 2) for run in good]), fence),
        ]
        gate.set()
        await before
        first, refused, last = await asyncio.gather(*waiting, return_exceptions=True)
        assert first == last == []
        assert isinstance(refused, StoreConflict)
        assert [len(await store.history(run)) for run in (good[0], good[-1], bad[0])] == [3, 3, 0]
        await store.close()

    asyncio.run(whole())


def test_blocks_too_large_to_be_put_together_go_one_by_one(
    opened: Opener, asked: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    fence = store.held()
    runs = ids(100)
    monkeypatch.setattr(crowds, "JOINED_MAX", 100)
    store.commit(Batch(births(runs)), fence)
    store.commit(Batch([step(run) for run in runs]), fence)
    assert asked.count(("each", SQL["append_history"])) == 2
    assert [len(store.history(run)) for run in runs] == [2] * 100


def test_more_rows_than_a_statement_has_parameters(store: Any, place: Path) -> None:
    fence = store.held()
    runs = [RunId(f"run-{n}") for n in range(100_001)]
    store.commit(Batch([one for run in runs for one in begin(run).commits]), fence)
    store.commit(Batch([step(run) for run in runs]), fence)
    connection = connect(place)
    assert connection.execute("SELECT count(*), min(seq), max(seq) FROM runs").fetchone() == (len(runs), 2, 2)
    assert connection.execute("SELECT count(*), count(DISTINCT run) FROM history").fetchone() == (
        2 * len(runs),
        len(runs),
    )
    assert connection.execute(SQL["runs_out_of_step"]).fetchall() == []
    connection.close()
    assert store.history(runs[-1], after=1) == [e.Custom(2, 7, "x")]


def test_a_crowd_finds_its_runs_by_their_index(opened: Opener, place: Path) -> None:
    opened()
    connection = connect(place)
    for name in sorted(
        name for name in SQL if name.endswith("_all") and name not in ("create_run_all", "effect_done_all")
    ):
        given = ("[]", b"") if name == "append_history_all" else ("[]",)
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", given)]
        assert any("SEARCH runs USING" in line and "(run=?)" in line for line in plan), plan
        assert [line for line in plan if "SCAN" in line] == ["SCAN jsonb_each VIRTUAL TABLE INDEX 1:"], plan
    connection.close()
