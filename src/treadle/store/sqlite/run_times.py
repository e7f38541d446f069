"""The greatest distance at which runs were created out of the order of their starts (`run_times` in schema.sql).

Everything that adds runs notes their starts here, in its transaction, before it adds them: lists by time rely on it.
One query for each batch: a trigger for each run doubled the cost of creating one (62 µs instead of 28, 500 a batch).
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from treadle.store.sqlite.queries import SQL


def note_starts(connection: apsw.Connection, starts: Iterable[int]) -> None:
    """Notes the starts of runs that are about to be added, in the order in which they are added."""
    newest, late = connection.execute(SQL["newest_start"]).get, 0
    for started in starts:
        if newest is None or started >= newest:
            newest = started
        elif newest - started > late:
            late = newest - started
    if late:
        connection.execute(SQL["note_late"], {"late": late})
