"""One end of a move in a SQLite file: rows out in pages, rows in, the mark, the seal.

Owns a connection of its own, and the file's lock for as long as it is open. Promises what `store.transfer` says. Must
not interpret rows.

The seal is a set of triggers: a process that has the file open (a client about to submit a request) is refused by the
file itself and told where the store goes. The triggers are removed with the mark. Only tables that a process without
the lock can write are sealed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from treadle.errors import OwnedElsewhere, StoreConflict, StorePlaceError
from treadle.store import statements
from treadle.store.moved_work import as_task
from treadle.store.packing import pack
from treadle.store.seals import Judge, Seals
from treadle.store.sqlite import private, writing
from treadle.store.sqlite.connect import connect, migrate
from treadle.store.sqlite.faults import SEALED, unavailable
from treadle.store.sqlite.file_checks import check_log
from treadle.store.sqlite.ownership import Ownership
from treadle.store.sqlite.queries import SQL as VERBS
from treadle.store.sqlite.run_times import note_starts
from treadle.store.transfer import BYTES_MAX, ROWS_MAX, SHELVES, After, Mark, Page, refusal

SQL = statements.read("treadle.store.sqlite", "transfer.sql")
FIRST: dict[str, After] = {
    "documents": ("", "", 0),
    "runs": (0,),
    "batch_items": ("",),
    "history": (0,),
    "outbox": (0, 0),
    "timers": (0, 0),
    "gates": (0, -1),
    "requests": (0,),
    "blobs": ("", b""),
    "log_entries": ("", 0),
    "log_heads": ("",),
    "notes": ("",),
    "entities": (0,),
    "addresses": ("", ""),
    "moves": ("", 0, "", 0),
    "positions": ("", ""),
}
"""The positions before the first row of each shelf."""
SERVICE_TABLES = ("log_entries", "log_heads", "notes")
TABLES = (
    *("blobs_of_runs", "blobs", "requests", "gates", "timers", "outbox", "work", "meters", "history", "tags"),
    *("batch_items", "runs", "documents", *SERVICE_TABLES, "positions", "moves", "addresses", "entities", "forgets"),
)
"""The tables in an order in which they can be emptied."""
SEALED_TABLES = (
    *("leases", "requests", "documents", "blobs", "blobs_of_runs", "runs", "work", *SERVICE_TABLES),
    *("entities", "moves"),
)

KEY_KIND = "_callback_key"

BUSY = SHELVES["runs"].index("busy")
"""The column that is converted to a boolean: SQLite has only numbers."""
STARTED = SHELVES["runs"].index("started")

_unpack_mark = msgspec.msgpack.Decoder(Mark).decode
T = TypeVar("T")


class SqliteTransfer:
    """See the module's docstring; the verbs are documented in `store.transfer`. Made by `open`."""

    def __init__(self, path: Path) -> None:
        self.place = os.path.realpath(path)
        self._path = path
        self._ownership = Ownership(path, owner="treadle db move")
        check_log(path)
        self._connection = connect(path, writer=True)
        migrate(self._connection, path)

    @classmethod
    async def open(cls, path: str | Path, *, create: bool) -> SqliteTransfer:
        """Raises `StorePlaceError`."""
        path = Path(path)
        if not create and not path.exists():
            raise StorePlaceError(str(path), "there is no such store", "look at its name")
        return await asyncio.to_thread(cls, path)

    async def close(self) -> None:
        await asyncio.to_thread(self._connection.close)
        self._ownership.release()

    async def take(self, wait: bool) -> None:
        other = self._ownership.try_take()
        if other is not None and not wait:
            raise OwnedElsewhere(self.place, other.description)
        if other is not None:
            await self._ownership.wait_gone()

    async def mark(self) -> Mark | None:
        return await self._do(read_mark)

    async def seal(self, mark: Mark) -> None:
        def work(connection: apsw.Connection) -> None:
            _unseal(connection)
            connection.execute(SQL["end_leases"])
            self._bring_key(connection)
            _write_mark(connection, mark)
            reason = _quoted(f"{SEALED}: {refusal(self.place, mark)}")
            for table in SEALED_TABLES:
                for change in ("INSERT", "UPDATE", "DELETE"):
                    connection.execute(
                        f"CREATE TRIGGER sealed_{table}_{change.lower()} BEFORE {change} ON {table} "
                        f"BEGIN SELECT RAISE(ABORT, {reason}); END"
                    )

        await self._do(work)

    def _bring_key(self, connection: apsw.Connection) -> None:
        """Makes the key of callback tokens a document, so that it is moved with the others."""
        key = private.read_key(self._path)
        if key is not None:
            connection.execute(SQL["drop_key"])
            writing.put_document(connection, KEY_KIND, "key", hashlib.sha256(key.encode()).hexdigest(), pack(key))

    async def unseal(self) -> None:
        def work(connection: apsw.Connection) -> None:
            _unseal(connection)
            connection.execute(SQL["drop_mark"])

        await self._do(work)

    async def is_empty(self) -> bool:
        return await self._do(lambda connection: not connection.execute(SQL["has_something"]).get)

    async def begin(self, mark: Mark) -> None:
        def work(connection: apsw.Connection) -> None:
            for table in TABLES:
                connection.execute(f"DELETE FROM {table}")
            connection.execute("DELETE FROM sqlite_sequence")
            connection.execute(VERBS["begin_log"])  # positions of the source are gone
            _write_mark(connection, mark)

        await self._do(work)

    async def counts(self) -> dict[str, int]:
        def work(connection: apsw.Connection) -> dict[str, int]:
            return {
                shelf: connection.execute(SQL.get(f"count_{shelf}", f"SELECT count(*) FROM {shelf}")).get
                for shelf in SHELVES
            }

        return await self._do(work)

    async def outbox_last(self) -> int:
        return await self._do(lambda connection: connection.execute(SQL["outbox_last"]).get or 0)

    async def page(self, shelf: str, after: After) -> Page:
        return await self._do(lambda connection: _page(connection, shelf, after))

    async def put(self, shelf: str, rows: Sequence[tuple[Any, ...]], was: Mark, now: Mark) -> None:
        def work(connection: apsw.Connection) -> None:
            if read_mark(connection) != was:
                raise StoreConflict("DUPLICATE", f"{self.place}: another move has begun to write there")
            _put(connection, shelf, rows)
            _write_mark(connection, now)

        await self._do(work)

    async def finish(self) -> None:
        def work(connection: apsw.Connection) -> None:
            mark = read_mark(connection)
            if mark is not None and mark.outbox_last:
                connection.execute(SQL["move_outbox_last"], (mark.outbox_last,))
                if not connection.changes():
                    connection.execute(SQL["begin_outbox_last"], (mark.outbox_last,))
            connection.execute(SQL["drop_mark"])

        await self._do(work)

    async def _do(self, work: Callable[[apsw.Connection], T]) -> T:
        return await asyncio.to_thread(self._transact, work)

    def _transact(self, work: Callable[[apsw.Connection], T]) -> T:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(self._connection)
                self._connection.execute("COMMIT")
                return result
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        except apsw.ConstraintError as problem:
            raise StorePlaceError(
                self.place, f"the rows do not fit: {problem}", "run `treadle fsck` on the store they come from"
            ) from problem
        except apsw.Error as problem:
            made = unavailable(problem, self.place)
            raise made from (None if made is problem else problem)


