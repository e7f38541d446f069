"""The leases that a batch has to hold, and the message of a refusal.

Owns the part of invariant 5 of the port that needs no database. Must not know which node holds which lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from treadle.errors import StoreConflict
from treadle.model.ids import RunId
from treadle.store.port import Fence
from treadle.store.rows import shard_of


def check_cover(fences: Sequence[Fence], runs: Iterable[RunId], shards: int) -> None:
    """Refuses runs of shards that no fence is about."""
    covered = {fence.shard for fence in fences}
    if shards == 1 and 0 in covered:
        return
    bare: dict[int, RunId] = {}
    for run in runs:
        if (shard := shard_of(run, shards)) not in covered:
            bare.setdefault(shard, run)
    if bare:
        given = ", ".join(map(str, sorted(covered))) or "none"
        homes = "; ".join(f"run {run} belongs to shard {shard}" for shard, run in sorted(bare.items()))
        raise StoreConflict("LEASE_CONFLICT", f"{homes}; fences were given of {given}", sorted(bare))


def refusal(fences: Iterable[Fence], holders: Mapping[int, tuple[str, int]]) -> StoreConflict | None:
    """A StoreConflict that names the fences that are not the newest; None if all are. `holders`: shard → (owner,
    epoch)."""
    wrong = [fence for fence in fences if holders.get(fence.shard) != (fence.owner, fence.epoch)]
    if not wrong:
        return None
    message = "; ".join(_lost(fence, holders.get(fence.shard)) for fence in wrong)
    return StoreConflict("LEASE_CONFLICT", message, [fence.shard for fence in wrong])


def _lost(fence: Fence, holder: tuple[str, int] | None) -> str:
    now = f"epoch {holder[1]} of {holder[0]}" if holder else "nobody"
    return f"shard {fence.shard} belongs to {now}, not to epoch {fence.epoch} of {fence.owner}"
