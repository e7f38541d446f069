"""Checksums of stored values: written in front of the bytes, compared whenever they are read.

Owns the form of a sealed value and the columns that each seal covers. Promises that a changed bit in the bytes, or in
these columns, is noticed. Must not know a database, and must not repair: a person who looks into damage needs the
evidence.

Theory of operation
    A sealed value is the byte 0xC1, four bytes of CRC-32, and the content. No msgpack and no zlib begins with 0xC1, so
    that a value from before seals is recognised, and accepted as it is. The CRC begins with a number made of the
    columns the value belongs to (the run and number of a block, the node and due time of a gate): bytes that turn up in
    another row are damage too.

    Rows that only repeat what history says have no seal of their own: `runs`, `timers` and the keys, tags and indexes
    derived from them. History is sealed, and `fsck` compares every column with what it folds to; a second checksum
    would cost each step as much as the first and find nothing else. Bytes of a blob are named by their SHA-256.

    A CRC is not a signature: it finds accidents, not forgers.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct as Layout
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from treadle.errors import StoreDamaged
from treadle.model.ids import RunId

MARK = 0xC1
_HEAD = Layout(">BI")
_head = _HEAD.pack
_WHOLE = 0xFFFFFFFF
_json = msgspec.json.Encoder().encode

T = TypeVar("T")
Tell = Callable[[StoreDamaged], None]
"""Is called for every row that was left out because it is damaged."""


class Unreadable(Exception):
    """Stored bytes are damaged. The reader adds which row they belong to."""


def seal(content: bytes, about: int) -> bytes:
    """The content with its checksum in front."""
    return _head(MARK, crc32(content, about)) + content


def unseal(kept: bytes, about: int) -> bytes | None:
    """The content; None if it is damaged. A value from before seals is taken as it is."""
    if not kept or kept[0] != MARK:
        return kept
    if len(kept) < _HEAD.size:
        return None
    content = kept[_HEAD.size :]
    return content if crc32(content, about) == _HEAD.unpack_from(kept)[1] else None


def read(kept: bytes, about: int, decode: Callable[[bytes], T]) -> T:
    """The value of sealed bytes. Raises `Unreadable`, also for bytes that cannot be unpacked."""
    content = unseal(kept, about)
    if content is None:
        raise Unreadable
    try:
        return decode(content)
    except (msgspec.DecodeError, ValueError):
        raise Unreadable from None


def seal_block(run: RunId, seq: int, block: bytes) -> bytes:
    """Seals a block of history that ends with this event. Called once for every step of every run: 0.6 µs of some 45
    that a step takes, half of it for the CRC of 156 bytes."""
    return _head(MARK, crc32(block, about_effect(run) ^ (seq & _WHOLE))) + block


def about_block(run: RunId, seq: int) -> int:
    """The start of the CRC for a block of history that ends with this event."""
    return about_effect(run) ^ (seq & _WHOLE)


@lru_cache(maxsize=1 << 14)
def about_effect(run: RunId) -> int:
    """The start of the CRC for a row of the outbox, or of queue work."""
    return crc32(run.encode())


def about_gate(run: RunId, token: int, node: str, opened: int, title: str | None, due: int | None) -> int:
    """The start of the CRC for `assign` of a gate; it covers the whole row of the gate."""
    return crc32(_json((run, token, node, opened, title, due)))


def about_request(run: RunId, request: str, workflow: str | None, at: int, fingerprint: str | None = None) -> int:
    """The start of the CRC for the content of a request."""
    covered = (run, request, workflow, at)
    return crc32(_json(covered if fingerprint is None else (*covered, fingerprint)))


def about_answer(request: str) -> int:
    """The start of the CRC for the answer to a request."""
    return crc32(request.encode())


def about_document(kind: str, name: str, version: int, hash: str) -> int:
    """The start of the CRC for the body of one version."""
    return crc32(_json((kind, name, version, hash)))


def about_entry(log: str, id: int, subject: str, at: int) -> int:
    """The start of the CRC for the body of a log's entry."""
    return crc32(_json((log, id, subject, at)))


def about_note(key: str, at: int) -> int:
    """The start of the CRC for the body of a note."""
    return crc32(_json((key, at)))


def about_entity(columns: Sequence[str | int | None]) -> int:
    """The start of the CRC for the attributes of a record: its key, type, id, name, email, and when it was made and
    changed."""
    return crc32(_json(columns))


class Seals(NamedTuple):
    """The result of a check of every sealed value of a store."""

    sealed: int
    unsealed: int
    """Number of values from before there were seals."""
    damaged: list[StoreDamaged]


def block_damaged(place: str, run: RunId, seq: int) -> StoreDamaged:
    """A block of history whose checksum does not hold."""
    return StoreDamaged(place, f"history, the block that ends with event {seq}", run)


def effect_damaged(place: str, run: RunId, id: int) -> StoreDamaged:
    """A row of the outbox whose checksum does not hold."""
    return StoreDamaged(place, f"outbox, row {id}", run)


def offer_damaged(place: str, run: RunId, token: int) -> StoreDamaged:
    """Queue work whose checksum does not hold."""
    return StoreDamaged(place, f"work, visit {token}", run)


