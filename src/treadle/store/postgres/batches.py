"""A plan as one statement.

Owns what a commit writes. Promises: all or nothing, refused exactly when the port says so, one round trip whatever the
number of runs and shards. Must not read more than it needs.

Theory of operation
    Each table a batch changes is one part, with its rows as arrays (`columns.handed`); the parts are put together as
    one statement, which is its own transaction:

        WITH check_fences AS (… FOR NO KEY UPDATE), move_runs AS (UPDATE … RETURNING …), append_history AS (INSERT …), …
        SELECT 1 / CASE WHEN every guarded part has touched as many rows as it was given ($n) THEN 1 ELSE 0 END

    A part that does not fit divides by zero, which undoes everything; further queries then find the reason. Parts see
    the rows as they were before the statement and must not change the same row. The fence comes first in the condition
    and is locked first; a guarded UPDATE reads a row again if another transaction has changed it in between.

    A step that comes alone, as those of a lone chain do, is a statement of its own with plain values (`step_one`).

    There are few kinds of batches, so that a connection keeps their statements prepared. Queue work, whose parts may
    meet on one row, follows in statements of its own (`offers`), and so do moves of entities: then it is a transaction
    of several.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any

import asyncpg
import msgspec

from treadle.model.events import Beginning
from treadle.store.fencing import check_cover, refusal
from treadle.store.gates import changing, words_of, written
from treadle.store.packing import sealed_answer, sealed_assign, sealed_wish
from treadle.store.planning import BatchPlan, RunDecisions, key_taken, stale
from treadle.store.port import Fence, GateRow, OutboxRow
from treadle.store.postgres.columns import columns, handed, texts
from treadle.store.postgres.entities import write_moves
from treadle.store.postgres.offers import write_work
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.service import PostgresChanges
from treadle.store.postgres.transactions import Passing, TransactionMisfit
from treadle.store.rows import shard_of
from treadle.store.service import Changes

Part = tuple[str, Collection[Sequence[Any]]]
"""The name of a statement, and its rows."""

GUARDED = ("check_fences", "create_runs", "claim_keys", "move_runs")
"""Parts that must touch one row for each given row, in the order in which they are checked."""
LONE = ("check_fences", "move_runs", "append_history")
"""The parts of a single step; if each has one row, they are the statement `step_one`."""


class Writing:
    """One plan inside one transaction; may be run again in another."""

    def __init__(self, plan: BatchPlan, fences: Sequence[Fence], shards: int) -> None:
        self._plan = plan
        self._fences = fences
        self._shards = shards
        self._homes = {run: shard_of(run, shards) for run in plan.runs}
        if not {fence.shard for fence in fences}.issuperset(self._homes.values()):
            check_cover(fences, plan.runs, shards)
        self._begun = [decided for decided in plan.runs.values() if not decided.expected and decided.events]
        self._keys = [(*key, decided.commit.run) for decided in self._begun if (key := _key(decided.started))]
        self._keys += [(item.workflow, item.key, run) for run, item in plan.items if item.key is not None]
        rows = [part for part in self._parts() if part[1]]
        if not plan.batch.answers and _is_lone_step(rows):
            (_, (fence,)), (_, (moved,)), (_, ((_run, _seq, block),)) = rows
            self._statement, self._given = SQL["step_one"], [*fence, *moved, block]
            return
        parts = [(name, handed(SQL[name], given)) for name, given in rows]
        if any(answer.asked is None for answer in plan.batch.answers):
            parts.append(("answer_requests", self._answers()))
        self._statement = compose(tuple([(name, len(given)) for name, given in parts]))
        counts = [len(given) for name, given in rows if name in GUARDED]
        self._given = [*(column for _, given in parts for column in given), *counts]

    @property
    def is_alone(self) -> bool:
        """Whether the plan is a single statement."""
        plan = self._plan
        return not (plan.work or plan.held or plan.moves or plan.versions or plan.batch.entries)

    async def __call__(self, connection: asyncpg.Connection) -> list[OutboxRow]:
        """Writes the plan. Raises `TransactionMisfit`; then the transaction has to be undone."""
        if self._plan.flaw is not None:
            raise TransactionMisfit(self._explained)
        try:
            _, ids = await connection.fetchrow(self._statement, *self._given)
        except (asyncpg.DivisionByZeroError, asyncpg.UniqueViolationError):
            raise TransactionMisfit(self._explained) from None
        if not self.is_alone:
            await write_work(connection, self._plan, self._homes)
            await write_moves(connection, self._plan.moves)
            if self._plan.versions:
                await connection.executemany(SQL["note_version"], list(self._plan.versions.items()))
            if self._plan.batch.entries:  # last: the head of a chained log is locked until the commit
                await PostgresChanges(Changes(entries=self._plan.batch.entries)).write(connection)
        effects = self._plan.effects
        return [OutboxRow(id, run, effect) for id, (run, effect) in zip(ids or (), effects, strict=True)]

    def _parts(self) -> Iterator[Part]:
        plan, batch = self._plan, self._plan.batch
        yield "check_fences", [(fence.shard, fence.owner, fence.epoch) for fence in self._fences]
        if not (batch.commits or batch.done or batch.parked or batch.revived or batch.answers or batch.entries):
            # An empty batch asks whether the store works. It really writes, because a full disk can still be read.
            yield "touch_leases", [(fence.shard,) for fence in self._fences]
            return
        if self._begun:
            yield from self._of_new_runs()
        if self._keys:
            yield "claim_keys", self._keys
        if plan.items:
            yield "note_items", [(item.start, run, item.workflow, item.key) for run, item in plan.items]
        yield "move_runs", [_moved(decided) for decided in plan.runs.values() if decided.expected]
        yield "append_history", plan.blocks
        yield "put_blobs", plan.blobs
        if timers := plan.timers.items():
            yield "clear_timers", [key for key, due in timers if due is None]
            yield "set_timers", [(self._homes[key[0]], *key, due) for key, due in timers if due is not None]
        yield "drop_gates", [(run,) for run in plan.ended]
        if gates := plan.gates.items():
            yield "close_gates", [key for key, row in gates if row is None]
            yield "open_gates", [_gate(row) for _, row in gates if row is not None]
        if plan.notes:
            yield "note_gates", [(*key, *changing(note)) for key, note in plan.notes.items()]
        if plan.effects:
            effects = zip(plan.effects, plan.packed_effects, strict=True)
            yield "add_effects", [(self._homes[run], run, packed) for (run, _), packed in effects]
        yield "effects_done", [(row,) for row in batch.done]
        if batch.revived or batch.parked:
            reasons: dict[int, str | None] = {**dict.fromkeys(batch.revived), **dict(batch.parked)}
            yield "park_effects", [(id, why) for id, why in reasons.items() if id not in batch.done]
        if batch.answers:
            yield "keep_answered", self._answered_here()

    def _of_new_runs(self) -> Iterator[Part]:
        yield "create_runs", [_run_row(decided, self._homes) for decided in self._begun]
        begun = [(decided.commit.run, decided.started) for decided in self._begun]
        yield "tag_runs", [(run, tag) for run, started in begun for tag in started.tags]

    def _answered_here(self) -> list[Sequence[Any]]:
        """Requests that were not in the inbox, with their answers, as rows."""
        asked = {answer.request: (answer, answer.asked) for answer in reversed(self._plan.batch.answers)}
        return [
            (
                *(request.run, request.id, shard_of(request.run, self._shards), request.workflow, request.at),
                *(sealed_wish(request), request.fingerprint, sealed_answer(answer)),
            )
            for answer, request in asked.values()
            if request is not None
        ]

    def _answers(self) -> list[Sequence[Any]]:
        """The answers as rows. The first answer to a request counts. Requests are searched in the fences' shards."""
        answers = {
            answer.request: sealed_answer(answer)
            for answer in reversed(self._plan.batch.answers)
            if answer.asked is None
        }
        return [*handed(SQL["answer_requests"], answers.items()), [fence.shard for fence in self._fences]]

    async def _explained(self, connection: asyncpg.Connection) -> BaseException:
        """The reason why the plan did not fit. Called when the transaction is undone: rows are as before."""
        plan = self._plan
        rows = await connection.fetch(SQL["read_leases"], [fence.shard for fence in self._fences])
        if refused := refusal(self._fences, {shard: (owner, epoch) for shard, owner, epoch in rows}):
            return refused
        stands = dict(await connection.fetch(SQL["where_runs_stand"], texts(plan.runs)))
        for run, decided in plan.runs.items():
            if stands.get(run, 0) != decided.expected:
                return stale(run, stands.get(run, 0), decided.expected)
        if plan.flaw is not None:
            return plan.flaw
        keys = [(workflow, key) for workflow, key, _ in self._keys]
        taken = next((key for key in keys if keys.count(key) > 1), None)
        if taken is None and keys:
            taken = await connection.fetchrow(SQL["keys_taken"], *columns(keys))
        if taken is not None:
            return key_taken(*taken)
        # The other transaction has ended since: the conflict is over.
        return Passing("a batch did not fit, and nothing is left that says why")


