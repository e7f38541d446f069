"""Rows that are kept beside the histories of some runs, for `fsck`. Must not write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from treadle.model.ids import RunId
from treadle.store.port import OutboxRow
from treadle.store.seals import Tell
from treadle.store.sqlite.entities import moves_of_runs
from treadle.store.sqlite.reading import SqliteValues, effect_of
from treadle.store.sqlite.transfer import SQL
from treadle.store.transfer import Beside


def beside(connection: apsw.Connection, runs: Sequence[RunId], tell: Tell) -> Beside:
    """The rows that are kept beside these runs' histories."""
    wanted = msgspec.json.encode(list(runs)).decode()
    found = Beside({}, {}, {}, {}, {})
    for run, timer, due in connection.execute(SQL["timers_of_runs"], (wanted,)):
        found.timers.setdefault(run, {})[timer] = due
    for run, token, *changed in connection.execute(SQL["gates_of_runs"], (wanted,)):
        found.gates.setdefault(run, {})[token] = tuple(changed)
    for run, start, key in connection.execute(SQL["items_of_runs"], (wanted,)):
        found.items.setdefault(run, {})[start] = key
    for move in moves_of_runs(connection, runs):
        found.moves.setdefault(move.run, []).append(move)
    values = SqliteValues(connection)
    rows: list[tuple[Any, ...]] = connection.execute(SQL["outbox_of_runs"], (wanted,)).fetchall()
    rows += connection.execute(SQL["work_of_runs"], (wanted,)).fetchall()
    for id, run, packed, parked in rows:
        effect = effect_of(connection, values, id, run, packed, tell)
        if effect is not None:
            found.outbox.setdefault(run, []).append(OutboxRow(id, run, effect, parked))
    return found
