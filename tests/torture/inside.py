"""A torture without processes: engine and clients in this one, on a store that may fail. Same journeys, same judge.

Owns the composition. Everything has to finish within `BOUND_S`; a hang is a finding like any other.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.torture import tasks
from tests.torture.engine import CLIENT, DATABASE, WORK
from tests.torture.evidence import gather
from tests.torture.journal import Journal
from tests.torture.journeys import KINDS, Journeys
from tests.torture.verdict import Evidence
from tests.torture.workflows import workflows
from treadle.model.states import RUN_OPEN
from treadle.runtime.engine import Engine
from treadle.store.sqlite import SqliteStore

BOUND_S = 60.0


async def play(
    place: Path,
    store: SqliteStore,
    seed: int,
    actors: int = 4,
    kinds: Sequence[str] = KINDS,
    begin: Callable[[], None] = lambda: None,
    end: Callable[[], None] = lambda: None,
) -> Evidence:
    """`actors` clients take one run of each kind through its life, faults between `begin` and `end`."""
    name = f"{os.getpid()}-inside"
    tasks.begin(place / WORK, name)
    journal = Journal(place / CLIENT)
    async with Engine(store, name=name) as engine:
        for workflow in workflows():
            await engine.deploy(workflow)
        begin()
        async with asyncio.timeout(BOUND_S), asyncio.TaskGroup() as together:
            for actor in range(actors):
                together.create_task(_all(Journeys(engine, journal, seed * actors + actor), kinds))
        end()
        async with asyncio.timeout(BOUND_S):
            while left := await engine.runs(statuses=RUN_OPEN):
                for row in left:
                    await engine.run(row.run).wait()
    await store.close()
    journal.close()
    assert (place / DATABASE).samefile(store.path)
    return await gather(place)


async def _all(journeys: Journeys, kinds: Sequence[str]) -> None:
    async with asyncio.TaskGroup() as together:
        for kind in kinds:
            together.create_task(journeys.one(kind))
