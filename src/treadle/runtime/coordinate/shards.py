"""Which shards of the runs this node may decide for, and with which fences it writes.

Owns the set of shards. Two rights, and the second outlives the first by a moment: to decide (`owns`), and to write what
has been decided (`fences`). Handing a shard over takes the first away at once and the second when everything decided is
durable. A shard is in doubt when its lease may have run out and nobody has said yet who has it: it has neither right,
but what is executed for it goes on. If it comes back and nobody had it meanwhile, its tenure goes on: reports of work
that was begun before count. A store of one shard is owned whole: nobody has to compute where a run belongs. Must not
know how shards are come by (`membership`) nor what else has to go when one is lost (`core`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from treadle.errors import StoreConflict
from treadle.model.ids import RunId
from treadle.store.port import Fence
from treadle.store.rows import shard_of


class Moved(Exception):
    """The run belongs, or belongs by now, to another node. What was asked was surely not written: ask there. Never
    leaves this room."""

    def __init__(self, run: RunId) -> None:
        super().__init__(f"run {run} is coordinated by another node")
        self.run = run


class Shards:
    """See the module's docstring."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.fences: dict[int, Fence] = {}
        """By shard. What may be written."""
        self.doubted: dict[int, Fence] = {}
        """By shard in doubt: the fence it had."""
        self._since: dict[int, int] = {}
        """By shard: the first epoch of an unbroken tenure."""
        self._owned: frozenset[int] = frozenset()

    @property
    def is_shared(self) -> bool:
        """Whether other nodes may own a part of the runs."""
        return self.count > 1

    @property
    def owned(self) -> tuple[int, ...]:
        """What is decided for here, in order."""
        return tuple(sorted(self._owned))

    def of(self, name: str) -> int:
        """Where a run, or anything else with a name, belongs."""
        return shard_of(RunId(name), self.count)

    def owns(self, name: str) -> bool:
        """Whether decisions about it are made here."""
        return shard_of(RunId(name), self.count) in self._owned

    def epoch_of(self, name: str) -> int:
        """Of the lease its shard is held by, or was before it came into doubt; 0: by none, or nobody else can have held
        it meanwhile."""
        if self.count == 1:
            return 0
        shard = shard_of(RunId(name), self.count)
        fence = self.fences.get(shard) or self.doubted.get(shard)
        return fence.epoch if fence is not None else 0

    def is_current(self, name: str, epoch: int) -> bool:
        """Whether nobody else has held its shard since it was held here with that epoch."""
        shard = shard_of(RunId(name), self.count)
        fence = self.fences.get(shard)
        return fence is not None and self._since[shard] <= epoch <= fence.epoch

    def is_in_doubt(self, name: str, epoch: int) -> bool:
        """Whether it may turn out that nobody else has held its shard since then."""
        shard = shard_of(RunId(name), self.count)
        fence = self.doubted.get(shard)
        return fence is not None and self._since[shard] <= epoch <= fence.epoch

    def gain(self, fences: Collection[Fence]) -> list[int]:
        """Returns the shards whose tenure begins anew. A lease that is taken after it has run out has the next epoch;
        if the epoch is further on, somebody else has had the shard."""
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
        """Nothing is decided for them nor written before it is known who has them."""
        self.leave(shards)
        for shard in shards:
            self.doubted[shard] = self.fences.pop(shard)

    def leave(self, shards: Collection[int]) -> None:
        """Nothing more is decided for them; what has been may still be written."""
        self._owned -= frozenset(shards)

    def lose(self, shards: Collection[int]) -> None:
        """Nothing more is decided for them nor written."""
        self.leave(shards)
        for shard in shards:
            self.fences.pop(shard, None)
            self.doubted.pop(shard, None)

    def holds(self, name: str) -> bool:
        """Whether what has been decided about it may be written."""
        return shard_of(RunId(name), self.count) in self.fences

    def still_held(self, conflict: StoreConflict, fences: tuple[Fence, ...]) -> StoreConflict:
        """A refusal of a batch under these fences, about those shards only that are held by one of them: a shard that
        has come back with a new lease since then, or was given up here, is not lost by it."""
        if not self.is_shared:
            return conflict
        held = [shard for shard in conflict.shards if self.fences.get(shard) in fences]
        return StoreConflict(conflict.kind, "another node has taken them over", held)

    def covering(self, runs: Iterable[RunId]) -> tuple[Fence, ...]:
        """The fences a batch about these runs needs. Raises StoreConflict, as the store would, where there is none."""
        if self.count == 1:
            return tuple(self.fences.values())
        touched = {self.of(run) for run in runs}
        missing = touched - self.fences.keys()
        if missing:
            text = f"shards {sorted(missing)} were given up before this could be written"
            raise StoreConflict("LEASE_CONFLICT", text, sorted(missing))
        return tuple(self.fences[shard] for shard in sorted(touched))
