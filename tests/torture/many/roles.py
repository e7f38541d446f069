"""The processes of the torture: an engine, a worker, a client, each on a line of its own to the database.

Owns what each of them does until SIGTERM. One that cannot reach the database when it begins asks again, as whoever
supervises processes would let it. Engines are clients, too: any node takes any command.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from tests.torture import schedules, tasks
from tests.torture.engine import CLIENT, WORK, tell
from tests.torture.journal import Journal
from tests.torture.journeys import AGAIN_S, ALONE_KINDS, MANY_KINDS, Journeys
from tests.torture.many import plants
from tests.torture.many.replaying import REPLAYS, install
from tests.torture.workflows import workflows
from treadle.errors import StoreUnavailable
from treadle.runtime.client import Client
from treadle.runtime.connecting import connect
from treadle.runtime.deliver.core import Core
from treadle.runtime.engine import Engine, EngineSettings
from treadle.runtime.worker import Worker

LEASE_MS = 3_000
"""A third of what people have: two minutes shall see many take-overs."""
CLAIM_MS = 3_000
FAULTS = "faults.jsonl"
EXPLAIN = signal.SIGUSR2
"""Asks a process what its tasks wait for; it says so on stderr."""
QUEUE, PLACES = "heavy", 4
CLIENT_ACTORS = 12
ENGINE_ACTORS = 3
EVERY_MS = 1_000
"""Of the schedule."""

T = TypeVar("T")


def asked_to_stop(number: signal.Signals = signal.SIGTERM) -> asyncio.Event:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _explain() -> None:
    """Where everything stands, for whoever wonders why this process does not end."""
    for task in asyncio.all_tasks():
        task.print_stack(file=sys.stderr)
    sys.stderr.flush()


async def surely(question: Callable[[], Awaitable[T]], stop: asyncio.Event) -> T:
    while True:
        try:
            return await question()
        except StoreUnavailable:
            if stop.is_set():
                raise
            await asyncio.sleep(AGAIN_S)


async def engine(place: Path, database: str, name: str, seed: int) -> int:
    """Coordinates, executes what has no queue, and asks for runs itself, until SIGUSR1."""
    stop, enough = asked_to_stop(), asked_to_stop(signal.SIGUSR1)
    tasks.begin(place / WORK, name)
    install(Journal(place / REPLAYS), seed)
    tell_of_losses(Journal(place / FAULTS), name)
    plants.install()
    settings = EngineSettings(lease_ms=LEASE_MS, queues={})
    opened = Engine(database, name=name, settings=settings)
    await surely(opened.__aenter__, stop)
    try:
        await surely(lambda: _deployed(opened), stop)
        tell(event="ready", engine=name)
        journal = Journal(place / CLIENT)
        asking = asyncio.create_task(_ask_until(enough, opened, journal, seed))
        await stop.wait()
        asking.cancel()
        await asyncio.wait([asking])
    finally:
        await opened.__aexit__(None, None, None)
    return 0


def tell_of_losses(journal: Journal, name: str) -> None:
    """An engine that gives up its shards has a reason that the torturer may not know: on a machine that is too busy for
    it, a heartbeat comes too late. It is written down as if somebody had done it, and counted."""
    really = Core.lose

    def lose(core: Core, shards: Collection[int], reason: str) -> None:
        if core.shards.fences.keys() & set(shards):
            journal.say(fault="lease", on=name.partition(".")[0], ms=0, reason=reason)
        really(core, shards, reason)

    Core.lose = lose  # type: ignore[assignment, method-assign]


async def _ask_until(enough: asyncio.Event, opened: Client, journal: Journal, seed: int) -> None:
    async with asyncio.TaskGroup() as actors:
        for n in range(ENGINE_ACTORS):
            journeys = Journeys(opened, journal, seed * ENGINE_ACTORS + n)
            actors.create_task(journeys.go_on(enough.is_set, ALONE_KINDS))
    tell(event="quiet")


async def _deployed(opened: Client) -> None:
    if len(await opened.workflows()) < len(workflows()):
        for workflow in workflows():
            await opened.deploy(workflow)


async def worker(place: Path, database: str, name: str, _seed: int) -> int:
    """Executes what is in the queue, and decides nothing."""
    stop = asked_to_stop()
    tasks.begin(place / WORK, name)
    settings = EngineSettings(lease_ms=LEASE_MS, claim_ms=CLAIM_MS)
    opened = Worker(database, queues={QUEUE: PLACES}, settings=settings, name=name)
    await surely(opened.__aenter__, stop)
    tell(event="ready", engine=name)
    await stop.wait()
    await opened.close()
    return 0


async def client(place: Path, database: str, name: str, seed: int) -> int:
    """Only asks. After SIGTERM it finishes what it has begun, so that all it was promised is written down."""
    del name
    stop = asked_to_stop()
    install(Journal(place / REPLAYS), seed)
    journal = Journal(place / CLIENT)
    opened = connect(database, create=True)  # it may be there before any engine
    face = await surely(opened.__aenter__, stop)
    tell(event="ready")
    async with asyncio.TaskGroup() as actors:
        actors.create_task(schedules.keep(face, journal, EVERY_MS, stop))
        for n in range(CLIENT_ACTORS):
            journeys = Journeys(face, journal, seed * CLIENT_ACTORS + n)
            actors.create_task(journeys.go_on(stop.is_set, MANY_KINDS))
    with suppress(StoreUnavailable):
        await opened.__aexit__(None, None, None)
    return 0


def runs(role: Callable[[Path, str, str, int], Awaitable[int]]) -> Callable[[list[str]], int]:
    """A role as the nursery starts it."""

    async def play(arguments: list[str]) -> int:
        asyncio.get_running_loop().add_signal_handler(EXPLAIN, _explain)
        place, database, name, seed = arguments
        return await role(Path(place), database, name, int(seed))

    return lambda arguments: asyncio.run(play(arguments))