async def check_fences(connection: asyncpg.Connection, fences: Sequence[Fence]) -> None:
    """Refuses fences that are not the newest. Else locks the leases: no node takes them until the transaction ends."""
    if not fences:
        return
    given = handed(SQL["check_fences"], [(fence.shard, fence.owner, fence.epoch) for fence in fences])
    if len(await connection.fetch(SQL["check_fences"], *given)) == len(fences):
        return
    rows = await connection.fetch(SQL["read_leases"], [fence.shard for fence in fences])
    raise refusal(fences, {shard: (owner, epoch) for shard, owner, epoch in rows}) or Passing("a lease has moved")


@cache
def compose(parts: tuple[tuple[str, int], ...]) -> str:
    """Joins several parts to one statement, given the number of parameters of each. The last parameters are the numbers
    of rows of the guarded parts. Its result: a constant, and the new ids."""
    bodies, guarded = [], []
    known = 0
    for name, width in parts:
        bodies.append(f"{name} AS ({renumbered(SQL[name], known)})")
        known += width
        if name in GUARDED:
            guarded.append(name)
    counts = {name: f"${known + place}::bigint" for place, name in enumerate(guarded, 1)}
    conditions = [f"(SELECT count(*) FROM {name}) = {counts[name]}" for name in GUARDED if name in counts]
    fits = " AND ".join(conditions) or "true"
    ids = "(SELECT array_agg(id ORDER BY id) FROM add_effects)" if ("add_effects", 3) in parts else "NULL"
    head = f"WITH {', '.join(bodies)} " if bodies else ""
    return f"{head}SELECT 1 / CASE WHEN {fits} THEN 1 ELSE 0 END, {ids}"


