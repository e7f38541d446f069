"""An engine of the torture of flow control: it coordinates, executes, and asks for its share of the starts.

Owns the workflows, and which starts are asked for by whom. Every start has a key of its own, so an engine that comes
back asks again for what it has no answer to.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.torture import journal, tasks
from tests.torture.engine import CLIENT, WORK, tell
from tests.torture.journal import Journal
from tests.torture.many import plants
from tests.torture.many.roles import FAULTS, asked_to_stop, surely, tell_of_losses
from treadle.language import load_value
from treadle.model.definition import Workflow
from treadle.runtime.client import Client
from treadle.runtime.engine import Engine, EngineSettings

ENGINES = 4
LEASE_MS = 2_000
GRACE_MS = 500
KEYS = 8
AT_ONCE = 25
"""Starts that one engine asks for at a time."""
SINGLE, KEYED = "single", "keyed"


def workflows() -> list[Workflow]:
    """One run at a time, and one run at a time for each key."""
    action = {"kind": "python", "function": "tests.torture.tasks:occupy"}
    nodes = {"work": {"action": action, "input_mapping": {"ms": "$.input.ms"}}}
    return [
        load_value(document).require()
        for document in (
            {"workflow": SINGLE, "concurrency": {"limit": 1}, "nodes": nodes},
            {"workflow": KEYED, "concurrency": {"limit": 1, "key": "$.k"}, "nodes": nodes},
        )
    ]


def start_key(workflow: str, n: int) -> str:
    return f"{workflow}-{n}"


def input_of(workflow: str, n: int) -> dict[str, Any]:
    """Keyed runs take longer, so that runs of several keys are really live at once."""
    return {"n": n, "k": n % KEYS, "ms": 15} if workflow == KEYED else {"n": n, "k": 0, "ms": n % 3}


async def engine(place: Path, database: str, name: str, number: int, starts: int) -> int:
    """Until SIGTERM. Says `quiet` when all its starts are acknowledged."""
    stop = asked_to_stop(signal.SIGTERM)
    tasks.begin(place / WORK, name)
    tell_of_losses(Journal(place / FAULTS), name)
    plants.install()
    settings = EngineSettings(lease_ms=LEASE_MS, grace_ms=GRACE_MS)
    opened = Engine(database, name=name, settings=settings)
    await surely(opened.__aenter__, stop)
    try:
        if len(await opened.workflows()) < len(workflows()):
            for workflow in workflows():
                await opened.deploy(workflow)
        tell(event="ready", engine=name)
        asking = asyncio.create_task(_ask(opened, place / CLIENT, number, starts))
        await stop.wait()
        asking.cancel()
        await asyncio.wait([asking])
    finally:
        await opened.__aexit__(None, None, None)
    return 0


async def _ask(opened: Client, path: Path, number: int, starts: int) -> None:
    """Asks for every fourth start, of both workflows in turns, that has no answer in the journal yet."""
    known = {line["key"] for line in journal.read(path)}
    book = Journal(path)
    wanted = [(workflow, n) for n in range(number, starts, ENGINES) for workflow in (SINGLE, KEYED)]
    left = iter([one for one in wanted if start_key(*one) not in known])

    async def actor() -> None:
        for workflow, n in left:
            run = await opened.start(workflow, input_of(workflow, n), key=start_key(workflow, n))
            book.say(key=start_key(workflow, n), run=run.id, workflow=workflow, n=n)

    async with asyncio.TaskGroup() as actors:
        for _ in range(AT_ONCE):
            actors.create_task(actor())
    tell(event="quiet")


def main(arguments: list[str]) -> int:
    place, database, name, number, starts = arguments
    return asyncio.run(engine(Path(place), database, name, int(number), int(starts)))


FLOW_ROLES: dict[str, Callable[[list[str]], int]] = {"flow-engine": main}
