"""The transitions of a run that were taken, with their counts, and the visits that have come to a join.

Owns this fold of a history, for pictures of a run. Promises the numbers that the canvas counts by itself from the same
events (`web/src/model/fold`): a token that was made by a transition, and one that came to a join by it, have taken it
once; the visit that a join makes was counted with its arrivals. Must not decide anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from treadle.kernel.renaming import Renaming
from treadle.model import events as e
from treadle.model.states import Mode, Waiting


class TakenWay(Struct):
    """One transition that was taken: how often, and when last."""

    count: int
    seq: int
    at: int
    origin: int | None
    """The visit from which the last token came."""
    why: str | None


class WayLog:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.taken: dict[str, TakenWay] = {}
        self._fired: dict[str, int] = {}
        """Node → joins there that have fired and whose visit is not made yet."""
        self.held: set[int] = set()
        """Visits that have come to a join after their work, and have not gone back to work since."""

    def apply(self, event: e.Event) -> None:
        """Folds in the next event."""
        reader = READERS.get(type(event))
        if reader is not None:
            reader(self, event)

    def rename(self, names: Renaming) -> None:
        """The run has another version from here on."""
        self.taken = {names.via(transition): way for transition, way in self.taken.items()}

    def created(self, event: e.TokenCreated) -> None:
        if event.mode is Mode.COMPENSATION:
            return
        if fired := self._fired.get(event.node, 0):
            self._fired[event.node] = fired - 1
        elif event.via is not None:
            self._take(event.via, event, event.origin, event.why)

    def arrived(self, event: e.JoinArrived) -> None:
        self._take(event.via, event, event.token or None, None)
        if event.token:
            self.held.add(event.token)

    def waiting(self, event: e.TokenWaiting) -> None:
        if event.arrival is None and event.reason is not Waiting.SIBLINGS:
            self.held.discard(event.token)

    def tried_again(self, event: e.TokenRetryScheduled) -> None:
        if event.by is not None:
            self.held.discard(event.token)

    def fired(self, event: e.JoinFired) -> None:
        self._fired[event.target] = self._fired.get(event.target, 0) + 1

    def _take(self, transition: str, event: e.Event, origin: int | None, why: str | None) -> None:
        known = self.taken.get(transition)
        if known is None:
            self.taken[transition] = TakenWay(1, event.seq, event.at, origin, why)
            return
        known.count += 1
        known.seq, known.at, known.origin, known.why = event.seq, event.at, origin, why


READERS: dict[type[e.Event], Callable[[WayLog, Any], None]] = {
    e.TokenCreated: WayLog.created,
    e.JoinArrived: WayLog.arrived,
    e.JoinFired: WayLog.fired,
    e.TokenWaiting: WayLog.waiting,
    e.TokenRetryScheduled: WayLog.tried_again,
}
