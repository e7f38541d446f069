"""What the bare machine does with the rows an engine wrote to PostgreSQL: raw asyncpg, no kernel, no store, no fence.

A floor works in a database with the store's own schema (every table, partition, index and check) and writes the rows
the engine has just written: a run's row created with its first block of history and moved on with each next one, as the
engine did. Blocks are ready as bytes: packing, deciding, executing and the step's own function cost a floor nothing.

Four floors, each on one connection with prepared statements that are not planned anew, each its own transaction:

    one_row       one row of history per commit, nothing else: what a commit costs on this machine
    one_by_one    all rows of a step (the run's and the block) per commit, step after step
    together      chains side by side over a writer that commits everything queued at once, rows as arrays, each chain
                  waiting until its step is durable before it writes the next (group commit)
    branches      the same of a fan-out, which has no next: each branch is one row with its share of the bytes, all are
                  queued at once
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Any

import asyncpg

from bench.floors import Step
from treadle.model.codec import uncompressed
from treadle.store.postgres.connect import migrate

CREATE = """
INSERT INTO runs (run, shard, workflow, version, status, busy, seq, started, changed, idempotency_key, entity, parent,
    tags, first_day, last_day)
SELECT * FROM unnest($1::text[], $2::integer[], $3::text[], $4::bigint[], $5::text[], $6::boolean[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::text[], $11::text[], $12::text[], $13::text[], $14::date[], $15::date[])
"""
MOVE = """
UPDATE runs SET seq = moved.seq, changed = moved.changed, status = moved.status, busy = moved.busy
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::boolean[])
    AS moved (run, before, seq, changed, status, busy)
WHERE runs.run = moved.run AND runs.seq = moved.before
"""
APPEND = """
INSERT INTO history (run, seq, block, day)
SELECT new.run, new.seq, new.block, ${day}::date
FROM unnest(${run}::text[], ${seq}::bigint[], ${block}::bytea[]) AS new (run, seq, block)
"""


def _with(first: str, width: int) -> str:
    names = {name: width + place for place, name in enumerate(("day", "run", "seq", "block"), 1)}
    append = APPEND
    for name, place in names.items():
        append = append.replace(f"${{{name}}}", f"${place}")
    return f"WITH of_runs AS ({first}) {append}" if first else append


CREATE_AND_APPEND, MOVE_AND_APPEND, APPEND_ALONE = _with(CREATE, 15), _with(MOVE, 6), _with("", 0)


COLUMNS = (
    "run, shard, workflow, version, status, busy, seq, started, changed, idempotency_key, entity, parent, tags, "
    "first_day, last_day"
)


async def steps_of(dsn: str) -> list[Step]:
    """What an engine has written, run after run. A run that goes on is running and busy, as in the store."""
    connection = await asyncpg.connect(dsn)
    runs = {row[0]: tuple(row) for row in await connection.fetch(f"SELECT {COLUMNS} FROM runs ORDER BY created")}
    blocks: defaultdict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for run, seq, block in await connection.fetch("SELECT run, seq, block FROM history ORDER BY run, seq"):
        blocks[run].append((seq, uncompressed(block)))
    await connection.close()
    steps = []
    for run, row in runs.items():
        before = 0
        for seq, block in blocks[run]:
            steps.append(Step(run, seq, block, before, row[4] if seq == row[6] else "running", row))
            before = seq
    return steps


class Bare:
    """A connection to a database with nothing but the schema in it."""

    def __init__(self, connection: asyncpg.Connection, day: date) -> None:
        self.connection = connection
        self._day = day

    @classmethod
    async def open(cls, dsn: str) -> Bare:
        await migrate(dsn, 64)
        connection = await asyncpg.connect(dsn)
        day = await connection.fetchval("SELECT (now() AT TIME ZONE 'UTC')::date")
        await connection.execute("SET jit = off; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")
        return cls(connection, day)

    async def clear(self) -> None:
        """As if nothing had been written."""
        await self.connection.execute("TRUNCATE runs, history; CHECKPOINT")

    async def append(self, step: Step) -> None:
        """One row, one commit."""
        await self.connection.execute(APPEND_ALONE, self._day, [step.run], [step.seq], [step.block])

    async def write(self, steps: Sequence[Step]) -> None:
        """One commit. Those that begin a run and those that move one come apart."""
        born = [step for step in steps if step.before == 0]
        on = [step for step in steps if step.before]
        if born:
            rows = [
                (*step.row[:4], step.status, step.status == "running", step.seq, *step.row[7:13], self._day, self._day)
                for step in born
            ]
            await self._write(CREATE_AND_APPEND, rows, born)
        if on:
            await self._write(MOVE_AND_APPEND, list(_moved(on).values()), on)

    async def _write(self, statement: str, rows: Sequence[Sequence[Any]], steps: Sequence[Step]) -> None:
        blocks = zip(*((step.run, step.seq, step.block) for step in steps), strict=True)
        await self.connection.execute(statement, *zip(*rows, strict=True), self._day, *blocks)

    async def close(self) -> None:
        await self.connection.close()


def _moved(steps: Sequence[Step]) -> dict[str, tuple[Any, ...]]:
    """Steps of one run that come together move its row once."""
    moved: dict[str, tuple[Any, ...]] = {}
    for step in steps:
        before = moved[step.run][1] if step.run in moved else step.before
        moved[step.run] = (step.run, before, step.seq, step.row[8], step.status, step.status == "running")
    return moved


async def one_row(bare: Bare, steps: Sequence[Step]) -> float:
    """Seconds for all blocks, each one row and one commit."""
    began = time.perf_counter()
    for step in steps:
        await bare.append(step)
    return time.perf_counter() - began


async def one_by_one(bare: Bare, steps: Sequence[Step]) -> float:
    """Seconds for all steps, each its own commit."""
    began = time.perf_counter()
    for step in steps:
        await bare.write([step])
    return time.perf_counter() - began


async def together(bare: Bare, steps: Sequence[Step]) -> float:
    """Seconds for all steps, chains side by side, commits shared."""
    chains: defaultdict[str, list[Step]] = defaultdict(list)
    for step in steps:
        chains[step.run].append(step)
    return await _side_by_side(bare, list(chains.values()))


async def branches(bare: Bare, steps: Sequence[Step]) -> float:
    """Seconds for a fan-out of as many branches as there are steps, none waiting for another, commits shared."""
    return await _side_by_side(bare, [[step] for step in steps])


async def _side_by_side(bare: Bare, chains: list[list[Step]]) -> float:
    writer = _Writer(bare)
    began = time.perf_counter()
    await asyncio.gather(*(_chain(writer, chain) for chain in chains))
    return time.perf_counter() - began


FLOORS = {floor.__name__: floor for floor in (one_row, one_by_one, together, branches)}


async def _chain(writer: _Writer, steps: list[Step]) -> None:
    for step in steps:
        await writer.write(step)


class _Writer:
    """Takes everything queued, commits it, tells everybody; what comes meanwhile is the next commit."""

    def __init__(self, bare: Bare) -> None:
        self._bare = bare
        self._queued: list[tuple[Step, asyncio.Future[None]]] = []
        self._work: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    def write(self, step: Step) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._loop.create_future()
        self._queued.append((step, future))
        if self._work is None:
            self._work = self._loop.create_task(self._drain())
        return future

    async def _drain(self) -> None:
        while self._queued:
            taken, self._queued = self._queued, []
            await self._bare.write([step for step, _ in taken])
            for _, future in taken:
                future.set_result(None)
            await asyncio.sleep(0)  # whoever was told queues its next step
        self._work = None
