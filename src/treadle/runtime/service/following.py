"""Following of a store: all events in one order, and a hint when there may be more. Reached as `Client.following`.

Owns the words. Events are read from the store, which is the truth; a hint only says that it is worth looking. Must not
know who follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from treadle.store.following import EventPosition, EventStore, FollowedEvent
from treadle.store.port import Store

__all__ = ["FollowedEvent", "Following"]

Listen = Callable[[Callable[[], None]], Callable[[], None]]


class Following:
    """See the module's docstring."""

    def __init__(self, store: Store, listen: Listen | None, hears_all: bool) -> None:
        self._store = cast(EventStore, store)
        self._listen = listen
        self.hears_all = hears_all
        """Whether every commit of the store is made by this process, so that hints are enough."""

    async def events_after(self, position: str | None, limit: int = 1_000) -> list[FollowedEvent]:
        """Events behind a position; None is the beginning. Raises PositionGone, and ValueError for a text that is no
        position."""
        return await self._store.events_after(position, limit)

    async def last_position(self) -> str:
        """The position behind everything that is committed now."""
        return await self._store.last_position()

    def is_past(self, position: str, last: str) -> bool:
        """Whether an event at this position was committed when `last` was the last position."""
        return EventPosition.read(position).number <= EventPosition.read(last).number

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Calls `heard` whenever this process has committed something. Returns a function that ends this."""
        return self._listen(heard) if self._listen is not None else lambda: None
