"""Workers that claim over HTTP: which ones there are, and which queues and kinds they serve.

Owns what this process has seen of them, and its document about them in the store, which other processes read. Promises
that a worker that asks for work is listed within a second, and is forgotten some time after its last request. A sign of
life is written at most every WRITTEN_MS: nothing hangs on it, a worker holds its work by its claims.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from treadle.errors import StoreUnavailable
from treadle.runtime.surroundings.ports import Clock
from treadle.store.port import Store

KIND = "_workers"
WRITTEN_MS = 30_000
FORGOTTEN_MS = 120_000
"""Longer than a long poll of 60 s and a busy worker's pause between two of them."""
WORKERS_MAX = 1_000


class OutsideWorker(Struct, frozen=True):
    """One worker, as it was seen last."""

    worker: str
    queues: tuple[str, ...]
    kinds: tuple[str, ...] | None
    seen: int
    """When it has last asked for work."""


class OutsideWorkers:
    """See the module's docstring."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._known: dict[str, OutsideWorker] = {}
        self._written = -WRITTEN_MS

    async def seen(self, worker: str, queues: Sequence[str], kinds: Sequence[str] | None, wait_ms: int) -> None:
        """A worker asks for work, and may wait for it for so long."""
        now = self._clock.now()
        before = self._known.pop(worker, None)
        served = (tuple(queues), tuple(kinds) if kinds is not None else None)
        self._known[worker] = OutsideWorker(worker, *served, now + wait_ms)
        if len(self._known) > WORKERS_MAX:
            del self._known[next(iter(self._known))]
        is_new = before is None or (before.queues, before.kinds) != served
        if is_new or now - self._written >= WRITTEN_MS:
            self._written = now
            await self._write(now)

    async def _write(self, now: int) -> None:
        self._known = {name: one for name, one in self._known.items() if one.seen > now - FORGOTTEN_MS}
        body = msgspec.to_builtins(list(self._known.values()))
        digest = hashlib.sha256(msgspec.json.encode(body)).hexdigest()
        with suppress(StoreUnavailable):  # the next claim says why
            await self._store.put_document(KIND, self._name, digest, body or None)


async def outside_workers(store: Store, now: int) -> list[OutsideWorker]:
    """The workers that have asked for work lately, by name, from the documents of all processes that serve."""
    newest: dict[str, OutsideWorker] = {}
    for document in await store.documents(KIND):
        for one in msgspec.convert(document.body, list[OutsideWorker]):
            if one.seen > now - FORGOTTEN_MS and (one.worker not in newest or newest[one.worker].seen < one.seen):
                newest[one.worker] = one
    return [newest[name] for name in sorted(newest)]
