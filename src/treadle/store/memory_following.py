"""The reference for the log of all events: every block has a number, in the order of commits.

Owns the numbers and the notes about forgotten runs of a `MemoryStore`. Promises the contract of `store.following` to
the letter. It looks at every block: this store defines what the verbs mean, and is not fast.
"""

from __future__ import annotations

from secrets import token_hex

from treadle.model.codec import unpack_events
from treadle.model.ids import RunId
from treadle.store.following import EventPosition, FollowedEvent, positions
from treadle.store.memory_parts import KeptRun
from treadle.store.port import Commit


class MemoryFollowing:
    """The verbs of `store.following`."""

    def __init__(self) -> None:
        self._runs: dict[RunId, KeptRun] = {}
        self._log = token_hex(4)
        self._last_number = self._last_run = 0
        self._dropped: dict[int, int] = {}
        """When runs were forgotten, counted from 1 → the greatest number that was dropped."""

    async def events_after(self, position: str | None, limit: int = 1_000) -> list[FollowedEvent]:
        after = EventPosition.read(position) if position is not None else None
        if after is not None:
            since = [dropped for forgets, dropped in self._dropped.items() if forgets > after.forgets]
            after.check(self._log, max(since, default=0), self._last_number)
        blocks = [
            (number, kept, block)
            for kept in self._runs.values()
            for number, block in zip(kept.numbers, kept.blocks, strict=True)
            if after is None or after.is_behind(number)
        ]
        found: list[FollowedEvent] = []
        for number, kept, block in sorted(blocks, key=lambda one: one[0]):
            row = kept.row()
            placed = positions(self._log, len(self._dropped), number, 0, unpack_events(block), after)
            found += [FollowedEvent(place, row.run, row.workflow, row.entity, event) for place, event in placed]
            if len(found) >= limit:
                break
        return found[:limit]

    async def last_position(self) -> str:
        return str(EventPosition(self._log, len(self._dropped), self._last_number))

    def _next_number(self, commit: Commit) -> int:
        self._last_number += bool(commit.events)
        return self._last_number

    def _forgot(self, dropped: int) -> None:
        if dropped:
            self._dropped[len(self._dropped) + 1] = dropped