def gate_damaged(place: str, run: RunId, token: int) -> StoreDamaged:
    """A gate's row whose checksum does not hold."""
    return StoreDamaged(place, f"gates, visit {token}", run)


def request_damaged(place: str, run: RunId, request: str) -> StoreDamaged:
    """A request whose checksum does not hold."""
    return StoreDamaged(place, f"requests, {request}", run)


def document_damaged(place: str, kind: str, name: str, version: int) -> StoreDamaged:
    """A version whose checksum does not hold."""
    return StoreDamaged(place, f"documents, {kind} {name!r} version {version}", None)


def entry_damaged(place: str, log: str, id: int) -> StoreDamaged:
    """An entry of a log whose checksum does not hold."""
    return StoreDamaged(place, f"log_entries, {log} {id}", None)


def note_damaged(place: str, key: str) -> StoreDamaged:
    """A note whose checksum does not hold."""
    return StoreDamaged(place, f"notes, {key!r}", None)


def entity_damaged(place: str, key: str) -> StoreDamaged:
    """A record of an entity whose checksum does not hold."""
    return StoreDamaged(place, f"entities, {key}", None)


def blob_damaged(place: str, digest: bytes, run: RunId | None = None) -> StoreDamaged:
    """Bytes of a blob that do not match their digest."""
    return StoreDamaged(place, f"blobs, {digest.hex()}", run)


def tell_log(problem: StoreDamaged) -> None:
    """The default of a store's `tell`: writes the report to the log."""
    logging.getLogger("treadle.store").error("left out a damaged row: %s", problem)


class Judge:
    """Checks the seals of rows as `store.transfer` carries them, shelf by shelf."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.sealed = self.unsealed = 0
        self.damaged: list[StoreDamaged] = []

    def look(self, shelf: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Checks some rows of a shelf."""
        one = getattr(self, f"_{shelf}", None)
        if one is not None:
            for row in rows:
                one(*row)

    def verdict(self) -> Seals:
        return Seals(self.sealed, self.unsealed, self.damaged)

    def _value(self, kept: bytes | None, about: int, damaged: Callable[[], StoreDamaged]) -> None:
        if kept is None:
            return
        if kept[:1] != bytes((MARK,)):
            if _is_packed(kept):
                self.unsealed += 1
            else:  # it lost its mark, or was damaged before there were seals
                self.damaged.append(damaged())
        else:
            self._sealed(kept, about, damaged)

    def _sealed(self, kept: bytes, about: int, damaged: Callable[[], StoreDamaged]) -> None:
        if unseal(kept, about) is None:
            self.damaged.append(damaged())
        else:
            self.sealed += 1

    def _documents(self, kind: str, name: str, version: int, hash: str, body: bytes | None) -> None:
        about = about_document(kind, name, version, hash)
        self._value(body, about, lambda: document_damaged(self._place, kind, name, version))

    def _history(self, run: RunId, seq: int, block: bytes) -> None:
        if block[:1] != bytes((MARK,)):
            self.unsealed += 1  # not one packed value: `fsck` finds one that does not unpack when it folds the run
        else:
            self._sealed(block, about_block(run, seq), lambda: block_damaged(self._place, run, seq))

    def _outbox(self, run: RunId, id: int, effect: bytes, _parked: str | None) -> None:
        self._value(effect, about_effect(run), lambda: effect_damaged(self._place, run, id))

    def _gates(
        self,
        run: RunId,
        token: int,
        node: str,
        opened: int,
        title: str | None,
        assign: bytes | None,
        due: int | None,
        *_shown: Any,  # not sealed: these columns change while the gate is open, or only narrow lists down
    ) -> None:
        about = about_gate(run, token, node, opened, title, due)
        self._value(assign, about, lambda: gate_damaged(self._place, run, token))

    def _requests(
        self,
        run: RunId,
        request: str,
        workflow: str | None,
        at: int,
        command: bytes,
        answer: bytes | None,
        fingerprint: str | None,
    ) -> None:
        def damaged() -> StoreDamaged:
            return request_damaged(self._place, run, request)

        self._value(command, about_request(run, request, workflow, at, fingerprint), damaged)
        self._value(answer, about_answer(request), damaged)

    def _log_entries(self, log: str, id: int, subject: str, at: int, body: bytes, _hash: bytes | None) -> None:
        self._value(body, about_entry(log, id, subject, at), lambda: entry_damaged(self._place, log, id))

    def _notes(self, key: str, at: int, body: bytes) -> None:
        self._value(body, about_note(key, at), lambda: note_damaged(self._place, key))

    def _entities(self, key: str, *columns: Any) -> None:
        type, id, name, email, attributes, created, changed, _search = columns  # `search` only narrows lists down
        about = about_entity((key, type, id, name, email, created, changed))
        self._value(attributes, about, lambda: entity_damaged(self._place, key))

    def _blobs(self, run: RunId, digest: bytes, content: bytes) -> None:
        if hashlib.sha256(content).digest() == digest:
            self.sealed += 1
        else:
            self.damaged.append(blob_damaged(self._place, digest, run))


def _is_packed(kept: bytes) -> bool:
    """Whether bytes without a seal are one packed value."""
    try:
        msgspec.msgpack.decode(kept)
    except (msgspec.DecodeError, ValueError):
        return False
    return True
