"""Notices between the processes of a simulated world: late, and lost as often as the plan says.

Goes by the same rules as the notices of PostgreSQL: news are said only to processes that have wished for them, a wish
holds for a while, and one that is said again is not told again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.store.notices import AWAIT, END, NEWS, WANT, Heard
from treadle.store.postgres.notices import WANTED_S, Wishes

if TYPE_CHECKING:
    from tests.simulator.schedule import Host
    from tests.simulator.world import World

LATE_MS = 3
WISHED_BY = {NEWS: WANT, END: AWAIT}


class Hub:
    """Every process that hears."""

    def __init__(self) -> None:
        self.ears: list[Ear] = []


class Ear:
    """The notices of one life of one process."""

    names_runs = True

    def __init__(self, world: World, host: Host) -> None:
        assert host.loop is not None
        self._world = world
        self._host = host
        self._loop = host.loop
        self._heard: dict[str, list[Heard]] = {}
        self._here = {kind: Wishes() for kind in (WANT, AWAIT)}
        self._elsewhere = {kind: Wishes() for kind in (WANT, AWAIT)}
        world.hub.ears = [ear for ear in world.hub.ears if ear._host is not host]
        world.hub.ears.append(self)

    def say(self, kind: str, name: str = "") -> None:
        now = self._loop.time()
        if kind in WISHED_BY:
            if not self._elsewhere[WISHED_BY[kind]].has(name, now):
                return
        elif kind in self._here and not self._here[kind].add(name, now, WANTED_S / 2):
            return
        world = self._world
        for ear in world.hub.ears:
            if ear is self or kind not in ear._heard or ear._host.loop is not ear._loop:
                continue
            # The owner of a store that nobody shares does not look by itself: the line to it never breaks.
            if world.plan.shards == 1 or not world.faults.happens("lost_notice"):
                ear._loop.call_later(world.draw.between(0, LATE_MS) / 1_000, ear._hear, kind, name)

    def hear(self, kind: str, heard: Heard) -> None:
        self._heard.setdefault(kind, []).append(heard)

    async def close(self) -> None:
        self._heard.clear()

    def _hear(self, kind: str, name: str) -> None:
        wishes = self._elsewhere.get(kind)
        if wishes is None or wishes.add(name, self._loop.time(), WANTED_S):
            for heard in self._heard.get(kind, ()):
                heard(name)
