"""`treadle engine`: coordinates a store and executes its runs, in the foreground, until SIGINT or SIGTERM.

Idle in between: it waits for timers, for answers of its own work, and to be woken. Exit codes: 0 stopped when asked · 5
the store cannot be used, or somebody else coordinates it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from treadle.cli.configuration import Configuration
from treadle.cli.exits import OK, STORE, Failure
from treadle.cli.options import StoreOption, configuration


def engine(
    *,
    wait: Annotated[bool, Parameter(help="If somebody else coordinates the store: wait until they are gone.")] = False,
    deploy: Annotated[tuple[Path, ...], Parameter(help="Deploy these files first.", negative="")] = (),
    store: StoreOption = None,
) -> int:
    """Coordinate and execute until stopped."""
    from treadle.cli.opening import drive

    return drive(_serve(configuration(store), wait, deploy))


async def _serve(config: Configuration, wait: bool, files: tuple[Path, ...]) -> int:
    from treadle.cli.emit import say
    from treadle.cli.loading import read_definitions
    from treadle.cli.opening import importable, new_engine
    from treadle.errors import OwnedElsewhere

    importable(*files)
    definitions = [definition for file in files for definition in read_definitions(file)]
    try:
        async with new_engine(config, wait=wait) as opened:
            for definition in definitions:
                deployed = await opened.deploy(definition)
                say(f"deployed {deployed.workflow} v{deployed.version}")
            say(f"engine {opened.name} coordinates {config.store}; Ctrl-C stops it")
            await asyncio.get_running_loop().create_future()
    except OwnedElsewhere as elsewhere:
        raise Failure(
            STORE, f"{config.store} is coordinated by {elsewhere.owner}: stop that one, or --wait for its end"
        ) from None
    except asyncio.CancelledError:
        say("stopped; what was under way goes on when an engine opens the store again")
    return OK
