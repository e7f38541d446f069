"""The parts of a world that outlive an engine: the store, the clock, the script and blobs. A crash leaves them
untouched."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from treadle.model.ids import RunId
from treadle.store.port import Store
from treadle.testing.world.catalog import WorldCatalog
from treadle.testing.world.clock import FakeClock
from treadle.testing.world.fuse import Fuse
from treadle.testing.world.mocks import Script
from treadle.testing.world.workers import Workers

T = TypeVar("T")


@dataclass(slots=True)
class Surroundings:
    """See the module's docstring."""

    script: Script
    random: Random | None
    """Draws the order of entries of one instant; None: the order in which they were scheduled."""
    store: Store
    loop: asyncio.AbstractEventLoop
    """The event loop of store and engine."""
    clock: FakeClock = field(default_factory=FakeClock)
    fuse: Fuse = field(default_factory=Fuse)
    runs: list[RunId] = field(default_factory=list)
    """Every run, in order of creation."""
    blobs: dict[str, bytes] = field(default_factory=dict)
    inherits: dict[RunId, RunId] = field(default_factory=dict)
    """Child → parent whose artifacts it may read."""
    catalog: WorldCatalog = field(init=False)
    workers: Workers = field(init=False)

    def __post_init__(self) -> None:
        self.catalog = WorldCatalog(self.store, self.script, self.wait)
        self.workers = Workers(self.script)

    def wait(self, work: Awaitable[T]) -> T:
        """Waits for an awaitable: the world itself is not asynchronous."""
        result: T = self.loop.run_until_complete(work)
        return result
