"""What the bare machine does with the rows an engine wrote: the same file, the same statements, no kernel, no engine.

A floor opens its file as the store does (`connect`, `migrate`: every table, index, check, pragma, `synchronous=FULL`)
and replays what the engine has just written with the store's own statements, the fence checked in every transaction:
`create_run` for a run's first block, `step_run` for the next ones, `turn_run` for the last, `append_history` for each.
Blocks are ready as bytes, none of them compressed: packing, deciding, executing and the step's own function cost a
floor nothing.

Two floors. `one_by_one`: a loop with one commit per step, nothing else, on one thread. `together`: coroutines over a
writer thread that commits everything queued at once (group commit), each waiting until its step is durable before it
writes the next. A fan-out has no next: there each branch is one row with its share of the bytes, all are queued at
once, and the run's own row is written once per commit (`branches`). An engine folds branches that share a commit into
one row; a writer without a kernel does not know that it may.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

from treadle.model.codec import uncompressed
from treadle.store.sqlite.connect import connect, migrate
from treadle.store.sqlite.queries import SQL

OWNER = "floor"


class Step(Struct):
    """One block of one run, and what the commit that wrote it said of the run."""

    run: str
    seq: int
    block: bytes
    before: int
    """The seq of the run's block before; 0: this one begins it."""
    status: str
    row: tuple[Any, ...]
    """The run's row: on SQLite as the store creates it, on PostgreSQL as it was when the engine had finished."""


def steps_of(store: Path) -> list[Step]:
    """What an engine has written, in its order. A run that goes on is running and busy, as in the store."""
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    columns = "run, workflow, version, status, busy, seq, started, changed, idempotency_key, entity, parent, tags"
    runs = {row[0]: row[1:] for row in connection.execute(f"SELECT id, {columns} FROM runs")}
    steps: list[Step] = []
    before: dict[int, int] = {}
    for run, seq, block in connection.execute("SELECT run, seq, block FROM history ORDER BY id"):
        row = runs[run]
        status = row[3] if seq == row[5] else "running"
        created = (*row[:3], status, int(status == "running"), seq, *row[6:])
        steps.append(Step(row[0], seq, uncompressed(block), before.get(run, 0), status, created))
        before[run] = seq
    connection.close()
    return steps


def in_shares(steps: Sequence[Step], size: int) -> list[Step]:
    """A fan-out's bytes in equal shares, one row for each branch."""
    share = bytes(sum(len(step.block) for step in steps) // size)
    run, row = steps[0].run, steps[0].row
    return [Step(run, number + 1, share, number, "running", row) for number in range(size)]


class _File:
    """The floor's database."""

    def __init__(self, place: Path) -> None:
        self.connection = connect(place, writer=True)
        migrate(self.connection, place)
        self.connection.execute(SQL["take_lease"], (0, OWNER, 1, 1 << 50))

    def write(self, steps: list[Step]) -> None:
        """One transaction. Steps of one run that come together move its row once."""
        execute, many = self.connection.execute, self.connection.executemany
        execute("BEGIN IMMEDIATE")
        assert execute(SQL["check_fence"], (0, OWNER, 1)).get is not None
        born = [step for step in steps if step.before == 0]
        if born:
            many(SQL["create_run"], [(*step.row[:5], step.seq, *step.row[6:]) for step in born])
        moved: dict[str, dict[str, Any]] = {}
        for step in steps:
            if step.before and step.run in moved:
                moved[step.run]["last"] = step.seq
            elif step.before:
                moved[step.run] = {
                    "run": step.run,
                    "expected": step.before,
                    "last": step.seq,
                    "changed": step.row[7],
                    "status": step.status,
                    "busy": int(step.status == "running"),
                }
        for statement, ends in (("step_run", False), ("turn_run", True)):
            rows = [row for row in moved.values() if (row["status"] != "running") is ends]
            if rows:
                many(SQL[statement], rows)
        many(SQL["append_history"], [(step.run, step.seq, step.block) for step in steps])
        execute("COMMIT")

    def close(self) -> None:
        self.connection.close()


def one_by_one(place: Path, steps: list[Step]) -> float:
    """Seconds for all steps, each its own commit."""
    file = _File(place)
    began = time.perf_counter()
    for step in steps:
        file.write([step])
    seconds = time.perf_counter() - began
    file.close()
    return seconds


def together(place: Path, steps: list[Step]) -> float:
    """Seconds for all steps, chains side by side, commits shared."""
    chains: defaultdict[str, list[Step]] = defaultdict(list)
    for step in steps:
        chains[step.run].append(step)
    return asyncio.run(_side_by_side(place, list(chains.values())))


def branches(place: Path, steps: list[Step]) -> float:
    """Seconds for all steps, none waiting for another, commits shared."""
    return asyncio.run(_side_by_side(place, [[step] for step in steps]))


async def _side_by_side(place: Path, chains: list[list[Step]]) -> float:
    writer = _Writer(_File(place))
    began = time.perf_counter()
    await asyncio.gather(*(_chain(writer, chain) for chain in chains))
    seconds = time.perf_counter() - began
    writer.close()
    return seconds


async def _chain(writer: _Writer, steps: list[Step]) -> None:
    for step in steps:
        await writer.write(step)


class _Writer:
    """Takes everything queued, commits it, tells everybody."""

    def __init__(self, file: _File) -> None:
        self._file = file
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def write(self, step: Step) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((step, future))
        return future

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._file.close()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            taken = [first]
            while not self._queue.empty():
                taken.append(self._queue.get())
            over = taken[-1] is None
            taken = [item for item in taken if item is not None]
            self._file.write([step for step, _ in taken])
            self._loop.call_soon_threadsafe(_tell, [future for _, future in taken])
            if over:
                return


def _tell(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)
