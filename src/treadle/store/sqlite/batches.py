"""The rows of a batch as statements.

Owns what a commit writes. A batch becomes a plan on the caller's side (`store.planning`), and the plan is written
inside a transaction of the writer's thread. Promises: all or nothing, refused exactly when the port says so. Must not
read more than it needs: a step of a chain is the fence, one UPDATE, one INSERT.

`executemany` with a sub-select for the run's number measured best: 9 µs a step in a batch of 100 with its commit,
against 16 with arrays passed as JSON and 22 with single statements (CPU time of the thread, p50). Arrays leave the
interpreter to the loop while SQLite works, rows do not; still 1,000 runs of 5 steps took 1.04 times as long with them
on a disk and 0.98 in memory (two quiet cores, 16 laps in turns; 0.99 and 0.95 with a switch interval of 1 ms), because
the thread then waits for its turn after every statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw
import msgspec

from treadle.model.events import Beginning
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED
from treadle.store import planning
from treadle.store.fencing import check_cover, refusal
from treadle.store.gates import changing, words_of, written
from treadle.store.packing import sealed_answer, sealed_assign, sealed_wish
from treadle.store.planning import RunDecisions, key_taken, stale
from treadle.store.port import Batch, CommitRows, Fence, GateRow, InboxAnswer, OutboxRow
from treadle.store.sqlite.entities import write_moves
from treadle.store.sqlite.queries import SQL
from treadle.store.sqlite.run_times import note_starts
from treadle.store.sqlite.service import SqliteEntries
from treadle.store.sqlite.threads import JobMisfit
from treadle.store.sqlite.work import now_ms, write_work

Row = tuple[Any, ...]


class SqliteBatchPlan(planning.BatchPlan):
    """A packed batch that can be written to a file. See the module's docstring."""

    def __init__(self, batch: Batch, payload_max: int) -> None:
        super().__init__(batch, payload_max)
        self._entries = SqliteEntries(batch.entries) if batch.entries else None
        self._numbers: dict[RunId, int] = {}

    def write(
        self, connection: apsw.Connection, fences: Sequence[Fence], now: Callable[[], int] = now_ms
    ) -> list[OutboxRow]:
        """Writes the batch inside a transaction. Raises `StoreConflict`; then the transaction has to be undone. `now`
        is the store's clock."""
        batch = self.batch
        check_fences(connection, fences)
        check_cover(fences, self.runs, 1)
        if not (batch.commits or batch.done or batch.parked or batch.revived or batch.answers or batch.entries):
            probe(connection, fences)
        if self.flaw is not None:
            raise JobMisfit(self._explained)
        many = connection.executemany
        if batch.done:
            many(SQL["effect_done"], [(row,) for row in batch.done])
        if self.runs:
            self._write_runs(connection)
            self._append(connection)
        if self.items:
            self._note_items(connection)
        if self.versions:
            many(SQL["note_version"], [(version, run) for run, version in self.versions.items()])
        if self.moves:
            write_moves(connection, self.moves)
        if self.blobs:
            many(SQL["put_blob"], [(digest, content) for _, digest, content in self.blobs])
            many(SQL["own_blob"], [(run, digest) for run, digest, _ in self.blobs])
        if self.timers:
            self._write_timers(connection)
        if self.gates or self.notes or self.ended:
            self._write_gates(connection)
        if self.work or self.held:
            write_work(connection, self, now())
        rows = CommitRows(self._write_effects(connection) if self.effects else ())
        rows.numbers = self._numbers
        if batch.revived:
            many(SQL["park_effect"], [(None, row) for row in batch.revived])
        if batch.parked:
            many(SQL["park_effect"], [(reason, row) for row, reason in batch.parked])
        if batch.answers:
            plain = [answer for answer in batch.answers if answer.asked is None]
            many(SQL["answer_request"], [(sealed_answer(answer), answer.request) for answer in plain])
            many(SQL["keep_answered"], [_answered(answer) for answer in batch.answers if answer.asked is not None])
        if self._entries is not None:
            self._entries.write(connection)
        return rows

    def _append(self, connection: apsw.Connection) -> None:
        blocks = self.blocks
        if blocks and connection.execute(SQL["log_last"]).get is not None:
            connection.execute(SQL["append_behind"], blocks[0])
            connection.execute(SQL["clear_log_last"])
            blocks = blocks[1:]
        connection.executemany(SQL["append_history"], blocks)

    def _write_runs(self, connection: apsw.Connection) -> None:
        begun = [decided for decided in self.runs.values() if decided.expected == 0]
        steady: list[dict[str, Any]] = []
        ending: list[dict[str, Any]] = []
        for decided in self.runs.values():
            if decided.expected:
                (ending if decided.commit.status in RUN_ENDED else steady).append(_moved(decided))
        try:
            if begun:
                self._numbers = _create(connection, begun)
                keys = [key for decided in begun if (key := _key(decided.started)) is not None]
                if any(connection.execute(SQL["item_with_key"], key).get is not None for key in keys):
                    raise JobMisfit(self._explained)
            # The likelier statement first; the other one handles the remaining rows.
            moved = _matched(connection, steady, "step_run", "turn_run")
            moved += _matched(connection, ending, "turn_run", "step_run")
        except apsw.ConstraintError as problem:
            raise JobMisfit(self._explained) from problem
        if moved != len(steady) + len(ending):
            raise JobMisfit(self._explained)

    def _explained(self, connection: apsw.Connection) -> Exception:
        """The refusal for the decision that did not fit. Called when the transaction is undone: rows are as before."""
        for run, decided in self.runs.items():
            stands = connection.execute(SQL["where_run_stands"], (run,)).get or 0
            if stands != decided.expected:
                return stale(run, stands, decided.expected)
        if self.flaw is not None:
            return self.flaw
        taken: set[tuple[str, str]] = set()
        for key in self._claimed():
            if key in taken or _has_key(connection, key):
                return key_taken(*key)
            taken.add(key)
        return RuntimeError("a batch was refused by the file, and nothing in the file says why")

    def _claimed(self) -> list[tuple[str, str]]:
        """The keys of runs that begin in this batch, and of starts that become items."""
        first = [decided.events[0] for decided in self.runs.values() if decided.expected == 0]
        keys = [_key(started) for started in first if isinstance(started, Beginning)]
        keys += [(item.workflow, item.key) if item.key is not None else None for _, item in self.items]
        return [key for key in keys if key is not None]

    def _note_items(self, connection: apsw.Connection) -> None:
        keys = [(item.workflow, item.key) for _, item in self.items if item.key is not None]
        if len(set(keys)) < len(keys) or any(_has_key(connection, key) for key in keys):
            raise JobMisfit(self._explained)
        rows = [(item.start, run, item.workflow, item.key) for run, item in self.items]
        connection.executemany(SQL["note_item"], rows)

    def _write_timers(self, connection: apsw.Connection) -> None:
        gone = [key for key, due in self.timers.items() if due is None]
        kept = [(*key, due) for key, due in self.timers.items() if due is not None]
        if gone:
            connection.executemany(SQL["clear_timer"], gone)
        if kept:
            connection.executemany(SQL["set_timer"], kept)

    def _write_gates(self, connection: apsw.Connection) -> None:
        closed = [key for key, row in self.gates.items() if row is None]
        opened = [row for row in self.gates.values() if row is not None]
        if self.ended:
            connection.executemany(SQL["close_gates"], [(run,) for run in self.ended])
        if closed:
            connection.executemany(SQL["close_gate"], closed)
        if opened:
            connection.executemany(SQL["open_gate"], [_gate(row) for row in opened])
        if self.notes:
            connection.executemany(SQL["note_gate"], [(*changing(note), *key) for key, note in self.notes.items()])

    def _write_effects(self, connection: apsw.Connection) -> list[OutboxRow]:
        packed = [(run, effect) for (run, _), effect in zip(self.effects, self.packed_effects, strict=True)]
        ids = connection.executemany(SQL["add_effect"], packed)
        return [OutboxRow(id, run, effect) for (id,), (run, effect) in zip(ids, self.effects, strict=True)]


