"""`concurrency: {limit, key?}`: how many visits are worked on at a time, across runs (1.2).

Owns who works and who waits in line, in order of arrival. In memory only: an engine that recovers hands everything out
anew and fills the slots again.
"""

from __future__ import annotations

from collections import defaultdict, deque

import msgspec

from treadle.model import events as e
from treadle.model.effects import RunTask, Slot
from treadle.model.ids import RunId, TokenId
from treadle.store.port import OutboxRow

ENDINGS = (e.TokenCompleted, e.TokenFailed, e.TokenTimedOut, e.TokenCancelled, e.TokenRetryScheduled, e.TokenWaiting)
"""An attempt is over with any of these."""


class Slots:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._working: dict[tuple[RunId, TokenId], bytes] = {}
        self._line: defaultdict[bytes, deque[OutboxRow]] = defaultdict(deque)

    def take(self, row: OutboxRow, effect: RunTask) -> bool:
        """Whether work may begin now; if not, its row waits in line."""
        if effect.slot is None:
            return True
        place = _place(effect.slot)
        if list(self._working.values()).count(place) >= effect.slot.limit:
            self._line[place].append(row)
            return False
        self._working[row.run, effect.token] = place
        return True

    def free(self, run: RunId, event: e.Event) -> OutboxRow | None:
        """Something has happened in a run: whose turn it is now, if that ended somebody's work."""
        if not self._working or not isinstance(event, ENDINGS):
            return None
        place = self._working.pop((run, event.token), None)
        return self._line[place].popleft() if place is not None and self._line[place] else None


def _place(slot: Slot) -> bytes:
    """What the limit counts: the same name and key."""
    return msgspec.json.encode([slot.name, slot.key])
