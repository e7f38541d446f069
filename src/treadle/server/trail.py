"""The audit trail of a service: gathers entries and writes them in order, many at once.

Promises that the entry of a write is in the log before the write is answered (`keep`), that any other entry is written
within a tenth of a second and before the service ends, and that strangers cannot fill the log: refusals of callers
nobody knows are written one by one up to a rate for each address, and beyond that counted. What a crash can lose:
refusals of the last tenth of a second, and the entry of a write whose answer nobody has got; of keys, secrets and
sessions nothing, because those are written together with their effect, as starts of runs are where one process
coordinates the store (`runtime.coordinate.along`). While the store does not answer, entries wait in
memory.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from treadle.errors import TreadleError
from treadle.runtime.access.audit import AuditEvent, entry_of
from treadle.runtime.service.records import Changes, Entry, Records
from treadle.runtime.surroundings.logs import logger
from treadle.server.buckets import TokenBuckets

log = logger("treadle.server")
GATHER_S = 0.1
"""How long entries gather that nobody waits for. Each batch is a transaction: ten a second are not felt beside the
engine's own."""
BATCH_MAX = 1_000
KEPT_MAX = 100_000
"""Entries that wait for a store that does not answer; beyond that the oldest are given up, and the
service's log says how many."""
AGAIN_S = 1.0
KEEP_S = 5.0
"""How long an answer waits for its entry. The effect is durable already: beyond that its caller is told so, and the
entry is written when the store takes it."""
STRANGERS_PER_S = 0.5
STRANGERS_BURST = 200.0
"""Entries of refused strangers, for each address: a burst shows what is going on, and 43,200 a day fill no disk."""


class _Waiting(NamedTuple):
    """An entry that is not written yet."""

    entry: Entry
    written: asyncio.Future[None]


class AuditTrail:
    """See the module's docstring."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._waiting: list[_Waiting] = []
        self._writer: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._is_awaited = asyncio.Event()
        self._strangers = TokenBuckets(STRANGERS_PER_S, STRANGERS_BURST)
        self._left_out: dict[str, int] = {}

    async def keep(self, event: AuditEvent, at: int) -> None:
        """Adds an entry and returns when it is written, or after KEEP_S."""
        written = self.add(event, at)
        if written is not None:
            self._is_awaited.set()
            await asyncio.wait([written], timeout=KEEP_S)

    def add(self, event: AuditEvent, at: int) -> asyncio.Future[None] | None:
        """Adds an entry, which is written soon. Returns a future that is done then; None: it was only counted."""
        if not event.who and event.status >= 400:
            if self._strangers.take(event.address) > 0:
                if len(self._left_out) < KEPT_MAX:
                    self._left_out[event.address] = self._left_out.get(event.address, 0) + 1
                return None
            event = _with_left_out(event, self._left_out.pop(event.address, 0))
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        self._waiting.append(_Waiting(entry_of(event, at), written))
        if self._writer is None:
            self._writer = loop.create_task(self._write_soon())
        return written

    async def close(self) -> None:
        """Writes what is left; tries once."""
        await self.write_now()
        if self._waiting:
            log.error("entries of the audit are lost: the store takes none", count=len(self._waiting))

    async def write_now(self) -> None:
        """Has everything that was added before written without waiting for more. Tries once."""
        while self._writer is not None:
            self._hurry.set()
            self._is_awaited.set()
            await self._writer
        self._hurry.clear()

    async def _write_soon(self) -> None:
        """Writes until nothing is left. Nobody cancels it: a batch must not be written twice."""
        while self._waiting:
            await _pause(self._is_awaited, GATHER_S)
            self._is_awaited.clear()
            batch = self._waiting[:BATCH_MAX]
            try:
                await self._records.write(Changes(entries=[one.entry for one in batch]))
                self._let_go(len(batch))
                if self._waiting:
                    self._is_awaited.set()  # somebody has come meanwhile, and may wait
            except TreadleError as problem:
                self._give_up_oldest(problem)
                if self._hurry.is_set():
                    break  # the next entry begins anew
                await _pause(self._hurry, AGAIN_S)
        self._writer = None

    def _let_go(self, count: int) -> None:
        """Drops the oldest entries and tells those who wait for them."""
        for one in self._waiting[:count]:
            if not one.written.done():
                one.written.set_result(None)
        del self._waiting[:count]

    def _give_up_oldest(self, problem: Exception) -> None:
        beyond = len(self._waiting) - KEPT_MAX
        if beyond > 0:
            self._let_go(beyond)
            log.error("entries of the audit are lost: the store takes none", count=beyond, problem=str(problem))


async def _pause(unless: asyncio.Event, seconds: float) -> None:
    """Waits so long, or until the event is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await unless.wait()


def _with_left_out(event: AuditEvent, count: int) -> AuditEvent:
    if not count:
        return event
    return replace(event, left_out=count)