def probe(connection: apsw.Connection, fences: Sequence[Fence]) -> None:
    """An empty batch asks whether the store works. It really writes, because a full disk can still be read."""
    connection.executemany(SQL["touch_lease"], [(fence.shard,) for fence in fences])


def check_fences(connection: apsw.Connection, fences: Sequence[Fence]) -> None:
    """Refuses a batch whose fences are not the newest."""
    for fence in fences:
        if connection.execute(SQL["check_fence"], (fence.shard, fence.owner, fence.epoch)).get is None:
            rows = [(given.shard, connection.execute(SQL["read_lease"], (given.shard,)).fetchone()) for given in fences]
            refused = refusal(fences, {shard: held[:2] for shard, held in rows if held})
            if refused is not None:
                raise refused


def _key(started: Beginning) -> tuple[str, str] | None:
    return (started.workflow, started.idempotency_key) if started.idempotency_key is not None else None


def _has_key(connection: apsw.Connection, key: tuple[str, str]) -> bool:
    return any(connection.execute(SQL[name], key).get is not None for name in ("run_with_key", "item_with_key"))


def _moved(decided: RunDecisions) -> dict[str, Any]:
    """The parameters of `step_run` and `turn_run`. A decision without events leaves `changed` to the row."""
    commit = decided.commit
    return {
        "run": commit.run,
        "expected": decided.expected,
        "last": decided.last,
        "changed": decided.events[-1].at if decided.events else None,
        "status": commit.status.value,
        "busy": int(commit.busy),
    }


