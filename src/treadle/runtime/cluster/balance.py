"""Which shards a node should take and which it should give back: a pure function of who is there and who holds what.

Owns the arithmetic. Promises, for nodes that see the same: shares even within one; no shard is wanted by two nodes;
nothing is taken that somebody holds; nobody gives back more than what is above its share, so that after a node came or
went every shard moves once at most and then nothing does. Nodes that see different things may both reach for a shard:
the store's lease decides, and the next look puts it right. Must not wait, ask or know a clock.

    shares of 8 shards      a: 4  b: 4        c comes:  a: 3  b: 3  c: 2      a goes:  b: 4  c: 4
    what moves                                a, b give back one each         c takes two of a's, b one
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct


class Moves(Struct, frozen=True):
    """What one node does now."""

    take: tuple[int, ...] = ()
    release: tuple[int, ...] = ()


def moves(me: str, coordinators: Collection[str], held: Mapping[int, str], shards: int) -> Moves:
    """`coordinators` are alive and want shards; `held` says who has an unexpired lease, alive or not. Who is not among
    the coordinators (it only executes, or is about to leave) gives back everything."""
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
    """How many each should have. What does not divide stays with those who have most: they need not give it back."""
    share, rest = divmod(shards, len(counts))
    by_size = sorted(counts, key=lambda node: (-counts[node], node))
    return {node: share + (place < rest) for place, node in enumerate(by_size)}


def _dealt(free: list[int], wanted: Mapping[str, int]) -> dict[str, list[int]]:
    """Free shards to whoever lacks some, one at a time each: what is scarce is shared."""
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
