"""Defects planted into the engines of a torture, to see that it finds them (`--plant NAME`).

Owns the defects. `--plant` must end with findings; a torture that passes with one is no proof of anything.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

from treadle.kernel import on_answer
from treadle.kernel.book import StartBook
from treadle.kernel.deciding import Deciding
from treadle.kernel.start_place import StartPlace
from treadle.kernel.state import Token
from treadle.model.ids import TokenId
from treadle.runtime import engine
from treadle.runtime.surroundings.clock import SystemClock
from treadle.store.port import Batch, Fence, OutboxRow
from treadle.store.postgres import PostgresStore

VARIABLE = "TREADLE_TORTURE_PLANT"


def lost() -> None:
    """One in fifty new runs is acknowledged and not written."""
    really = PostgresStore.commit
    choose = random.Random(1)

    async def commit(store: PostgresStore, batch: Batch, *fences: Fence) -> list[OutboxRow]:
        if any(commit.expected_seq == 0 for commit in batch.commits) and choose.random() < 0.02:
            return []
        return await really(store, batch, *fences)

    PostgresStore.commit = commit  # type: ignore[assignment, method-assign]


def stale() -> None:
    """Whoever answers is believed: neither claim nor lease is looked at."""

    def answering(d: Deciding, token: TokenId, attempt: int, worker: str | None, spent: Any) -> Token | None:
        return on_answer._executing(d, token, attempt, worker, spent)

    on_answer._answering = answering  # type: ignore[assignment]


def clock() -> None:
    """Engines go by their own clocks."""

    class Own(SystemClock):
        def hear(self, now: int, took_ms: int = 0) -> None:
            """It knows better."""

    engine.SharedClock = Own  # type: ignore[attr-defined, assignment]


def crowd() -> None:
    """One in fifty questions whether another run may be live is answered with yes, whatever the limit is."""
    really = StartBook.has_room
    choose = random.Random(1)

    def has_room(book: StartBook, place: StartPlace) -> bool:
        return really(book, place) or choose.random() < 0.02

    StartBook.has_room = has_room  # type: ignore[assignment, method-assign]


def forgetful() -> None:
    """An engine that takes a shard over does not count the runs that are live there."""
    really = StartBook.hold

    def hold(book: StartBook, place: StartPlace) -> None:
        if place.rows:  # it comes from the store
            place.rows = ()
        else:
            really(book, place)

    StartBook.hold = hold  # type: ignore[assignment, method-assign]


PLANTS: dict[str, Callable[[], None]] = {
    "lost": lost,
    "stale": stale,
    "clock": clock,
    "crowd": crowd,
    "forgetful": forgetful,
}


def install() -> None:
    """What the environment says, in this process."""
    name = os.environ.get(VARIABLE)
    if name:
        PLANTS[name]()