def seals(connection: apsw.Connection, place: str) -> Seals:
    """Checks every sealed value."""
    judge = Judge(place)
    for shelf in SHELVES:
        after: After = ()
        while rows := (page := _page(connection, shelf, after)).rows:
            judge.look(shelf, rows)
            after = page.after
    return judge.verdict()


def read_mark(connection: apsw.Connection) -> Mark | None:
    """The mark of a file; None if it takes part in no move."""
    body = connection.execute(SQL["read_mark"]).get
    return _unpack_mark(body) if body is not None else None


def check_whole(connection: apsw.Connection, path: Path) -> None:
    """Refuses a file that is being moved, was moved, or is not complete."""
    mark = read_mark(connection)
    if mark is not None:
        raise refusal(str(path), mark)


def _write_mark(connection: apsw.Connection, mark: Mark) -> None:
    connection.execute(SQL["write_mark"], (pack(mark),))


def _unseal(connection: apsw.Connection) -> None:
    for (name,) in connection.execute(SQL["seals"]).fetchall():
        connection.execute(f"DROP TRIGGER {name}")


def _page(connection: apsw.Connection, shelf: str, after: After) -> Page:
    place = tuple(after) or FIRST[shelf]
    if shelf == "outbox":
        return _outbox_page(connection, *place)
    return _rows_from(connection, shelf, place)


def _outbox_page(connection: apsw.Connection, is_work: int, id: int) -> Page:
    """Rows of the outbox, then queue work."""
    if not is_work:
        page = _rows_from(connection, "outbox", (id,))
        if page.rows:
            return Page(page.rows, (0, *page.after))
        id = 0
    page = _rows_from(connection, "work", (id,))
    return Page([(run, number, as_task(run, effect), None) for run, number, effect, _ in page.rows], (1, *page.after))


def _rows_from(connection: apsw.Connection, shelf: str, place: After) -> Page:
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in connection.execute(SQL[f"out_{shelf}"], place):  # fetched row by row: rows beyond the page are not read
        place, values = row[: len(place)], row[len(place) :]
        if shelf == "runs":
            values = (*values[:BUSY], bool(values[BUSY]), *values[BUSY + 1 :])
        rows.append(values)
        size += sum(len(value) for value in values if isinstance(value, str | bytes))
        if len(rows) == ROWS_MAX or size >= BYTES_MAX:
            break
    return Page(rows, place)


def _put(connection: apsw.Connection, shelf: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if shelf == "blobs":
        for run, digest, content in rows:
            connection.execute(VERBS["put_blob"], (digest, content))
            connection.execute(VERBS["own_blob"], (run, digest))
        return
    if shelf == "runs":
        note_starts(connection, [row[STARTED] for row in rows])
    connection.executemany(SQL[f"in_{shelf}"], rows)
    if shelf == "runs":
        connection.executemany(SQL["in_tags"], [(row[0],) for row in rows])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
