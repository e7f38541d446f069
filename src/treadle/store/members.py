"""Who else works on a store: the second port, of stores that many nodes share.

Owns the words of membership. A node says again and again that it is alive; who has not said so for its time is not
listed, and its leases run out with it. All times are of the store's own clock, which is the only one that nodes share:
no age or expiry is ever compared with a node's. Must not know how shards are shared out.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from msgspec import Struct


class Member(Struct, frozen=True):
    """One process on a store."""

    owner: str
    """Of its leases; another life of the same process is another owner."""
    name: str
    """For people: where it runs."""
    coordinates: bool = True
    """Whether it takes shards; else it only executes."""
    queues: tuple[str, ...] | None = None
    """Whose work it executes; None: that of runs it owns."""
    started: int = 0
    """Of its first beat; given by the store, as `beat` is."""
    beat: int = 0
    behind: int = 0
    """How late it is, in milliseconds, as it says itself."""
    lacks: dict[str, tuple[str, ...]] = {}
    """Queue → what work waiting there needs and this process does not have: functions, action kinds."""
    process: str = ""
    """Which process of which machine it is, for those who can see whether that is alive; empty: nobody can."""


class Lease(Struct, frozen=True):
    """Somebody's right to a shard, until then."""

    shard: int
    owner: str
    epoch: int
    until: int


class Standing(Struct, frozen=True):
    """How things stand at one moment of the store's clock."""

    now: int
    nodes: list[Member]
    """Those that are alive, by owner; the one who asks among them."""
    leases: list[Lease]
    """Those that have not run out, by shard. A shard that is missing is free."""


class Backlog(Struct, frozen=True):
    """What waits in a shard: requests nobody has answered, timers that are due. How long, by the store's clock."""

    shard: int
    requests: int = 0
    oldest_request_ms: int = 0
    timers_due: int = 0
    oldest_timer_ms: int = 0


@runtime_checkable
class Members(Protocol):
    """The port. Every verb is one round trip."""

    async def beat(self, node: Member, ttl_ms: int) -> Standing:
        """Keeps a node alive for `ttl_ms` and renews every lease of its that has not run out (one that has is somebody
        else's to take, and must be taken again). The answer is how things stand afterwards."""

    async def leave(self, owner: str) -> None:
        """The node is gone; its leases are released one by one, or run out."""

    async def bury(self, owner: str) -> None:
        """The process of this node is known to be dead: its leases and its claims of queue work have run out. If that
        was wrong nothing breaks: what it writes is refused once somebody has taken a lease."""

    async def standing(self) -> Standing:
        """How things stand, for who only looks."""

    async def backlog(self) -> list[Backlog]:
        """The shards where something waits, by shard."""
