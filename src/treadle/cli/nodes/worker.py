"""`treadle worker`: a node that only executes, in the foreground, until SIGINT or SIGTERM.

Claims work of its queues on a shared store. When it is stopped, it claims no more, waits for its attempts during the
grace period, and gives the rest back. Exit codes: 0 stopped when asked · 2 a queue is written wrongly · 3 the settings
are invalid · 4 a module cannot be imported · 5 the store cannot be used.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, USAGE, VerbFailed
from treadle.cli.frame.options import FunctionsOption, NodeNameOption, StoreOption, configuration
from treadle.project.settings import Configuration

if TYPE_CHECKING:
    from treadle.runtime.worker import Worker


def worker(
    *,
    queue: Annotated[
        tuple[str, ...],
        Parameter(
            help="NAME, or NAME:PLACES; repeat it. PLACES: attempts at once.", negative="", consume_multiple=True
        ),
    ],
    functions: FunctionsOption = (),
    name: NodeNameOption = None,
    store: StoreOption = None,
) -> int:
    """Execute work of queues for the engines on a shared store."""
    from treadle.cli.frame.opening import drive

    return drive(_work(configuration(store), read_queues(queue), functions, name))


def read_queues(words: tuple[str, ...]) -> dict[str, int]:
    """`gpu`, `cpu:4` as a dictionary from queue to attempts at once."""
    from treadle.runtime.worker import PLACES

    queues: dict[str, int] = {}
    for word in words:
        name, colon, places = word.rpartition(":")
        if not colon:
            queues[word] = PLACES
        elif name and places.isdecimal() and int(places) > 0:
            queues[name] = int(places)
        else:
            raise VerbFailed(USAGE, f"--queue {word}: expected NAME or NAME:PLACES, with at least one place")
    return queues


async def _work(config: Configuration, queues: dict[str, int], modules: tuple[str, ...], name: str | None) -> int:
    from treadle.cli.frame.opening import engine_settings, importable, log_level
    from treadle.cli.screen.output import say
    from treadle.runtime.base.logs import log_to_stderr
    from treadle.runtime.worker import Worker

    known = importable(config, modules=modules)
    log_to_stderr(log_level(config))
    opened = Worker(config.store, queues=queues, functions=known, settings=engine_settings(config), name=name)
    with suppress(asyncio.CancelledError):
        async with opened:
            served = ", ".join(f"{queue} ({places} at once)" for queue, places in queues.items())
            say(f"worker {opened.name} works for {served} on {config.store}; Ctrl-C stops it")
            await _until_stopped(opened)
    say("stopped")
    return OK


async def _until_stopped(worker: Worker) -> None:
    """Waits until the worker is stopped, and then says how many attempts it is still waiting for."""
    from treadle.cli.screen.output import duration, say

    try:
        await worker.wait()
    except asyncio.CancelledError:
        if worker.executing:
            grace = duration(worker.settings.grace_ms)
            attempts = f"{worker.executing} attempt{'' if worker.executing == 1 else 's'}"
            say(f"stopping; {attempts} may end within {grace}, what has not ended then is given back")
