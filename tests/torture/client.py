"""A client process: `ACTORS` journeys at a time through `connect()`, the inbox and the bell, until SIGTERM.

Owns the client's journal. After SIGTERM it finishes the journeys it has begun, so that everything it was promised is
written down, and ends.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from tests.torture import schedules
from tests.torture.engine import CLIENT, DATABASE, tell
from tests.torture.journal import Journal
from tests.torture.journeys import Journeys
from treadle.runtime.connecting import connect

EVERY_MS = 1_000
ACTORS = 12
"""Enough that every kill hits many runs at once, few enough that a loaded machine still finishes them."""


async def travel(place: Path, seed: int) -> int:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    tell(event="ready")
    journal = Journal(place / CLIENT)
    async with connect(place / DATABASE, create=True) as client, asyncio.TaskGroup() as actors:
        actors.create_task(schedules.keep(client, journal, EVERY_MS, over))
        for actor in range(ACTORS):
            actors.create_task(Journeys(client, journal, seed * ACTORS + actor).go_on(over.is_set))
    journal.close()
    return 0


def main(arguments: list[str]) -> int:
    return asyncio.run(travel(Path(arguments[0]), int(arguments[1])))
