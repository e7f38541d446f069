"""Membership: the port of stores that many nodes share.

Owns the records of membership. A node reports regularly that it is alive (a beat). A node that misses its beat is not
listed, and its leases run out. All times are of the store's clock, which is the only one that nodes share: no age or
expiry is ever compared with a node's clock. Must not know how shards are distributed.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from msgspec import Struct


class Member(Struct, frozen=True):
    """One process on a store."""

    owner: str
    """The owner of its leases. A process that starts again is another owner."""
    name: str
    """Its name for people: where it runs."""
    coordinates: bool = True
    """Whether it takes shards; else it only executes."""
    queues: tuple[str, ...] | None = None
    """The queues whose work it executes; None: work of the runs it owns."""
    started: int = 0
    """The time of its first beat; set by the store, as `beat` is."""
    beat: int = 0
    behind: int = 0
    """How late it is, in milliseconds, as it reports itself."""
    lacks: dict[str, tuple[str, ...]] = {}
    """Queue → functions and action kinds that work waiting there needs and this process lacks."""
    process: str = ""
    """Machine and process, for nodes that can check whether it is alive; empty: none can."""


class Lease(Struct, frozen=True):
    """A node's right to a shard, until it expires."""

    shard: int
    owner: str
    epoch: int
    until: int


class Standing(Struct, frozen=True):
    """Nodes and leases at one moment of the store's clock."""

    now: int
    nodes: list[Member]
    """The nodes that are alive, by owner, with the one that asks."""
    leases: list[Lease]
    """The leases that have not run out, by shard. A shard that is missing is free."""


class Backlog(Struct, frozen=True):
    """What waits in a shard: unanswered requests and due timers, and how long, by the store's clock."""

    shard: int
    requests: int = 0
    oldest_request_ms: int = 0
    timers_due: int = 0
    oldest_timer_ms: int = 0


@runtime_checkable
class Members(Protocol):
    """The port. Every verb is one round trip."""

    async def beat(self, node: Member, ttl_ms: int) -> Standing:
        """Keeps a node alive for `ttl_ms` and renews its leases that have not run out. (A lease that has run out must
        be taken again; another node may take it.) Returns the standing afterwards."""

    async def leave(self, owner: str) -> None:
        """Removes a node that leaves; its leases are released one by one, or run out."""

    async def bury(self, owner: str) -> None:
        """Ends the leases and the queue claims of a node whose process is known to be dead. A mistake breaks nothing:
        writes of the node are refused once another has taken the lease."""

    async def standing(self) -> Standing:
        """The standing, for a process that only looks."""

    async def backlog(self) -> list[Backlog]:
        """What waits, by shard."""
