"""The SQLite store against a bare loop of commits on the same disk: what one durable step costs, and what a crowd
pays.

Ratios within one run count: the disk is shared. The bare loop is the floor: one row, one commit, one thread, no engine.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw

from bench.report import Report
from treadle.model import events as e
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.store.port import Batch, Commit, Fence, RunQuery
from treadle.store.sqlite import SqliteStore

NAME = "store"

STEPS = 400
STEP_RATIO_MAX = 1.5
"""One durable step against one bare commit."""
CROWD = 100
ROUNDS = 50
RUN = RunId("0198c0de-0000-7000-8000-000000000001")


def run(report: Report) -> None:
    with TemporaryDirectory() as directory:
        place = Path(directory)
        bare, step = asyncio.run(_chain(place))
        report.figure("bare loop, one row per commit, p50", bare * 1e3, "ms")
        report.figure("SqliteStore.commit of one step, p50", step * 1e3, "ms")
        report.figure("step against bare commit", step / bare, "×", STEP_RATIO_MAX)
        report.figure(f"batches of {CROWD} steps", asyncio.run(_crowd(place)), "steps/s")
        here, through = asyncio.run(_questions(place))
        report.figure("a run by its id, on the caller's side", here * 1e6, "µs")
        report.figure("a short history, through the reader's thread", through * 1e6, "µs")


def _events(seq: int) -> list[e.Event]:
    """What a step of a chain writes."""
    at = 1_760_000_000_000 + seq
    return [
        e.TokenCompleted(seq + 1, at, TokenId(seq), {"v": seq, "text": "a small result"}),
        e.ContextUpdated(seq + 2, at, [(("state", "n"), seq)]),
        e.TokenCreated(seq + 3, at, TokenId(seq + 1), "next", "next", via="n-next", origin=TokenId(seq)),
        e.TokenDispatched(seq + 4, at, TokenId(seq + 1), 1, {"v": seq}),
    ]


def _step(run: RunId, seq: int) -> Commit:
    return Commit(run, seq, _events(seq), (), RunStatus.RUNNING, True)


async def _opened(place: Path, runs: list[RunId]) -> tuple[SqliteStore, Fence]:
    store = await SqliteStore.open(place)
    fence = await store.lease(0, "bench", 0, 1 << 50)
    assert fence is not None
    starts = [Commit(run, 0, [e.RunStarted(1, 0, run, "w", 1, "h", None)], (), RunStatus.RUNNING, True) for run in runs]
    await store.commit(Batch(starts), fence)
    return store, fence


async def _chain(place: Path) -> tuple[float, float]:
    """Medians of a bare commit and of a step, taken in turns: whatever else the disk does, it does to both."""
    bare = apsw.Connection(str(place / "bare.db"))
    for setting in ("journal_mode = wal", "synchronous = full"):
        bare.execute(f"PRAGMA {setting}").fetchall()
    bare.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, block BLOB)")
    store, fence = await _opened(place / "chain.db", [RUN])
    content = b"x" * 250
    floors, steps = [], []
    seq = 1
    for _ in range(STEPS):
        begun = time.perf_counter()
        bare.execute("BEGIN IMMEDIATE")
        bare.execute("INSERT INTO rows (block) VALUES (?)", (content,))
        bare.execute("COMMIT")
        middle = time.perf_counter()
        await store.commit(Batch([_step(RUN, seq)]), fence)
        floors.append(middle - begun)
        steps.append(time.perf_counter() - middle)
        seq += 4
    await store.close()
    bare.close()
    return statistics.median(floors), statistics.median(steps)


async def _crowd(place: Path) -> float:
    runs = [RunId(f"{RUN}-{i:06}") for i in range(CROWD * 10)]
    store, fence = await _opened(place / "crowd.db", runs)
    seqs = dict.fromkeys(runs, 1)
    begun = time.perf_counter()
    for turn in range(ROUNDS):
        chosen = runs[turn * CROWD % len(runs) :][:CROWD]
        await store.commit(Batch([_step(run, seqs[run]) for run in chosen]), fence)
        for run in chosen:
            seqs[run] += 4
    spent = time.perf_counter() - begun
    await store.close()
    return ROUNDS * CROWD / spent


async def _questions(place: Path) -> tuple[float, float]:
    store, fence = await _opened(place / "asked.db", [RUN])
    await store.commit(Batch([_step(RUN, 1)]), fence)

    async def here() -> None:
        await store.find_runs(RunQuery(run=RUN))

    async def through() -> None:
        await store.history(RUN)

    spent = [await _median(here), await _median(through)]
    await store.close()
    return spent[0], spent[1]


async def _median(ask: Callable[[], Awaitable[None]]) -> float:
    times = []
    for _ in range(STEPS):
        begun = time.perf_counter()
        await ask()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)
