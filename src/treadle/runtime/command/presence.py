"""Lists the processes on a store: whether each coordinates or executes, its shards, and how far behind it is.

Owns the answers to `Client.nodes` and to whether an engine runs at all. Must not change anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Protocol

from msgspec import Struct

from treadle.store.members import Backlog, Member, Members
from treadle.store.port import Store
from treadle.store.rows import SHARD

KNOWN_S = 2.0
"""How long a found engine is taken for running. A node that has died stays in the list for longer than that."""
COUNTED_MAX = 1_000
"""Most requests and due timers that are counted in a store that cannot count them itself."""


class NodeRow(Struct, frozen=True):
    """One process on a store, as `treadle nodes` lists it. Instants are milliseconds of the store's clock."""

    node: str
    """Its name, which says where it runs."""
    owner: str
    """Its name in the leases; a restart gets a new one."""
    coordinates: bool
    queues: tuple[str, ...] | None
    """Queues whose work it executes; None: it executes the work of the runs it owns."""
    shards: tuple[int, ...]
    """Shards whose runs it decides for."""
    since: int
    beat: int | None
    """When it last renewed its membership; None for a store where the operating system knows whether it lives."""
    silent_ms: int | None
    """Time since `beat`, by the store's clock."""
    requests: int = 0
    """Unanswered requests in its shards."""
    timers_due: int = 0
    """Timers in its shards that are due and have not fired."""
    oldest_ms: int = 0
    """How long the oldest of these requests and timers has been waiting."""
    lacks: dict[str, tuple[str, ...]] = {}
    """Queue → functions and kinds that work waiting there needs and this process does not have."""
    oldest_timer_ms: int = 0
    """How long ago the oldest of these timers was due."""


class Presence(Protocol):
    """Reads which processes are on a store."""

    async def is_owned(self) -> bool:
        """Whether a process coordinates the store."""

    async def nodes(self) -> list[NodeRow]:
        """Every process that coordinates or executes. If requests or timers wait in shards without an owner, a row
        without a name has these shards."""


class Shared:
    """The presence on a store that many nodes share: reads its table of members."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._known = False
        self._until = 0.0

    async def is_owned(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            standing = await self._members.standing()
            self._known = any(node.coordinates for node in standing.nodes)
            self._until = now + (KNOWN_S if self._known else 0)
        return self._known

    async def nodes(self) -> list[NodeRow]:
        standing, waiting = await self._members.standing(), await self._members.backlog()
        owners = {lease.shard: lease.owner for lease in standing.leases if lease.until > standing.now}
        rows = []
        for node in standing.nodes:
            shards = tuple(sorted(shard for shard, owner in owners.items() if owner == node.owner))
            mine = [one for one in waiting if one.shard in shards]
            rows.append(_row(node, shards, mine, standing.now))
        known = {shard for row in rows for shard in row.shards}
        left = [one for one in waiting if one.shard not in known]
        if left:
            rows.append(_row(NOBODY, tuple(one.shard for one in left), left, standing.now))
        return rows


class Alone:
    """The presence on a store that one process coordinates. `who` returns its name and when it started, or None if no
    process does."""

    def __init__(self, store: Store, who: Callable[[], tuple[str, int] | None], now: Callable[[], int]) -> None:
        self._store = store
        self._who = who
        self._now = now
        self.lacks: Callable[[], dict[str, tuple[str, ...]]] = dict
        """Queue → what work there needs and this very process lacks, if it is the one that coordinates."""

    async def is_owned(self) -> bool:
        return self._who() is not None

    async def nodes(self) -> list[NodeRow]:
        now, who = self._now(), self._who()
        requests = await self._store.inbox(SHARD, COUNTED_MAX)
        due = await self._store.timers(SHARD, now, COUNTED_MAX)
        waiting = Backlog(
            SHARD,
            len(requests),
            now - requests[0].at if requests else 0,
            len(due),
            now - due[0].due if due else 0,
        )
        if who is None:
            return [_row(NOBODY, (SHARD,), [waiting], now)] if requests or due else []
        named = await self._store.documents(SERVED, SERVED)
        queues = tuple(named[0].body) if named else None
        node = Member(who[0], who[0], started=who[1], queues=queues, lacks=self.lacks())
        return [_row(node, (SHARD,), [waiting], now)]


SERVED = "_served"
"""Kind and name of the document with the queues that the only engine of a store serves."""


async def note_served(store: Store, queues: Collection[str] | None) -> None:
    """Notes which queues the only engine of a store serves, for processes beside it. None: all of them."""
    body = sorted(queues) if queues is not None else None
    if body is not None or await store.documents(SERVED, SERVED):
        await store.put_document(SERVED, SERVED, repr(body), body)


NOBODY = Member("", "", coordinates=False, queues=())


def _row(node: Member, shards: tuple[int, ...], waiting: list[Backlog], now: int) -> NodeRow:
    return NodeRow(
        node.name,
        node.owner,
        node.coordinates,
        node.queues,
        shards,
        node.started,
        node.beat or None,
        max(now - node.beat, 0) if node.beat else None,
        sum(one.requests for one in waiting),
        sum(one.timers_due for one in waiting),
        max((max(one.oldest_request_ms, one.oldest_timer_ms) for one in waiting), default=0),
        node.lacks,
        max((one.oldest_timer_ms for one in waiting), default=0),
    )
