"""The reference for what a server keeps: documents, logs and notes in dictionaries.

Owns the documents, logs and notes of a `MemoryStore`. Promises the contract of `store.service` to the letter. A
transaction is checked completely before its first write. Must not suspend: see `store.memory`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct, msgpack

from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.memory_parts import KeptRun, Requests
from treadle.store.packing import pack, unpack
from treadle.store.port import Json, KnownRequest, StoredDocument
from treadle.store.seals import Seals
from treadle.store.service import (
    CHAINED,
    ChainCheck,
    Changes,
    DocumentChange,
    Entry,
    LogEntry,
    LogHead,
    LogVerdict,
    Note,
    RunCount,
    Written,
    check_unchained,
    duplicate_note,
    fits,
    stale_document,
)


class Documents:
    """Versions of named things, packed."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], list[tuple[str, bytes]]] = {}

    def put(self, kind: str, name: str, hash: str, body: Json) -> StoredDocument:
        versions = self._versions.setdefault((kind, name), [])
        if not versions or versions[-1][0] != hash:
            versions.append((hash, msgpack.encode(body)))
            if kind.startswith("_"):
                versions[:-1] = [("", msgpack.encode(None))] * (len(versions) - 1)
        return self._document(kind, name, len(versions))

    def stands(self, kind: str, name: str) -> tuple[int, bool]:
        """The newest version, 0 if there is none, and whether it ended the name."""
        versions = self._versions.get((kind, name), [])
        return len(versions), bool(versions) and msgpack.decode(versions[-1][1]) is None

    def drop(self, kind: str, name: str) -> None:
        """Drops every version."""
        self._versions.pop((kind, name), None)

    def find(self, kind: str, name: str | None, version: int | None) -> list[StoredDocument]:
        found = [
            self._document(*key, len(versions) if version is None else version)
            for key, versions in sorted(self._versions.items())
            if key[0] == kind and name in (None, key[1]) and (version is None or 1 <= version <= len(versions))
        ]
        return [document for document in found if document.body is not None]

    def _document(self, kind: str, name: str, version: int) -> StoredDocument:
        hash, body = self._versions[kind, name][version - 1]
        return StoredDocument(kind, name, version, hash, msgpack.decode(body))


class _KeptEntry(Struct):
    subject: str
    at: int
    content: bytes
    hash: bytes | None


class _Log(Struct):
    head: LogHead = LogHead()
    entries: dict[int, _KeptEntry] = {}
    """In the order of their numbers."""


