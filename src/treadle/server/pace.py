"""The pace of streams: what they do together takes a tenth of the time at most while there is much to do.

Owns the account of the time that streams take. Work on the loop is timed. Reading and sending are counted by estimates,
because their time is mostly waiting, for the store or for a reader, which slows nobody. Time in which this process
wanted a processor and other processes had it is no time at all: a tenth of it would be much more than a tenth of what
the engine gets. Promises that no stream waits for another one's store or reader: only for time to be spare. Must not
know what is read or sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import TypeVar

SHARE = 0.1
"""Of the time, for the work of all streams together."""
BURST_S = 0.05
"""Work that is done at once after a pause: so that a lone event is not delayed."""
DEBT_MAX_S = 0.3
"""Work that is paid for at most by a pause: streams must not pause for minutes after one long piece of it."""
READ_S = 0.0002
EVENT_S = 0.00001
"""What reading takes, and each event that is read. Estimates: the time that a read takes is mostly spent waiting for
the store, so on a busy machine it says nothing about the work."""
SEND_S = 0.00006
"""What one write to one follower takes, however short it is. An estimate: no sending is timed, because a slow reader
would count as work."""
SEND_BYTES_S = 0.5e-9
"""The same for each byte, as an estimate."""

WAKE_S = 0.00002
"""What waking a follower takes that looks for news. An estimate: most of it is the loop's own."""

LOOK_S = 0.02
"""How often the system is asked how long this thread has waited for a processor: it takes some 10 µs."""
QUEUED_MAX = 0.9
"""The part of the time that counts as waiting for a processor at most: on a machine that is far too busy streams become
ten times as slow, and do not stand still."""
_STATISTICS = Path("/proc/thread-self/schedstat")

Read = TypeVar("Read")


def queued_s() -> float:
    """How long this thread has waited for a processor since it began; 0 where the system does not tell."""
    try:
        return int(_STATISTICS.read_bytes().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class Pace:
    """Lets work of streams happen one after the other, for a share of the time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._sending = asyncio.Lock()
        """Apart from `_turn`, which is held while the store is waited for."""
        self._spare = BURST_S
        self._at = self._looked = perf_counter()
        self._queued = queued_s()
        self._waited = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One piece of work. Waits until there is time for it. All of its time counts but that inside of `read`."""
        async with self._turn:
            await self._wait_spare()
            began, self._waited = perf_counter(), 0.0
            try:
                yield
            finally:
                self._spend(perf_counter() - began - self._waited)

    async def read(self, asked: Awaitable[list[Read]]) -> list[Read]:
        """Waits for the store, inside of a turn. The wait does not count."""
        began = perf_counter()
        self._spend(READ_S)
        try:
            found = await asked
        finally:
            self._waited += perf_counter() - began
        self._spend(len(found) * EVENT_S)
        return found

    async def spare(self) -> None:
        """Waits until there is time for a short piece of work, which is told to `worked`."""
        async with self._sending:
            await self._wait_spare()

    def worked(self, seconds: float) -> None:
        """So much work was done outside of a turn."""
        self._spend(seconds + WAKE_S)

    async def sending(self, size: int) -> None:
        """Waits until there is time to send so many bytes to one follower. The sending itself is not waited for: a
        slow reader must not hold up the others."""
        async with self._sending:
            await self._wait_spare()
            self.sent(size)

    def sent(self, size: int) -> None:
        """So many bytes are sent to one follower, which had its turn already."""
        self._spend(SEND_S + size * SEND_BYTES_S)

    async def _wait_spare(self) -> None:
        self._refill()
        if self._spare < 0:
            await asyncio.sleep(-self._spare / SHARE)
            self._refill()

    def _spend(self, seconds: float) -> None:
        self._spare = max(self._spare - seconds, -DEBT_MAX_S)

    def _refill(self) -> None:
        now = perf_counter()
        self._spare = min(BURST_S, self._spare + (now - self._at) * SHARE)
        self._at = now
        if now - self._looked >= LOOK_S:
            queued = queued_s()
            self._spend(min(queued - self._queued, (now - self._looked) * QUEUED_MAX) * SHARE)
            self._queued, self._looked = queued, now
