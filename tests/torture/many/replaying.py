"""Requests that arrive more than once: whoever sends one sends it again, soon or late, answered or not.

Owns the repetition. Between two processes of ours the unit that can be doubled is the request: it is what a proxy, a
retrying client or a bug would send twice; the bytes below it belong to TCP. Repeats are counted in a journal.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.torture.journal import Journal
from treadle.errors import StoreUnavailable
from treadle.store.port import InboxAnswer, InboxRequest
from treadle.store.postgres import PostgresStore

REPLAYS = "replays.jsonl"
SHARE = 0.3
"""Of requests that are repeated, up to four times, for up to LATEST_S."""
TIMES_MAX = 4
LATEST_S = 4.0

Submit = Callable[[PostgresStore, InboxRequest], Awaitable[InboxAnswer | None]]


def install(journal: Journal, seed: int) -> None:
    """From now on, in this process."""
    really: Submit = PostgresStore.submit
    choose = random.Random(seed)
    seen: set[str] = set()
    repeating: set[asyncio.Task[None]] = set()

    async def submit(store: PostgresStore, request: InboxRequest) -> InboxAnswer | None:
        answer = await really(store, request)
        if request.id not in seen:
            seen.add(request.id)
            if choose.random() < SHARE:
                task = asyncio.create_task(repeat(store, request))
                repeating.add(task)
                task.add_done_callback(repeating.discard)
        return answer

    async def repeat(store: PostgresStore, request: InboxRequest) -> None:
        for _ in range(choose.randint(1, TIMES_MAX)):
            await asyncio.sleep(choose.uniform(0, LATEST_S))
            with suppress(StoreUnavailable):
                await really(store, request)
                journal.say(request=request.id)

    PostgresStore.submit = submit  # type: ignore[assignment, method-assign]