class MemoryService:
    """The verbs of `store.service`."""

    _runs: dict[RunId, KeptRun]

    def __init__(self) -> None:
        self._documents = Documents()
        self._requests = Requests()
        self._logs: dict[str, _Log] = {}
        self._notes: dict[str, tuple[int, bytes]] = {}

    async def put_document(
        self, kind: str, name: str, hash: str, body: Json, expected: int | None = None
    ) -> StoredDocument:
        self._check_documents([DocumentChange(kind, name, hash, body, expected)])
        return self._documents.put(kind, name, hash, body)

    async def documents(self, kind: str, name: str | None = None, version: int | None = None) -> list[StoredDocument]:
        return self._documents.find(kind, name, version)

    async def write(self, changes: Changes) -> Written:
        self._check_notes(changes)
        self._check_documents(changes.documents, changes.removed)
        packed = [pack(entry.body) for entry in changes.entries]  # a value that cannot be packed raises here
        notes = {note.key: (note.at, pack(note.body)) for note in changes.notes}
        for key in changes.forgotten:
            self._notes.pop(key, None)
        self._notes |= notes
        for kind, name in changes.removed:
            self._documents.drop(kind, name)
        return Written(
            [self._documents.put(one.kind, one.name, one.hash, one.body) for one in changes.documents],
            [self._append(entry, content) for entry, content in zip(changes.entries, packed, strict=True)],
        )

    async def find_request(self, run: RunId, request: str) -> KnownRequest | None:
        return self._requests.find(run, request)

    async def note(self, key: str) -> Note | None:
        kept = self._notes.get(key)
        return Note(key, unpack(kept[1]), kept[0]) if kept is not None else None

    async def seals(self) -> Seals:
        return Seals(0, 0, [])  # memory has none

    async def drop_notes(self, before_at: int) -> int:
        old = [key for key, (at, _) in self._notes.items() if at < before_at]
        for key in old:
            del self._notes[key]
        return len(old) + self._requests.drop_marked(before_at)

    async def entries(
        self,
        log: str,
        subject: str | None = None,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 100,
    ) -> list[LogEntry]:
        kept = self._logs.get(log, _Log()).entries
        found = (
            _entry(log, id, entry)
            for id, entry in (kept.items() if after is not None else reversed(kept.items()))
            if subject in (None, entry.subject) and (before is None or id < before) and (after is None or id > after)
        )
        return list(islice(found, limit))

    async def revise(self, log: str, id: int, body: Json) -> bool:
        check_unchained(log)
        kept = self._logs.get(log, _Log()).entries.get(id)
        if kept is not None:
            kept.content = pack(body)
        return kept is not None

    async def prune(self, log: str, before_at: int, keep: int = 0) -> int:
        kept = self._logs.get(log, _Log())
        gone = 0
        for id, entry in list(kept.entries.items()):
            if entry.at >= before_at or len(kept.entries) <= keep:
                break
            del kept.entries[id]
            head = kept.head
            kept.head = LogHead(head.count, head.hash, id, entry.hash or head.pruned_hash)
            gone += 1
        return gone

    async def decisions(self, run: RunId, after: int = 0, limit: int | None = None) -> list[int]:
        kept = self._runs.get(run)
        return [end for end in kept.ends if end > after][:limit] if kept is not None else []

    async def count_runs(self, workflow: str | None = None, since: int | None = None) -> list[RunCount]:
        counts: Counter[tuple[str, RunStatus]] = Counter()
        for kept in self._runs.values():
            row = kept.row()
            if workflow in (None, row.workflow) and (since is None or row.started >= since):
                counts[row.workflow, row.status] += 1
        return [RunCount(name, status, count) for (name, status), count in sorted(counts.items())]

    async def verify_log(self, log: str) -> LogVerdict:
        kept = self._logs.get(log, _Log())
        check = ChainCheck(log, kept.head)
        for id, entry in kept.entries.items():
            check.look(id, entry.subject, entry.at, entry.content, entry.hash)
        return check.verdict(0)

    def _check_notes(self, changes: Changes) -> None:
        taken = self._notes.keys() - set(changes.forgotten)
        for note in changes.notes:
            if note.key in taken:
                raise duplicate_note(note.key)
            taken.add(note.key)

    def _check_documents(self, changes: Sequence[DocumentChange], removed: Sequence[tuple[str, str]] = ()) -> None:
        stands: dict[tuple[str, str], tuple[int, bool]] = dict.fromkeys(removed, (0, True))
        for change in changes:
            key = change.kind, change.name
            version, is_ended = stands.get(key) or self._documents.stands(*key)
            if not fits(version, is_ended, change.expected):
                raise stale_document(*key, version, change.expected or 0)
            stands[key] = version + 1, change.body is None

    def _append(self, entry: Entry, content: bytes) -> LogEntry:
        log = self._logs.setdefault(entry.log, _Log(entries={}))
        log.head = log.head.after(entry.log, entry, content)
        hash = log.head.hash if entry.log in CHAINED else None
        log.entries[log.head.count] = kept = _KeptEntry(entry.subject, entry.at, content, hash)
        return _entry(entry.log, log.head.count, kept)


def _entry(log: str, id: int, kept: _KeptEntry) -> LogEntry:
    return LogEntry(log, id, kept.subject, kept.at, unpack(kept.content), kept.hash.hex() if kept.hash else "")
