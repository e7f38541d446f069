"""Starts that join a batch: on their way to it, and for a while afterwards (6.7).

Owns the starts on their way, and the commands for their runs. A batch may have to be read before it is decided whether
it takes the start, and it may have started or ended by then: the start is decided anew, and may become a run after all.
Promises that a command for that run is not decided before the start is. Must not choose a batch: `flow_control` does.

    start ─► begin ─► JoinBatch ─┬─ taken: joined      what waited behind it finds no run
                                 └─ not:   not_joined  the start is decided anew, then what waited behind it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from treadle.model import commands as c
from treadle.model.ids import RunId
from treadle.runtime.coordinate.gathering import Item

JOINED_MS = 10_000
"""A start that was looked up is decided well within this time."""


class Joining:
    """See the module's docstring."""

    def __init__(self, requeue: Callable[[Iterable[Item]], None]) -> None:
        self._requeue = requeue
        self._behind: dict[RunId, list[Item]] = {}
        """By run that a start on its way had asked for: commands that wait behind it."""
        self._joined: dict[RunId, tuple[RunId, int]] = {}
        """Starts that have joined a batch, and when. The store knows them as soon as that is durable; here they are
        kept for copies that were looked up before."""

    @property
    def waiting(self) -> list[Item]:
        """Commands that wait behind a start."""
        return [item for items in self._behind.values() for item in items]

    def begin(self, item: Item, start: c.StartRun, batch: RunId) -> None:
        """Makes a start a command for its batch."""
        self._behind.setdefault(item.run, [])
        item.start, item.run, item.command, item.fresh = start, batch, c.JoinBatch(start), False

    def keeps(self, item: Item) -> bool:
        """Whether a command waits behind the start of its run. If so, it is kept."""
        behind = self._behind.get(item.run)
        if behind is not None:
            behind.append(item)
        return behind is not None

    def joined(self, run: RunId, batch: RunId, now: int) -> None:
        """The start of this run has become an item of a batch."""
        self.over(run)
        while self._joined and next(iter(self._joined.values()))[1] < now - JOINED_MS:
            del self._joined[next(iter(self._joined))]
        self._joined[run] = batch, now

    def batch_of(self, run: RunId) -> RunId | None:
        """The batch that the start of this run has joined a moment ago."""
        batch, _at = self._joined.get(run, (None, 0))
        return batch

    def not_joined(self, item: Item) -> None:
        """A start did not become an item: it is decided anew, and then what has waited behind it."""
        as_start(item)
        self._requeue([item, *self._behind.pop(item.run, ())])

    def over(self, run: RunId) -> None:
        """A start is not on its way any more."""
        behind = self._behind.pop(run, None)
        if behind:
            self._requeue(behind)

    def forget_joined(self) -> None:
        """What was decided may not have been written."""
        self._joined.clear()


def as_start(item: Item) -> None:
    """Makes a command for a batch the start that it was; leaves every other one as it is."""
    if item.start is not None:
        item.run, item.command, item.start, item.fresh = item.start.run, item.start, None, False
