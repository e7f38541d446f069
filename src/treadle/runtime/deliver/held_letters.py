"""Letters that wait: rows with commands for other runs, written while rows that are older are still being read.

Owns these rows. A node that has gained a shard decides about its runs at once, but the rows that the last owner left
undone, or that this node itself left undone when it lost the shard, are only found by reading the outbox. Until then a
new row may not overtake them: the cancellation of a child would find no run, and the child would be started afterwards.
Promises that commands from one run to another come in the order of their rows. Must not deliver anything.

    gained ─► hold ─► new rows: `keeps` ─┐
       └────► the outbox is read ────────┴─► let_on: those that reading has not found
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import count

from treadle.model import effects as f
from treadle.model.ids import RunId
from treadle.runtime.deliver.relatives import LETTERS
from treadle.store.port import OutboxRow

FOR_OTHER_RUNS = frozenset({f.StartChild, *LETTERS})


class HeldLetters:
    """See the module's docstring."""

    def __init__(self, shard_of: Callable[[RunId], int]) -> None:
        self._shard_of = shard_of
        self._numbers = count(1)
        self._holds: dict[int, int] = {}
        """By shard: the number of its latest `hold`. A shard that was lost and gained again is held anew, and a reading
        of before does not end that."""
        self._rows: dict[int, OutboxRow] = {}
        """By id, in the order in which they were written."""

    def __bool__(self) -> bool:
        return bool(self._holds)

    def hold(self, shards: Collection[int]) -> None:
        """These shards were gained: their new rows wait from now on. Rows that waited before are in the outbox, unless
        another node has delivered them meanwhile."""
        self._take(shards)
        for shard in shards:
            self._holds[shard] = next(self._numbers)

    def of(self, shards: Collection[int]) -> dict[int, int]:
        """The holds of these shards, for the reading that begins now."""
        return {shard: self._holds[shard] for shard in shards if shard in self._holds}

    def keeps(self, row: OutboxRow) -> bool:
        """Whether a row that was just written has to wait. If so, it is kept."""
        if type(row.effect) not in FOR_OTHER_RUNS or self._shard_of(row.run) not in self._holds:
            return False
        self._rows[row.id] = row
        return True

    def found(self, row: OutboxRow) -> None:
        """Reading has found the row, so it is delivered now."""
        self._rows.pop(row.id, None)

    def let_on(self, holds: Mapping[int, int]) -> list[OutboxRow]:
        """The reading that began with these holds is over. Returns the rows that need not wait any longer."""
        over = {shard for shard, number in holds.items() if self._holds.get(shard) == number}
        for shard in over:
            del self._holds[shard]
        return self._take(over)

    def _take(self, shards: Collection[int]) -> list[OutboxRow]:
        rows = [row for row in self._rows.values() if self._shard_of(row.run) in shards]
        for row in rows:
            del self._rows[row.id]
        return rows