def _matched(connection: apsw.Connection, rows: Sequence[dict[str, Any]], first: str, second: str) -> int:
    if not rows:
        return 0
    before = connection.total_changes()
    connection.executemany(SQL[first], rows)
    if connection.total_changes() - before < len(rows):
        connection.executemany(SQL[second], rows)
    return connection.total_changes() - before


def _create(connection: apsw.Connection, begun: list[RunDecisions]) -> dict[RunId, int]:
    """Adds the runs. Returns their numbers."""
    note_starts(connection, [decided.began for decided in begun])
    connection.executemany(SQL["create_run"], [_run_row(decided) for decided in begun])
    first = connection.last_insert_rowid() - len(begun) + 1  # within a transaction rows are numbered one by one
    tags = [(tag, decided.commit.run) for decided in begun for tag in decided.started.tags]
    if tags:
        connection.executemany(SQL["tag_run"], tags)
    return {decided.commit.run: first + place for place, decided in enumerate(begun)}


def _run_row(decided: RunDecisions) -> Row:
    started = decided.started
    return (
        decided.commit.run,
        started.workflow,
        started.version,
        decided.commit.status.value,
        int(decided.commit.busy),
        decided.last,
        decided.began,
        decided.events[-1].at,
        started.idempotency_key,
        started.entity.address if started.entity else None,
        started.parent.run if started.parent else None,
        msgspec.json.encode(started.tags).decode() if started.tags else None,
    )


def _answered(answer: InboxAnswer) -> Row:
    asked = answer.asked
    assert asked is not None
    wish = sealed_wish(asked)
    return (asked.id, asked.run, asked.workflow, asked.at, wish, asked.fingerprint, sealed_answer(answer))


def _gate(row: GateRow) -> Row:
    fixed = row.run, row.token, row.node, row.opened, row.title, sealed_assign(row), row.due
    return (*fixed, *changing(row), written(row.assign), words_of(row))
