"""Rows that come in a crowd, as one statement.

Owns how rows reach SQLite: few of them one by one, many as one JSON array which a single statement reads (`…_all` in
`queries.sql`). Promises that both ways write the same and are refused alike. Must not know what a row means.

It is not for the writer's own time (best, CPU of the thread: 4.0 µs a step one by one and 3.7 at once when nobody else
computes, 3.9 and 5.0 when the loop does) but for the loop's. apsw lets go of the interpreter lock for every row and
wants it back at once: the loop finds no moment to run in, and the times of both threads add up. One statement leaves
it alone for milliseconds. 1,000 runs of 5 steps, two cores that did nothing else, file in memory, ten laps in turns:

    µs a step                           clock: best, median   CPU: best   clock against the first, lap by lap
    one by one                               52.1   65.1        51.8
    at once                                  49.3   62.6        50.6      0.95 (0.90 in another series)
    at once, switch interval 1 ms            43.2   53.2        48.1      0.83
    one by one, switch interval 0.5 ms       51.0   65.7        53.3      1.10

With a file on a disk it was 0.99, and without a free core there is nothing to gain. The rest is Python's: a thread that
wants the lock back from one that computes waits for `sys.getswitchinterval()`, 5 ms, after each statement (BEGIN and
the fence as well), so most of a batch is still written when the loop has nothing left to do. Whoever owns the process
may make the interval 1 ms; a library must not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import apsw
import msgspec

from treadle.store.sqlite.queries import SQL

Row = tuple[Any, ...]

CROWD = 64
"""So many rows are a crowd. Fewer hold the loop up for a quarter of a millisecond at most, and below 16 JSON costs more
than it saves (29 µs a step instead of 21 for a single one)."""
JOINED_MAX = 64 * 1024 * 1024
"""Bytes of blocks that are put together. SQLite takes no value above 10⁹, and a few large blocks gain nothing."""

_encode = msgspec.json.Encoder().encode


def put(connection: apsw.Connection, name: str, rows: Sequence[Row]) -> None:
    """Rows of texts, numbers and None, through the statement of this name."""
    if len(rows) < CROWD:
        connection.executemany(SQL[name], rows)
    else:
        connection.execute(SQL[f"{name}_all"], (_encode(rows).decode(),))


def append(connection: apsw.Connection, blocks: Sequence[tuple[str, int, bytes]]) -> None:
    """Blocks of history: (run, seq, bytes)."""
    if len(blocks) >= CROWD:
        packed = [block for _, _, block in blocks]
        lengths = [len(block) for block in packed]
        if sum(lengths) <= JOINED_MAX:
            begins = accumulate(lengths, initial=1)
            places = zip(blocks, begins, lengths, strict=False)
            rows = [(run, seq, begin, length) for (run, seq, _), begin, length in places]
            connection.execute(SQL["append_history_all"], {"rows": _encode(rows).decode(), "blocks": b"".join(packed)})
            return
    connection.executemany(SQL["append_history"], blocks)
