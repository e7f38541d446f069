"""Everything in a store as rows that can be moved to another store: the port for moving and for `fsck`.

Owns the shelves, the columns of their rows, and the mark of a store that is being moved. Promises nothing by itself;
`tests/contract/test_transfer.py` is run on every store that has it. Must not know a rule: rows are carried as they are,
packed as they are, and what a store derives from them (shards, tags, keys) it derives again.

Theory of operation
    A move has two ends and one mark at each, a document of kind `_move` that says which move it is.

        source   none ── seal ──► leaving ─────────── remark ──► left
        target   none ── begin ──► arriving, after … ── put ──► arriving, after … ── finish ──► none

    From `leaving` on only the move writes the source: the rows are those of one moment, however long it takes and
    however often the move is killed. A page is put in one transaction with the mark that says how far the move has
    come, so that it happens once. The source is `left` before the target is complete: two stores never go on with the
    same runs. Opening a marked store is refused, with the reason (`refusal`).

Invariants
    1. Pages of a shelf, in the order they are given, hold every row once; `put` of them in that order makes a store
       that answers every verb of the port alike. Numbers of the outbox are kept, and none is given again.
    2. A page holds at most ROWS_MAX rows, and one row more than BYTES_MAX bytes at most.
    3. `put` writes nothing if the mark is not the one it was told: of two moves into one store one is told so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import gmtime, strftime
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from treadle.errors import StorePlaceError
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.store.entities import MoveRow
from treadle.store.port import OutboxRow
from treadle.store.seals import Seals

SHELVES: Mapping[str, tuple[str, ...]] = {
    "documents": ("kind", "name", "version", "hash", "body"),
    "runs": (
        *("run", "workflow", "version", "status", "busy", "seq", "started", "changed"),
        *("idempotency_key", "entity", "parent", "tags"),
    ),
    "batch_items": ("run", "start", "workflow", "idempotency_key"),
    "history": ("run", "seq", "block"),
    "outbox": ("run", "id", "effect", "parked"),
    "timers": ("run", "timer", "due"),
    "gates": (
        *("run", "token", "node", "opened", "title", "assign", "due"),
        *("claimed_by", "escalated", "reminded", "commented", "answered", "people", "words"),
    ),
    "requests": ("run", "request", "workflow", "at", "command", "answer", "fingerprint"),
    "blobs": ("run", "digest", "content"),
    "log_entries": ("log", "id", "subject", "at", "body", "hash"),
    "log_heads": ("log", "count", "hash", "pruned", "pruned_hash"),
    "notes": ("key", "at", "body"),
    "entities": ("entity", "type", "id", "name", "email", "attributes", "created", "changed", "search"),
    "addresses": ("type", "id", "entity"),
    "moves": (
        *("entity", "workflow", "at", "run", "seq", "event", "kind", "place", "progress"),
        *("completed_as", "set_type", "moved_by", "reason"),
    ),
    "positions": ("entity", "workflow", "at", "run", "seq", "kind", "place"),
}
"""Shelf → columns, in the order they are moved: a run is there before what belongs to it. Runs and entities come in
the order of creation and requests in that of arrival; the order of the others is the store's. `_move` is not among
the documents. Leases and nodes stay behind: engines that open the target take new ones."""

ROWS_MAX = 1_000
BYTES_MAX = 4 * 1024 * 1024
"""Limits of one page: it takes some milliseconds of one transaction, and a small machine holds several in memory."""

KIND = "_move"
NAME = "move"

After = tuple[Any, ...]
"""Where a page ends, in words of the store it came from; () is before the first."""


class Page(NamedTuple):
    """Some rows of a shelf. Empty: there are no more."""

    rows: list[tuple[Any, ...]]
    after: After


class Mark(Struct, frozen=True):
    """A store's note about the move it takes part in."""

    move: str
    state: Literal["leaving", "left", "arriving"]
    other: str
    """The place at the other end, without secrets."""
    at: int
    shelf: str = ""
    """Of an arriving store: how far the rows have come, in words of the source."""
    after: After = ()
    outbox_last: int = 0
    """The greatest number the source's outbox has ever given."""


class Beside(NamedTuple):
    """The rows that are kept beside the histories of some runs."""

    timers: dict[RunId, dict[TimerId, int]]
    gates: dict[RunId, dict[TokenId, tuple[Any, ...]]]
    """Of each open gate the values of `GATE_COLUMNS`."""
    outbox: dict[RunId, list[OutboxRow]]
    moves: dict[RunId, list[MoveRow]]
    items: dict[RunId, dict[RunId, str | None]]
    """Starts that have become items of a batch, with their keys."""


@runtime_checkable
class CheckableStore(Protocol):
    """The verbs that `fsck` needs of a store beside those of the port."""

    async def beside(self, runs: Sequence[RunId]) -> Beside:
        """Rows of these runs, parked and paused ones included; damaged ones left out."""

    async def seals(self) -> Seals:
        """Checks every sealed value (`store.seals`)."""


class Transfer(Protocol):
    """One end of a move. Every verb is one transaction and may raise `StoreUnavailable`."""

    place: str

    async def close(self) -> None:
        """Closes the store; marks stay."""

    async def take(self, wait: bool) -> None:
        """Makes sure that no engine coordinates the store. Raises `OwnedElsewhere`, or waits."""

    async def mark(self) -> Mark | None:
        """The store's mark; None if it takes part in no move."""

    async def seal(self, mark: Mark) -> None:
        """From now on only the move may write; others are refused with the reason. Sealing again changes the mark."""

    async def unseal(self) -> None:
        """Lets all processes write again and removes the mark."""

    async def is_empty(self) -> bool:
        """Whether the store holds nothing but notes that engines write for themselves."""

    async def begin(self, mark: Mark) -> None:
        """Empties the store, seals it and marks it as incomplete."""

    async def counts(self) -> dict[str, int]:
        """Number of rows by shelf."""

    async def outbox_last(self) -> int:
        """The greatest number the outbox has ever given."""

    async def page(self, shelf: str, after: After) -> Page:
        """The next rows of a shelf."""

    async def put(self, shelf: str, rows: Sequence[tuple[Any, ...]], was: Mark, now: Mark) -> None:
        """Adds rows and replaces the mark. Raises `StoreConflict` if it was another."""

    async def finish(self) -> None:
        """Completes the move: removes the mark; the next number of the outbox is greater than all before."""


def refusal(place: str, mark: Mark) -> StorePlaceError:
    """The reason why a marked store cannot be opened."""
    when = strftime("%Y-%m-%d %H:%M:%S UTC", gmtime(mark.at / 1000))
    if mark.state == "left":
        return StorePlaceError(place, f"it was moved to {mark.other} at {when}", "use that one")
    if mark.state == "leaving":
        remedy = "wait for it, or run `treadle db move` again to go on, or `treadle db undo` to stay here"
        return StorePlaceError(place, f"it is being moved to {mark.other} since {when}", remedy)
    remedy = "wait for it, or run `treadle db move` again to go on"
    return StorePlaceError(place, f"it is incomplete: a move from {mark.other} has begun at {when}", remedy)
