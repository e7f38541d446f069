"""How long somebody who waits puts up with a store that does not answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from treadle.errors import StoreUnavailable

PATIENCE_S = 30.0
"""How long somebody who waits puts up with a store that cannot be reached: longer than a database takes to restart or
to be replaced by its standby."""
AGAIN_FIRST_S, AGAIN_LAST_S = 0.05, 2.0

T = TypeVar("T")


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Asks a store until it answers, for a while. Only for what may be asked again."""
    until, delay = time.monotonic() + PATIENCE_S, AGAIN_FIRST_S
    while True:
        try:
            return await ask()
        except StoreUnavailable as problem:
            if problem.final or time.monotonic() + delay > until:
                raise
        await asyncio.sleep(delay)
        delay = min(delay * 2, AGAIN_LAST_S)
