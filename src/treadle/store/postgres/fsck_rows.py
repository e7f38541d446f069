"""Rows that are kept beside the histories of some runs, for `fsck`. Must not write."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from treadle.model.ids import RunId
from treadle.store.port import OutboxRow
from treadle.store.postgres.columns import texts
from treadle.store.postgres.entities import moves_of_runs
from treadle.store.postgres.transfer import SQL
from treadle.store.postgres.values import effects_of
from treadle.store.seals import Tell
from treadle.store.transfer import Beside


async def beside(connection: asyncpg.Connection, runs: Sequence[RunId], tell: Tell) -> Beside:
    """The rows that are kept beside these runs' histories."""
    named = texts(runs)
    found = Beside({}, {}, {}, {}, {})
    for run, timer, due in await connection.fetch(SQL["timers_of_runs"], named):
        found.timers.setdefault(run, {})[timer] = due
    for run, token, *changed in await connection.fetch(SQL["gates_of_runs"], named):
        found.gates.setdefault(run, {})[token] = tuple(changed)
    for run, start, key in await connection.fetch(SQL["items_of_runs"], named):
        found.items.setdefault(run, {})[start] = key
    for move in await moves_of_runs(connection, runs):
        found.moves.setdefault(move.run, []).append(move)
    rows = await connection.fetch(SQL["outbox_of_runs"], named)
    for row, effect in await effects_of(connection, rows, tell):  # queue work among them
        found.outbox.setdefault(row["run"], []).append(OutboxRow(row["id"], row["run"], effect, row["parked"]))
    return found
