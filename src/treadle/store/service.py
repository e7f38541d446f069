"""The service's port: what a server keeps beside the runs. Documents that are compared before they change, logs, notes.

Owns the verbs every store answers for a server, and the records that travel through them. Promises nothing by itself;
`tests/contract` is run on every store. Must not know a rule: what is written down, and for how long, the server says.

Theory of operation
    A server keeps its own things as documents of kinds that begin with `_`, of which only the newest version is there.
    Two servers may change one at the same moment: a change says which version it has seen (`expected`), and a change
    of anything else is refused with STALE_VERSION. What happened is appended to logs by name (the audit, deliveries). A
    note is the answer to a request that was given once and must be given again: a second one with its key is refused
    with DUPLICATE. `write` does all of these in one transaction or not at all.

    A log in CHAINED is a chain of hashes: an entry's hash is made of the hash before it, its number, and everything it
    says. How many entries there have been and the hash of the last one are kept apart from the entries (the log's
    head). So a changed or removed entry breaks the chain, and a removed tail does not reach the head.

Invariants
    1. Documents of a batch are compared and written together. `expected` 0: there is no such document, or its name was
       ended.
    2. The numbers of a log's entries grow, and none is used twice. Those of a chained log have no gap: 1, 2, 3, …
       except that `prune` removes the oldest and leaves in the head where the chain begins since.
    3. There is at most one note for a key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, msgpack

from treadle.errors import StoreConflict
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.log_entries import Entry as Entry
from treadle.store.port import KeptRequest, KnownRequest, StoredDocument

Json = Any
CHAINED = frozenset({"audit"})
"""Logs whose entries are chained by hashes. Appending to one waits for every other that appends to it."""
BEGINNING = b"\0" * 32
"""The hash before the first entry."""

_pack = msgpack.Encoder().encode


class DocumentChange(Struct, frozen=True):
    """A new version of a document."""

    kind: str
    name: str
    hash: str
    body: Json
    """None ends the name."""
    expected: int | None = None
    """The version that must be the newest; 0: there must be none; None: any."""


class Note(Struct, frozen=True):
    """An answer that was given once and must be given again."""

    key: str
    body: Json
    at: int


class Changes(Struct, frozen=True):
    """Everything that one transaction writes, in this order."""

    forgotten: Sequence[str] = ()
    """Keys of notes to drop before others are written: a note that is too old makes room for its successor."""
    notes: Sequence[Note] = ()
    removed: Sequence[tuple[str, str]] = ()
    """Documents (kind, name) to drop without a trace: their versions begin again. Only for names that nobody uses
    twice, such as sessions; for others a body of None ends the name."""
    documents: Sequence[DocumentChange] = ()
    entries: Sequence[Entry] = ()


class LogEntry(Struct, frozen=True):
    """An entry of a log, as it is kept."""

    log: str
    id: int
    subject: str
    at: int
    body: Json
    hash: str = ""
    """Of a chained log: over the hash before it, the number, the subject, the time and the body; in hexadecimal."""


class RunCount(Struct, frozen=True):
    """How many runs of a workflow have a status."""

    workflow: str
    status: RunStatus
    runs: int


class Written(Struct, frozen=True):
    """What a write has made, in the order it was given."""

    documents: list[StoredDocument]
    entries: list[LogEntry]


class LogVerdict(Struct, frozen=True):
    """The result of a check of a chained log."""

    log: str
    count: int
    """Number of entries that were ever appended."""
    checked: int
    """Number of entries that are there and were compared."""
    hash: str
    """The last hash, as the head has it: with `count` it can be kept elsewhere, to compare later."""
    problems: list[str]

    @property
    def ok(self) -> bool:
        return not self.problems


class LogHead(Struct, frozen=True):
    """What is kept of a log apart from its entries."""

    count: int = 0
    hash: bytes = BEGINNING
    pruned: int = 0
    """Number of the last entry that was removed from the beginning."""
    pruned_hash: bytes = BEGINNING

    def after(self, log: str, entry: Entry, content: bytes) -> LogHead:
        """The head when an entry was appended."""
        number = self.count + 1
        hash = chained_hash(self.hash, log, number, entry.subject, entry.at, content) if log in CHAINED else self.hash
        return LogHead(number, hash, self.pruned, self.pruned_hash)


class ServiceStore(Protocol):
    """The port. Every verb is one transaction."""

    async def put_document(
        self, kind: str, name: str, hash: str, body: Json, expected: int | None = None
    ) -> StoredDocument:
        """As `Store.put_document`. Raises StoreConflict("STALE_VERSION") if `expected` is not the newest version."""

    async def write(self, changes: Changes) -> Written:
        """Writes all of it, or nothing. Raises StoreConflict: STALE_VERSION for a document, DUPLICATE for a note."""

    async def find_request(self, run: RunId, request: str) -> KnownRequest | None:
        """A request to a run by its id, answered or not. Only reads."""

    async def kept(self, run: RunId | None = None, request: str | None = None, limit: int = 1_000) -> list[KeptRequest]:
        """Requests of one run or of all whose ids begin with `port.KEPT`, or the one with this id, newest first. Not
        indexed beside their ids: only for people, who ask rarely."""

    async def note(self, key: str) -> Note | None:
        """The note with this key."""

    async def drop_notes(self, before_at: int) -> int:
        """Drops notes older than an instant, and answers to requests with a fingerprint (`InboxRequest`). Returns
        their number."""

    async def entries(
        self,
        log: str,
        subject: str | None = None,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 100,
    ) -> list[LogEntry]:
        """Entries of a log: newest first, those `before` a number if it is given; with `after`, those after that
        number, oldest first. Damaged entries are left out."""

    async def revise(self, log: str, id: int, body: Json) -> bool:
        """Replaces what an entry says (a delivery's outcome). False: there is no such entry. Raises ValueError for a
        chained log: its entries stay as they are."""

    async def prune(self, log: str, before_at: int, keep: int = 0) -> int:
        """Removes the oldest entries as long as they are older than an instant and more than `keep` stay. Returns
        their number."""

    async def verify_log(self, log: str) -> LogVerdict:
        """Compares every entry of a chained log with the chain, and its end with the head."""

    async def decisions(self, run: RunId, after: int = 0, limit: int | None = None) -> list[int]:
        """Where the decisions about a run (all events of one commit) end: the first sequence numbers above `after`."""

    async def count_runs(self, workflow: str | None = None, since: int | None = None) -> list[RunCount]:
        """Runs by workflow and status, of one workflow or of all, those started at `since` or later. Reads an index
        from end to end: the caller asks seldom."""


@runtime_checkable
class LogCheckableStore(Protocol):
    """A store whose chained logs `fsck` can check."""

    async def verify_log(self, log: str) -> LogVerdict:
        """See `ServiceStore`."""


def chained_hash(before: bytes, log: str, id: int, subject: str, at: int, content: bytes) -> bytes:
    """The hash of an entry. `content` is its packed body; what comes before it has a length that its packing tells."""
    return hashlib.sha256(_pack((before, log, id, subject, at)) + content).digest()


def stale_document(kind: str, name: str, stands: int, expected: int) -> StoreConflict:
    """The refusal of a change that was made on another version than the newest."""
    return StoreConflict("STALE_VERSION", f"{kind} {name!r} has version {stands}, the change saw {expected}")


def fits(stands: int, is_ended: bool, expected: int | None) -> bool:
    """Whether a change that saw `expected` may follow the newest version; 0: there is none."""
    return expected is None or expected == stands or (expected == 0 and is_ended)


def duplicate_note(key: str) -> StoreConflict:
    """The refusal of a second note with one key."""
    return StoreConflict("DUPLICATE", f"there is a note with the key {key!r} already")


def check_unchained(log: str) -> None:
    """Refuses to change an entry of a chained log."""
    if log in CHAINED:
        raise ValueError(f"the entries of the log {log!r} are chained and cannot be changed")


HeadOf = Callable[[str], Awaitable[LogHead]]
KeptRow = tuple[int, str, int, bytes | None, bytes | None]
"""Number, subject, time, packed body (None: its checksum does not hold) and hash of an entry."""
RowsOf = Callable[[str, int, int], Awaitable[list[KeptRow]]]
"""Rows of a log after a number, so many, oldest first."""
PAGE = 1_000


async def verify_chain(log: str, head_of: HeadOf, rows_of: RowsOf) -> LogVerdict:
    """Checks a log page by page, while others append to it and prune it."""
    head = await head_of(log)
    check, after = ChainCheck(log, head), head.pruned
    while after < head.count and (rows := await rows_of(log, after, min(PAGE, head.count - after))):
        for row in rows:
            if row[0] <= head.count:
                check.look(*row)
        after = rows[-1][0]
    beyond = await rows_of(log, head.count, 1)
    now = await head_of(log)
    if now.pruned != head.pruned:
        return await verify_chain(log, head_of, rows_of)
    return check.verdict(beyond[0][0] if beyond and beyond[0][0] > now.count else 0)


class ChainCheck:
    """Compares the entries of a chained log, oldest first, with their chain."""

    PROBLEMS_MAX = 100
    """Problems that are listed: one broken entry is enough to look closer."""

    def __init__(self, log: str, head: LogHead) -> None:
        self._log = log
        self._head = head
        self._number, self._hash = head.pruned, head.pruned_hash
        self._checked = 0
        self._problems: list[str] = []

    def look(self, id: int, subject: str, at: int, content: bytes | None, hash: bytes | None) -> None:
        """Compares one entry; `content` is None if its checksum does not hold."""
        if id != self._number + 1:
            self._tell(f"entry {self._number + 1} is missing: the next one is {id}")
        elif content is None or hash != chained_hash(self._hash, self._log, id, subject, at, content):
            self._tell(f"entry {id} has been changed, or the one before it")
        self._number, self._hash = id, hash or BEGINNING
        self._checked += 1

    def verdict(self, last: int) -> LogVerdict:
        """The result, after the last entry that the head counts. `last` is the number of the last entry of all that
        a head has not counted, even when it was read again; 0: there is none."""
        head = self._head
        if last:
            self._tell(f"entry {last} is there, and only {head.count} have been counted")
        if self._number < head.count:
            self._tell(f"the entries end at {self._number}, and there have been {head.count}")
        elif self._hash != head.hash:
            self._tell(f"the hash of entry {self._number} is not the one that was kept apart")
        return LogVerdict(self._log, head.count, self._checked, head.hash.hex(), self._problems)

    def _tell(self, problem: str) -> None:
        if len(self._problems) < self.PROBLEMS_MAX:
            self._problems.append(problem)