def _is_lone_step(parts: Sequence[Part]) -> bool:
    """Whether the plan is one step of one run and nothing else, as a lone chain writes."""
    return tuple(name for name, _ in parts) == LONE and all(len(rows) == 1 for _, rows in parts)


def renumbered(statement: str, known: int) -> str:
    """The parameters of a part, numbered after those of the parts before it."""
    return re.sub(r"\$(\d+)", lambda match: f"${known + int(match[1])}", statement)


def _key(started: Beginning) -> tuple[str, str] | None:
    return (started.workflow, started.idempotency_key) if started.idempotency_key is not None else None


def _gate(row: GateRow) -> tuple[Any, ...]:
    fixed = row.run, row.token, row.node, row.opened, row.title, sealed_assign(row), row.due
    return (*fixed, *changing(row), written(row.assign), words_of(row))


def _moved(decided: RunDecisions) -> tuple[Any, ...]:
    """A decision without events leaves `changed` to the row."""
    commit, events, seen = decided.commit, decided.events, decided.expected
    return commit.run, seen, seen + len(events), events[-1].at if events else None, commit.status, commit.busy


def _run_row(decided: RunDecisions, homes: dict[Any, int]) -> tuple[Any, ...]:
    started = decided.started
    return (
        decided.commit.run,
        homes[decided.commit.run],
        started.workflow,
        started.version,
        decided.commit.status.value,
        decided.commit.busy,
        decided.last,
        decided.began,
        decided.events[-1].at,
        started.idempotency_key,
        started.entity.address if started.entity else None,
        started.parent.run if started.parent else None,
        msgspec.json.encode(started.tags).decode() if started.tags else None,
    )
