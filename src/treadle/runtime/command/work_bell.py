"""The bell of queue work: wakes callers that wait for something to claim.

Owns who waits for which queue. A ring is only a hint: work that was offered may be claimed by another caller already,
and a ring may be lost between processes, so a caller also looks from time to time. A ring between a look and the wait
after it is not lost: the caller takes a mark before it looks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection

ANY = ""
"""Rings for every queue."""


class WorkBell:
    """See the module's docstring. For one event loop."""

    def __init__(self) -> None:
        self._rung: Counter[str] = Counter()
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self.leased: Callable[[int], None] = lambda _lease_ms: None
        """Told how long each lease of a worker outside is, in milliseconds: an engine in this process looks when it
        ends."""

    def ring(self, queue: str = ANY) -> None:
        """A queue may have something to claim."""
        self._rung[queue] += 1
        names = list(self._waiting) if queue == ANY else [queue]
        for name in names:
            for waiter in self._waiting.get(name, ()):
                if not waiter.done():
                    waiter.set_result(None)

    def mark(self, queues: Collection[str]) -> int:
        """How often it has rung for these queues."""
        return sum(self._rung[queue] for queue in {*queues, ANY})

    async def wait(self, queues: Collection[str], mark: int, timeout_s: float) -> bool:
        """Waits until it has rung since the mark, or for so long. Whether it has rung."""
        if self.mark(queues) != mark:
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for queue in queues:
            self._waiting.setdefault(queue, set()).add(waiter)
        try:
            await asyncio.wait([waiter], timeout=timeout_s)
            return waiter.done()
        finally:
            for queue in queues:
                waiting = self._waiting[queue]
                waiting.discard(waiter)
                if not waiting:
                    del self._waiting[queue]
