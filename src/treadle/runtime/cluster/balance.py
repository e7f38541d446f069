"""Decides which shards a node takes and which it gives back: a pure function of the live nodes and the leases.

Owns the arithmetic. Promises, for nodes that see the same: shares differ by at most one; no two nodes want the same
shard; no held shard is taken; no node gives back more than its surplus. So after a node came or went, every shard moves
at most once. Nodes that see different things may both reach for a shard: the store's lease decides, and the next look
corrects the rest. Must not wait, ask or know a clock.

    shares of 8 shards      a: 4  b: 4        c comes:  a: 3  b: 3  c: 2      a goes:  b: 4  c: 4
    moves                                     a, b give back one each         c takes two of a's, b one
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct


class Moves(Struct, frozen=True):
    """The moves of one node."""

    take: tuple[int, ...] = ()
    release: tuple[int, ...] = ()


def moves(me: str, coordinators: Collection[str], held: Mapping[int, str], shards: int) -> Moves:
    """`coordinators` are alive and want shards; `held` maps a shard to the owner of its unexpired lease, alive or not.
    A node that is not a coordinator (it only executes, or is about to leave) gives back everything."""
    holding: dict[str, list[int]] = {node: [] for node in coordinators}
    holding.setdefault(me, [])
    for shard in sorted(held):
        if held[shard] in holding:
            holding[held[shard]].append(shard)
    if me not in coordinators:
        return Moves(release=tuple(holding[me]))
    shares = _shares({node: len(holding[node]) for node in coordinators}, shards)
    free = [shard for shard in range(shards) if shard not in held]
    return Moves(
        take=tuple(_dealt(free, {node: shares[node] - len(holding[node]) for node in coordinators})[me]),
        release=tuple(holding[me][shares[me] :]),
    )


def _shares(counts: Mapping[str, int], shards: int) -> dict[str, int]:
    """How many shards each node should have. The remainder stays with the nodes that have most: they need not give it
    back."""
    share, rest = divmod(shards, len(counts))
    by_size = sorted(counts, key=lambda node: (-counts[node], node))
    return {node: share + (place < rest) for place, node in enumerate(by_size)}


def _dealt(free: list[int], wanted: Mapping[str, int]) -> dict[str, list[int]]:
    """Deals free shards to the nodes that lack some, one at a time, so that scarce shards are shared evenly."""
    dealt: dict[str, list[int]] = {node: [] for node in wanted}
    hungry = [node for node in sorted(wanted) if wanted[node] > 0]
    for shard in free:
        if not hungry:
            break
        node = hungry.pop(0)
        dealt[node].append(shard)
        if len(dealt[node]) < wanted[node]:
            hungry.append(node)
    return dealt
