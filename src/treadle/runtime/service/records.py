"""Records of a server beside the runs: its own documents, logs and answers. Reached as `Client.records`.

Owns the words; every method is one verb of `store.service`. Must not know what is kept: the server says.
"""

from __future__ import annotations

import hashlib
from typing import Any, cast

from msgspec import msgpack

from treadle.store.port import Store, StoredDocument
from treadle.store.service import Changes as Changes
from treadle.store.service import DocumentChange as DocumentChange
from treadle.store.service import Entry as Entry
from treadle.store.service import LogEntry as LogEntry
from treadle.store.service import LogVerdict as LogVerdict
from treadle.store.service import Note as Note
from treadle.store.service import ServiceStore, Written

Json = Any


class Records:
    """See the module's docstring."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._service = cast(ServiceStore, store)

    async def find(self, kind: str, name: str) -> StoredDocument | None:
        """The newest version of a document; None if there is none."""
        found = await self._store.documents(kind, name)
        return found[0] if found else None

    async def all(self, kind: str) -> list[StoredDocument]:
        """The newest version of every document of a kind, by name."""
        return await self._store.documents(kind)

    async def put(self, kind: str, name: str, body: Json, expected: int | None = None) -> StoredDocument:
        """Keeps a document; a body of None ends its name. Raises StoreConflict(STALE_VERSION) if `expected` is not the
        newest version; 0: there must be none."""
        return await self._service.put_document(kind, name, content_hash(body), body, expected)

    async def write(self, changes: Changes) -> Written:
        """Documents, log entries and notes in one transaction. Raises StoreConflict: STALE_VERSION for a document,
        DUPLICATE for a note; then nothing is written."""
        return await self._service.write(changes)

    async def note(self, key: str) -> Note | None:
        """The note with this key."""
        return await self._service.note(key)

    async def drop_notes(self, before_at: int) -> int:
        """Drops notes older than an instant, and remembered answers to commands (`asking_once`). Returns their
        number."""
        return await self._service.drop_notes(before_at)

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
        number, oldest first."""
        return await self._service.entries(log, subject, before=before, after=after, limit=limit)

    async def revise(self, log: str, id: int, body: Json) -> bool:
        """Replaces what an entry says; False if there is no such entry. Not of the audit."""
        return await self._service.revise(log, id, body)

    async def prune(self, log: str, before_at: int, keep: int = 0) -> int:
        """Removes the oldest entries as long as they are older than an instant and more than `keep` stay."""
        return await self._service.prune(log, before_at, keep)

    async def verify_log(self, log: str) -> LogVerdict:
        """Whether a chained log (the audit) is complete and unchanged."""
        return await self._service.verify_log(log)


def change(kind: str, name: str, body: Json, expected: int | None = None) -> DocumentChange:
    """A change of a document, for `Records.write`."""
    return DocumentChange(kind, name, content_hash(body), body, expected)


def content_hash(body: Json) -> str:
    """The hash by which equal contents are recognised; empty for the end of a name."""
    return hashlib.sha256(msgpack.encode(body, order="deterministic")).hexdigest() if body is not None else ""
