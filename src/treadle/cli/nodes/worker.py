"""`treadle worker`: a node that only executes, in the foreground, until SIGINT or SIGTERM.

Claims work of its queues on a store, or over HTTP from a service (`--server`). When it is stopped, it claims no more,
waits for its attempts during the grace period, and gives the rest back. Exit codes: 0 stopped when asked · 2 a queue is
written wrongly · 3 the settings are invalid · 4 a module cannot be imported, or the service refuses the key · 5 the
store or the service cannot be used.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, REFUSED, STORE, USAGE, VerbFailed
from treadle.cli.frame.options import FunctionsOption, NodeNameOption, StoreOption, configuration
from treadle.project.settings import Configuration

if TYPE_CHECKING:
    from treadle.runtime.http_worker import HttpWorker
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
    """Execute work of queues for the engines on a store, or of a service."""
    from treadle.cli.frame.opening import drive

    config, queues = configuration(store), read_queues(queue)
    if config["server"]:
        return drive(_work_for(config["server"], config, queues, functions, name))
    return drive(_work(config, queues, functions, name))


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
    from treadle.runtime.surroundings.logs import log_to_stderr
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


async def _work_for(
    server: str, config: Configuration, queues: dict[str, int], modules: tuple[str, ...], name: str | None
) -> int:
    import os

    from treadle.cli.frame.opening import engine_settings, importable, log_level
    from treadle.cli.screen.output import say
    from treadle.errors import CommandRefused, EngineStopped
    from treadle.runtime.http_worker import HttpWorker
    from treadle.runtime.surroundings.logs import log_to_stderr

    key = os.environ.get("TREADLE_KEY")
    if not key:
        raise VerbFailed(
            USAGE, "--server needs a key in TREADLE_KEY: `treadle keys create NAME --role worker` makes one"
        )
    known = importable(config, modules=modules)
    log_to_stderr(log_level(config))
    opened = HttpWorker(server, key, queues=queues, functions=known, settings=engine_settings(config), name=name)
    try:
        with suppress(asyncio.CancelledError):
            async with opened:
                served = ", ".join(f"{queue} ({places} at once)" for queue, places in queues.items())
                say(f"worker {opened.name} works for {served} of {opened.url}; Ctrl-C stops it")
                await _until_stopped(opened)
    except EngineStopped as problem:
        raise VerbFailed(STORE, str(problem)) from None
    except CommandRefused as refused:
        raise VerbFailed(REFUSED, f"{opened.url} refuses: {refused.message}") from None
    say("stopped")
    return OK


async def _until_stopped(worker: Worker | HttpWorker) -> None:
    """Waits until the worker is stopped, and then says how many attempts it is still waiting for."""
    from treadle.cli.screen.output import duration, say

    try:
        await worker.wait()
    except asyncio.CancelledError:
        if worker.executing:
            grace = duration(worker.settings.grace_ms)
            attempts = f"{worker.executing} attempt{'' if worker.executing == 1 else 's'}"
            say(f"stopping; {attempts} may end within {grace}, what has not ended then is given back")
