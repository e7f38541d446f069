"""Waits for a store that does not answer.

Owns three waits: `patiently` repeats a request of a client for a while, `reliably` one of an engine until it is
answered, `until_open` repeats the opening of a store. A client waits for a database that restarts and for a disk that
is full just as a running engine does. Must not know the requests.
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
RETRY_FIRST_S, RETRY_LAST_S = 0.05, 5.0
"""Waits between tries to reach a store that is unavailable. A disk that stays full is tried every five seconds."""

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


def delay_after(failures: int) -> float:
    """Seconds until the next try, after so many failures in a row; none before the first."""
    return min(RETRY_FIRST_S * 2 ** (failures - 1), RETRY_LAST_S) if failures else 0


async def reliably(ask: Callable[[], Awaitable[T]], is_over: Callable[[], bool]) -> T:
    """Calls `ask` until the store answers: only for calls that may be repeated. Raises StoreUnavailable if the store
    has failed for good, or when it fails after `is_over`."""
    delay = RETRY_FIRST_S
    while True:
        try:
            answer = await ask()
            OUTAGE.answered()
            return answer
        except StoreUnavailable as problem:
            if is_over() or problem.final:
                raise
            OUTAGE.failed("reading", problem)
            await asyncio.sleep(delay)
            delay = min(delay * 2, RETRY_LAST_S)


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
