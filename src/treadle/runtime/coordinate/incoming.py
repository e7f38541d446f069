"""The coordinator's queue: commands on their way to a decision, in the order in which they are taken.

Owns the order. First come commands whose decision was not committed, then commands that waited for their run to be
folded, in the order in which the runs became ready, then all others as they came. So commands about one run keep their
order, and children that were asked for together are started in that order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from treadle.runtime.coordinate.gathering import Item


class Incoming:
    """See the module's docstring."""

    __slots__ = ("_again", "_came", "_returned", "put")

    def __init__(self) -> None:
        self._came: deque[Item] = deque()
        self.put = self._came.append
        self._returned: deque[Item] = deque()
        self._again: deque[Item] = deque()

    def __bool__(self) -> bool:
        return bool(self._came or self._returned or self._again)

    def __iter__(self) -> Iterator[Item]:
        yield from self._again
        yield from self._returned
        yield from self._came

    def give_back(self, items: Iterable[Item]) -> None:
        """Requeues items that were taken and had to wait for their run. If commands of the same runs are to be decided
        again, they came after these items, so these items go in front of them."""
        items = list(items)
        runs = {item.run for item in items}
        if any(item.run in runs for item in self._again):
            self._again.extendleft(reversed(items))
        else:
            self._returned.extend(items)

    def put_first(self, items: list[Item]) -> None:
        """Requeues items whose decision was not committed."""
        self._again.extendleft(reversed(items))

    def take(self) -> Item | None:
        """Takes the next item; None if the queue is empty."""
        if self._again:
            return self._again.popleft()
        if self._returned:
            return self._returned.popleft()
        return self._came.popleft() if self._came else None

    def clear(self) -> None:
        self._came.clear()
        self._returned.clear()
        self._again.clear()
