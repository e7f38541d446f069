"""The store as one process reaches it: slow, sometimes mute, never half done.

Owns what a network and a database do to a call. A verb happens entirely or not at all, in one instant; its caller may
see `StoreUnavailable` in both cases. Everything that was really committed is shown to the witness in the order of
commits, with the command that caused it and the effects it asked for: that is what the auditor goes by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from treadle.errors import StoreConflict, StoreUnavailable
from treadle.store.port import Batch, Fence, OutboxRow, StoredDocument

if TYPE_CHECKING:
    from tests.simulator.schedule import Host
    from tests.simulator.world import World

LEASE_MS = 400
STALL_MS = (50, 3 * LEASE_MS)
SLOW, SLOW_MS = 0.2, 2
"""How many ways to the store and back take time, and how much at most."""
VERBS = (
    *("history", "find_runs", "find_gates", "outbox", "timers", "submit", "answer", "inbox", "find_request"),
    *("decisions", "put_document", "put_blob", "get_blob", "beside", "forget"),
    *("leave", "standing", "backlog", "bury", "seals"),
    *("claim", "renew", "give_back", "give_back_strays", "drop_offers", "expired_claims"),
    *("waiting_queues", "queue_rows"),
    *("write", "note", "drop_notes", "entries", "revise", "prune", "verify_log"),
    *("events_after", "last_position"),
)
MUTE = 0.3
"""Of the plan's rate: every call is an opportunity, and there are many."""


class Line:
    """See the module's docstring: every verb of the ports, for one life of one process."""

    def __init__(self, world: World, host: Host, owner: str) -> None:
        self._world = world
        self._host = host
        self._ask = world.shelves.ask
        self._store = world.shelves.of(owner)
        self.shards: int = world.plan.shards

    async def commit(self, batch: Batch, *fences: Fence) -> list[OutboxRow]:
        await self._travel("unknown_lost", 1.0)
        if self._world.faults.happens("stall", 0.5):
            self._host.stand_still(self._world.draw.between(*STALL_MS))
            await asyncio.sleep(0)  # the batch arrives when the machine goes on, perhaps after its lease has run out
        try:
            rows: list[OutboxRow] = self._ask(self._store.commit, batch, *fences)
        except StoreConflict as conflict:
            self._world.faults.seen[f"refused {conflict.kind}"] += 1
            raise
        self._world.witness(self._host, batch, fences)
        await self._travel("unknown_done", 1.0)
        return rows

    async def lease(self, shard: int, *arguments: Any, **named: Any) -> Fence | None:
        await self._travel("unknown_lost", MUTE)
        self._check_leases()
        fence: Fence | None = self._ask(self._store.lease, shard, *arguments, **named)
        if fence is not None:
            self._world.tenures.leased(fence)
        await self._travel("unknown_done", MUTE)
        return fence

    async def beat(self, *arguments: Any) -> Any:
        await self._travel("unknown_lost", MUTE)
        if self._world.faults.happens("cut_off", 2):
            self._host.cut_off_until = self._world.schedule.time() + self._world.draw.between(*STALL_MS) / 1_000
        self._check_leases()
        standing = self._ask(self._store.beat, *arguments)
        await self._travel("unknown_done", MUTE)
        return standing

    def _check_leases(self) -> None:
        """Whether anything about leases reaches the store now."""
        if self._host.cut_off_until > self._world.schedule.time() and not self._world.faults.calm:
            raise StoreUnavailable("leases cannot be renewed now")

    async def release(self, fence: Fence) -> None:
        await self._travel("unknown_lost", MUTE)
        self._ask(self._store.release, fence)
        self._world.tenures.released(fence, self._world.schedule.now)
        await self._travel("unknown_done", MUTE)

    async def documents(self, *arguments: Any) -> list[StoredDocument]:
        """Each question is put to the store once, until something is deployed."""
        await self._travel("unknown_lost", MUTE)
        known = self._world.documents
        if arguments not in known:
            known[arguments] = self._ask(self._store.documents, *arguments)
        return known[arguments]

    async def _travel(self, fault: str, scale: float) -> None:
        faults, draw = self._world.faults, self._world.draw
        if not faults.calm:
            if draw.chance(SLOW):
                await asyncio.sleep(draw.between(1, SLOW_MS) / 1_000)
            if faults.happens(fault, scale):
                raise StoreUnavailable("the line is dead", outcome_unknown=True)


def _asking(verb: str) -> Callable[..., Any]:
    async def ask(line: Line, *arguments: Any, **named: Any) -> Any:
        await line._travel("unknown_lost", MUTE)
        answer = line._ask(getattr(line._store, verb), *arguments, **named)
        await line._travel("unknown_done", MUTE)
        return answer

    return ask


for _verb in VERBS:
    setattr(Line, _verb, _asking(_verb))
