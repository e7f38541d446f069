"""A plan as statements.

Owns what a commit writes and in which order. Promises: all or nothing, refused exactly when the port says so. Must not
read more than it needs: a step of any number of chains is the fence, one UPDATE, one INSERT.

Whatever can be refused comes first and effects come last, so that a refused batch has used up no id of the outbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import asyncpg
import msgspec

from treadle.errors import StoreConflict
from treadle.model.events import RunStarted
from treadle.model.ids import RunId
from treadle.store.packing import pack, pack_answer
from treadle.store.planning import Decided, Plan, stale
from treadle.store.port import Answer, Fence, OutboxRow
from treadle.store.postgres.connect import without_nul
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.transactions import Misfit, Passing
from treadle.store.rows import shard_of

Rows = Iterable[Sequence[Any]]


class Writing:
    """One plan inside one transaction; may be run again in another."""

    def __init__(self, plan: Plan, fence: Fence, shards: int) -> None:
        self._plan = plan
        self._fence = fence
        self._begun = [decided for decided in plan.runs.values() if decided.expected == 0 and decided.events]
        self._moved = [decided for decided in plan.runs.values() if decided.expected]
        check_shard(plan.runs, fence, shards)

    async def __call__(self, connection: asyncpg.Connection) -> list[OutboxRow]:
        """Raises `StoreConflict` or `Misfit`, and the transaction has to be undone."""
        plan, batch, shard = self._plan, self._plan.batch, self._fence.shard
        await check_fence(connection, self._fence)
        if plan.flaw is not None:
            raise Misfit(self._explained)
        if not (batch.commits or batch.done or batch.parked or batch.revived or batch.answers):
            # A batch of nothing asks whether the store works: it really writes, or a full disk would say yes.
            await connection.execute(SQL["touch_lease"], shard)
        if plan.runs:
            await self._write_runs(connection)
        if plan.blobs:
            await connection.execute(SQL["put_blobs"], *columns(plan.blobs, 3))
        if plan.timers:
            await self._write_timers(connection)
        if plan.gates or plan.ended:
            await self._write_gates(connection)
        if batch.done:
            await connection.execute(SQL["effects_done"], shard, list(batch.done))
        rows = await self._write_effects(connection) if plan.effects else []
        reasons: dict[int, str | None] = dict.fromkeys(batch.revived)
        reasons.update(batch.parked)
        if reasons:
            await connection.execute(SQL["park_effects"], shard, *columns(reasons.items(), 2))
        if batch.answers:
            await self._answer(connection, batch.answers)
        return rows

    @property
    def is_plain(self) -> bool:
        """Whether it is steps and nothing else."""
        plan, batch = self._plan, self._plan.batch
        others = plan.blobs or plan.timers or plan.gates or plan.ended or plan.effects or self._begun or plan.flaw
        return not (others or batch.done or batch.parked or batch.revived or batch.answers) and bool(plan.runs)

    async def step(self, connection: asyncpg.Connection) -> bool:
        """A plain one, as a transaction of its own. False: it did not fit, and nothing has happened."""
        fence = self._fence
        moved, blocks = columns(map(_moved, self._moved), 6), columns(self._plan.blocks, 3)
        try:
            await connection.fetchval(SQL["step_runs"], fence.shard, fence.owner, fence.epoch, *moved, *blocks)
        except (asyncpg.DivisionByZeroError, asyncpg.UniqueViolationError):
            return False
        return True

    async def _write_runs(self, connection: asyncpg.Connection) -> None:
        if self._begun:
            await self._create(connection)
        if self._moved:
            rows = columns(map(_moved, self._moved), 6)
            if count(await connection.execute(SQL["move_runs"], *rows)) != len(self._moved):
                raise Misfit(self._explained)
        if self._plan.blocks:
            await connection.execute(SQL["append_history"], *columns(self._plan.blocks, 3))

    async def _create(self, connection: asyncpg.Connection) -> None:
        begun = [(decided.commit.run, decided.started) for decided in self._begun]
        rows = columns(map(_run_row, self._begun), 12)
        if count(await connection.execute(SQL["create_runs"], self._fence.shard, *rows)) != len(begun):
            raise Misfit(self._explained)
        keys = [(*key, run) for run, started in begun if (key := _key(started))]
        if keys and count(await connection.execute(SQL["claim_keys"], *columns(keys, 3))) != len(keys):
            raise Misfit(self._explained)
        tags = [(run, tag) for run, started in begun for tag in started.tags]
        if tags:
            await connection.execute(SQL["tag_runs"], *columns(tags, 2))

    async def _explained(self, connection: asyncpg.Connection) -> BaseException:
        """Which decision did not fit, now that every row says again where it stood."""
        plan = self._plan
        stands = dict(await connection.fetch(SQL["where_runs_stand"], texts(plan.runs)))
        for run, decided in plan.runs.items():
            if stands.get(run, 0) != decided.expected:
                return stale(run, stands.get(run, 0), decided.expected)
        if plan.flaw is not None:
            return plan.flaw
        keys = [key for decided in self._begun if (key := _key(decided.started))]
        taken = next((key for key in keys if keys.count(key) > 1), None)
        taken = taken or await connection.fetchrow(SQL["keys_taken"], *columns(keys, 2))
        if taken is not None:
            return StoreConflict(
                "DUPLICATE", f"a run of {taken[0]} with the idempotency key {taken[1]!r} exists already"
            )
        # Whoever was in the way has gone since: from here it looks like a conflict that is over.
        return Passing("a batch did not fit, and nothing is left that says why")

    async def _write_timers(self, connection: asyncpg.Connection) -> None:
        gone = [key for key, due in self._plan.timers.items() if due is None]
        kept = [(*key, due) for key, due in self._plan.timers.items() if due is not None]
        if gone:
            await connection.execute(SQL["clear_timers"], *columns(gone, 2))
        if kept:
            await connection.execute(SQL["set_timers"], self._fence.shard, *columns(kept, 3))

    async def _write_gates(self, connection: asyncpg.Connection) -> None:
        closed = [key for key, row in self._plan.gates.items() if row is None]
        opened = [row for row in self._plan.gates.values() if row is not None]
        if self._plan.ended:
            await connection.execute(SQL["drop_gates"], texts(self._plan.ended))
        if closed:
            await connection.execute(SQL["close_gates"], *columns(closed, 2))
        if opened:
            rows = [
                (row.run, row.token, row.node, row.opened, row.title, _packed(row.assign), row.due) for row in opened
            ]
            await connection.execute(SQL["open_gates"], *columns(rows, 7))

    async def _write_effects(self, connection: asyncpg.Connection) -> list[OutboxRow]:
        effects = self._plan.effects
        given = await connection.fetch(
            SQL["add_effects"], self._fence.shard, texts(run for run, _ in effects), self._plan.packed_effects
        )
        ids = sorted(row[0] for row in given)
        return [OutboxRow(id, run, effect) for id, (run, effect) in zip(ids, effects, strict=True)]

    async def _answer(self, connection: asyncpg.Connection, answers: Sequence[Answer]) -> None:
        first = {answer.request: pack_answer(answer) for answer in reversed(answers)}
        await connection.execute(SQL["answer_requests"], self._fence.shard, texts(first), list(first.values()))


async def check_fence(connection: asyncpg.Connection, fence: Fence) -> None:
    """Refuses whoever does not hold the newest lease; else nobody takes it until the transaction ends."""
    if await connection.fetchval(SQL["check_fence"], fence.shard, fence.owner, fence.epoch) is not None:
        return
    held = await connection.fetchrow(SQL["read_lease"], fence.shard)
    now = f"epoch {held['epoch']} of {held['owner']}" if held else "nobody"
    raise StoreConflict(
        "LEASE_CONFLICT", f"shard {fence.shard} belongs to {now}, not to epoch {fence.epoch} of {fence.owner}"
    )


def check_shard(runs: Iterable[RunId], fence: Fence, shards: int) -> None:
    """Refuses runs that the fence says nothing about."""
    for run in runs:
        if (shard := shard_of(run, shards)) != fence.shard:
            raise StoreConflict("LEASE_CONFLICT", f"run {run} belongs to shard {shard}, the fence is of {fence.shard}")


def columns(rows: Rows, width: int) -> list[list[Any]]:
    """Rows as one array per column."""
    turned = [
        [without_nul(value) if isinstance(value, str) else value for value in column]
        for column in zip(*rows, strict=True)
    ]
    return turned or [[] for _ in range(width)]


def texts(values: Iterable[str]) -> list[str]:
    """An array of them."""
    return [without_nul(value) for value in values]


def count(tag: str) -> int:
    """How many rows a statement touched: `UPDATE 3`, `INSERT 0 3`."""
    return int(tag.rpartition(" ")[2])


def _key(started: RunStarted) -> tuple[str, str] | None:
    return (started.workflow, started.idempotency_key) if started.idempotency_key is not None else None


def _packed(value: Any) -> bytes | None:
    return pack(value) if value is not None else None


def _moved(decided: Decided) -> tuple[Any, ...]:
    """A decision without events leaves `changed` to the row."""
    commit = decided.commit
    changed = decided.events[-1].at if decided.events else None
    return commit.run, decided.expected, decided.last, changed, commit.status.value, commit.busy


def _run_row(decided: Decided) -> tuple[Any, ...]:
    started = decided.started
    return (
        decided.commit.run,
        started.workflow,
        started.version,
        decided.commit.status.value,
        decided.commit.busy,
        decided.last,
        started.at,
        decided.events[-1].at,
        started.idempotency_key,
        started.entity.id if started.entity else None,
        started.parent.run if started.parent else None,
        msgspec.json.encode(started.tags).decode() if started.tags else None,
    )
