"""Waits for a store that does not answer.

Owns two waits: `patiently` repeats one request, `until_open` repeats the opening of a store. A client waits for a
database that restarts and for a disk that is full just as a running engine does. Must not know the requests.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import TypeVar

from treadle.errors import StoreUnavailable
from treadle.runtime.surroundings.outage import OUTAGE

PATIENCE_S = 30.0
"""Seconds that a caller waits for a store that cannot be reached: longer than a database takes to restart or to be
replaced by its standby."""
AGAIN_FIRST_S, AGAIN_LAST_S = 0.05, 2.0

T = TypeVar("T")


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Repeats a request until the store answers, for at most PATIENCE_S. Only for requests that may be repeated."""
    loop = asyncio.get_running_loop()
    until, delay = loop.time() + PATIENCE_S, AGAIN_FIRST_S
    while True:
        try:
            return await ask()
        except StoreUnavailable as problem:
            if problem.final or loop.time() + delay > until:
                raise
        await asyncio.sleep(delay)
        delay = min(delay * 2, AGAIN_LAST_S)


async def until_open(open: Callable[[], Awaitable[T]], undo: Callable[[], Awaitable[None]], wait_ms: int) -> T:
    """Opens something on a store. While the store does not answer or its disk is full, tries again for `wait_ms`;
    before each further try `undo` closes everything opened so far. The log says what it waits for."""
    loop = asyncio.get_running_loop()
    until, delay = loop.time() + wait_ms / 1_000, AGAIN_FIRST_S
    while True:
        try:
            opened = await open()
            OUTAGE.answered()
            return opened
        except (StoreUnavailable, OSError) as failed:
            await undo()
            problem = _passing(failed)
            if problem is None or loop.time() + delay > until:
                raise
        OUTAGE.failed("opening the store", problem)
        await asyncio.sleep(delay)
        delay = min(delay * 2, AGAIN_LAST_S)


def _passing(problem: StoreUnavailable | OSError) -> StoreUnavailable | None:
    """The problem if waiting may help; None if it would not."""
    if isinstance(problem, StoreUnavailable):
        return None if problem.final else problem
    return StoreUnavailable(str(problem)) if problem.errno in (errno.ENOSPC, errno.EDQUOT) else None
