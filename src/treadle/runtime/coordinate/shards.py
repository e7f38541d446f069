"""The shards this node owns, and the fences it writes under.

Owns the set of shards. There are two rights: to decide (`owns`), and to write decisions (`fences`). Handing a shard
over takes the first right away at once, and the second when everything decided is durable.

A shard is in doubt when its lease may have run out and the store has not yet said which node holds it. Then this node
has neither right, but work for the shard's runs goes on. If the shard comes back and no other node has held it
meanwhile, its tenure goes on: reports of work that was begun before are accepted.

On a store of one shard this node owns all runs, and no shard of a run has to be computed. Must not know how shards are
gained (`membership`) nor what else must stop when one is lost (`core`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from treadle.errors import StoreConflict
from treadle.model.ids import RunId
from treadle.store.port import Fence
from treadle.store.rows import shard_of


class Moved(Exception):
    """Another node owns the run, or owns it by now. The command was surely not written: send it to that node. This
    exception never reaches a user."""

    def __init__(self, run: RunId) -> None:
        super().__init__(f"run {run} is coordinated by another node")
        self.run = run


class Shards:
    """See the module's docstring."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.fences: dict[int, Fence] = {}
        """By shard: the fence under which its decisions may be written."""
        self.doubted: dict[int, Fence] = {}
        """By shard in doubt: the fence it had."""
        self._since: dict[int, int] = {}
        """By shard: the first epoch of an unbroken tenure."""
        self._owned: frozenset[int] = frozenset()

    @property
    def is_shared(self) -> bool:
        """Whether other nodes may own some of the runs."""
        return self.count > 1

    @property
    def owned(self) -> tuple[int, ...]:
        """The shards this node decides for, in order."""
        return tuple(sorted(self._owned))

    def of(self, name: str) -> int:
        """The shard of a run, or of anything else with a name."""
        return shard_of(RunId(name), self.count)

    def owns(self, name: str) -> bool:
        """Whether this node decides for the run or name."""
        return shard_of(RunId(name), self.count) in self._owned

    def epoch_of(self, name: str) -> int:
        """Epoch of the lease under which this node holds the shard, or held it before it came into doubt. 0: it does
        not hold it, or the store has one shard and epochs need not be compared."""
        if self.count == 1:
            return 0
        shard = shard_of(RunId(name), self.count)
        fence = self.fences.get(shard) or self.doubted.get(shard)
        return fence.epoch if fence is not None else 0

    def is_current(self, name: str, epoch: int) -> bool:
        """Whether this node holds the shard, and no other has held it since it was held here with that epoch."""
        shard = shard_of(RunId(name), self.count)
        fence = self.fences.get(shard)
        return fence is not None and self._since[shard] <= epoch <= fence.epoch

    def is_in_doubt(self, name: str, epoch: int) -> bool:
        """Whether the shard is in doubt, and may turn out to have been held by no other node since that epoch."""
        shard = shard_of(RunId(name), self.count)
        fence = self.doubted.get(shard)
        return fence is not None and self._since[shard] <= epoch <= fence.epoch

    def gain(self, fences: Collection[Fence]) -> list[int]:
        """Adds shards with their new fences. Returns those whose tenure begins anew. A node that takes its own lease
        again after it ran out gets the next epoch; if the epoch is further on, another node has had the shard."""
        anew = []
        for fence in fences:
            before = self.fences.get(fence.shard) or self.doubted.pop(fence.shard, None)
            self.fences[fence.shard] = fence
            if before is None or fence.epoch - before.epoch not in (0, 1):
                self._since[fence.shard] = fence.epoch
                anew.append(fence.shard)
        self._owned |= {fence.shard for fence in fences}
        return anew

    def doubt(self, shards: Collection[int]) -> None:
        """Takes both rights away until the store has said which node holds these shards."""
        self.leave(shards)
        for shard in shards:
            self.doubted[shard] = self.fences.pop(shard)

    def leave(self, shards: Collection[int]) -> None:
        """Takes the right to decide away. Decisions made before may still be written."""
        self._owned -= frozenset(shards)

    def lose(self, shards: Collection[int]) -> None:
        """Takes both rights away for good."""
        self.leave(shards)
        for shard in shards:
            self.fences.pop(shard, None)
            self.doubted.pop(shard, None)

    def holds(self, name: str) -> bool:
        """Whether decisions about the run may be written."""
        return shard_of(RunId(name), self.count) in self.fences

    def still_held(self, conflict: StoreConflict, fences: tuple[Fence, ...]) -> StoreConflict:
        """The store refused a batch under these fences. Returns that conflict, with only those shards that are still
        held under one of the fences. A shard that came back with a new lease, or was given up, is not lost by it."""
        if not self.is_shared:
            return conflict
        held = [shard for shard in conflict.shards if self.fences.get(shard) in fences]
        return StoreConflict(conflict.kind, "another node has taken them over", held)

    def covering(self, runs: Iterable[RunId]) -> tuple[Fence, ...]:
        """The fences a batch about these runs needs. Raises StoreConflict, as the store would, if one is missing."""
        if self.count == 1:
            return tuple(self.fences.values())
        touched = {self.of(run) for run in runs}
        missing = touched - self.fences.keys()
        if missing:
            text = f"shards {sorted(missing)} were given up before this could be written"
            raise StoreConflict("LEASE_CONFLICT", text, sorted(missing))
        return tuple(self.fences[shard] for shard in sorted(touched))
