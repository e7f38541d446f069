"""Decoding of a database's packed values: seals are compared, values that were moved out are put back.

Owns the decoders. Must not know which query the rows come from, and must not write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

import asyncpg
from msgspec.msgpack import Ext

from treadle.errors import StoreDamaged, StoreUnavailable
from treadle.model.codec import uncompressed, unpacking
from treadle.model.effects import Effect
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.store.packing import unpack, unpacking_effects
from treadle.store.postgres.connect import without_nul
from treadle.store.postgres.queries import SQL
from treadle.store.seals import (
    Tell,
    Unreadable,
    about_block,
    about_effect,
    blob_damaged,
    block_damaged,
    effect_damaged,
    offer_damaged,
    read,
    unseal,
)
from treadle.store.spill import Resolver

DATABASE = "the database"
T = TypeVar("T")


class _Missing(Exception):
    """A value that was moved out has not been fetched yet."""


class PostgresValues:
    """Decoders of one answer: values that were moved out are fetched for all its records at once, layer by layer."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self.fetched: dict[bytes, bytes] = {}
        self._resolver = Resolver(self._known)

    @cached_property
    def events(self) -> Callable[[bytes], list[Event]]:
        """Made on first use: making a decoder of all events takes longer than decoding most answers."""
        return unpacking(self._resolver)

    @cached_property
    def effect(self) -> Callable[[bytes], Effect]:
        return unpacking_effects(self._resolver)

    def _known(self, digest: bytes) -> bytes:
        try:
            return self.fetched[digest]
        except KeyError:
            raise _Missing from None

    async def decode(self, decoder: Callable[[bytes], T], runs: Sequence[RunId], packed: Sequence[bytes]) -> list[T]:
        """The records of these runs."""
        try:
            return [decoder(one) for one in packed]
        except _Missing:
            await self.fetch(runs, packed)
            return [decoder(one) for one in packed]

    async def fetch(self, runs: Sequence[RunId], packed: Sequence[bytes]) -> set[bytes]:
        """Fetches everything that the records refer to, directly or through each other. Returns the digests."""
        found: set[bytes] = set()
        layer = {digest for one in packed for digest in marks(uncompressed(one))}
        while layer := layer - found:
            found |= layer
            wanted = list(layer - self.fetched.keys())
            rows = (
                await self._connection.fetch(SQL["blobs_of_runs"], [without_nul(run) for run in set(runs)], wanted)
                if wanted
                else []
            )
            self.fetched.update((bytes(digest), checked(digest, content)) for digest, content in rows)
            if lost := layer - self.fetched.keys():
                raise StoreUnavailable(
                    f"content {min(lost).hex()} is missing: forgotten just now, else restore a backup"
                )
            layer = {inner for digest in layer for inner in marks(self.fetched[digest])}
        return found


async def effects_of(
    connection: asyncpg.Connection, rows: Sequence[asyncpg.Record], tell: Tell
) -> list[tuple[asyncpg.Record, Effect]]:
    """The effects of rows of the outbox or of queue work; damaged ones are reported and left out. Almost none has a
    value that was moved out."""
    found: list[tuple[asyncpg.Record, Effect]] = []
    for row in rows:
        run = RunId(row["run"])
        about = about_effect(run)
        try:
            try:
                effect = read(row["effect"], about, _plain_effect)
            except _Missing:
                values = PostgresValues(connection)
                (effect,) = await values.decode(values.effect, [run], [read(row["effect"], about, bytes)])
        except Unreadable:
            id = row.get("id")
            tell(offer_damaged(DATABASE, run, row["token"]) if id is None else effect_damaged(DATABASE, run, id))
        except StoreDamaged as problem:  # a value that was moved out
            tell(problem)
        else:
            found.append((row, effect))
    return found


def checked(digest: bytes, content: bytes) -> bytes:
    """The bytes, if they match their digest."""
    if hashlib.sha256(content).digest() != digest:
        raise blob_damaged(DATABASE, digest)
    return bytes(content)


def block_of(run: RunId, seq: int, kept: bytes) -> bytes:
    """A block of history without its seal."""
    content = unseal(kept, about_block(run, seq))
    if content is None:
        raise block_damaged(DATABASE, run, seq)
    return content


def _absent(_digest: bytes) -> bytes:
    raise _Missing


_plain_effect = unpacking_effects(Resolver(_absent))


def marks(packed: bytes) -> set[bytes]:
    """Digests that a record refers to directly."""
    found: set[bytes] = set()
    pending = [unpack(packed)]
    while pending:
        value = pending.pop()
        if isinstance(value, Ext):
            found.add(bytes(value.data))
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return found
