"""`treadle engine`: coordinates a store and executes its runs, in the foreground, until SIGINT or SIGTERM.

Exit codes: 0 stopped when asked · 3 a definition or the settings are invalid · 4 no such file or module · 5 the store
cannot be used, or another process coordinates it.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, STORE, VerbFailed
from treadle.cli.frame.options import FunctionsOption, LibraryOption, NodeNameOption, StoreOption, configuration
from treadle.project.settings import Configuration

if TYPE_CHECKING:
    from treadle.runtime.engine import Engine

LOOK_S = 2.0
"""An engine that is stopped waits this long at most for a database that does not answer."""
ALONE = "runs under way go on when an engine opens the store again"


def engine(
    *,
    wait: Annotated[
        bool, Parameter(help="If another process coordinates the store: wait until it has stopped.")
    ] = False,
    deploy: Annotated[
        tuple[Path, ...],
        Parameter(help="Deploy these files, or the files of these folders, first.", negative="", consume_multiple=True),
    ] = (),
    functions: FunctionsOption = (),
    library: LibraryOption = None,
    name: NodeNameOption = None,
    store: StoreOption = None,
) -> int:
    """Coordinate and execute until stopped."""
    from treadle.cli.frame.opening import drive

    return drive(_serve(configuration(store, library=library), wait, deploy, functions, name))


async def _serve(
    config: Configuration, wait: bool, paths: tuple[Path, ...], modules: tuple[str, ...], name: str | None
) -> int:
    from treadle.cli.frame.inputs import definition_paths, read_definitions, shared
    from treadle.cli.frame.opening import importable, new_engine
    from treadle.cli.screen.output import duration, say
    from treadle.cli.screen.progress import said_later
    from treadle.errors import OwnedElsewhere

    files = definition_paths(paths, config.library)
    known = importable(config, *files, modules=modules)
    given = shared(config)
    definitions = [definition for file in files for definition in read_definitions(file, given, allow=config.allow)]
    goes_on = ALONE
    try:
        with ExitStack() as stopping:
            async with AsyncExitStack() as held:
                with (
                    said_later(f"waiting until no other process coordinates {config.store}") if wait else nullcontext()
                ):
                    made = new_engine(config, wait=wait, name=name, functions=known)
                    opened = await held.enter_async_context(made)
                for definition in definitions:
                    deployed = await opened.deploy(definition)
                    say(f"deployed {deployed.workflow} v{deployed.version}")
                say(f"engine {opened.name} coordinates {config.store}{_served(config, opened)}; Ctrl-C stops it")
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    grace = duration(opened.settings.grace_ms)
                    stopping.enter_context(said_later(f"stopping; attempts under way may end within {grace}"))
                    goes_on = await _who_goes_on(opened)
    except OwnedElsewhere as elsewhere:
        raise VerbFailed(
            STORE, f"{config.store} is coordinated by {elsewhere.owner}: stop that one, or --wait for its end"
        ) from None
    except asyncio.CancelledError:
        say(f"stopped; {goes_on}")
    return OK


def _served(config: Configuration, engine: Engine) -> str:
    """The queues it works for, in words; empty for a store without queues of its own."""
    queues = engine.settings.queues
    if queues is None:
        return " and works for all queues" if config.store.dsn is not None else ""
    return f" and works for {', '.join(f'{name} ({most} at once)' for name, most in queues.items()) or 'no queue'}"


async def _who_goes_on(engine: Engine) -> str:
    """Which engines go on with its runs after it has stopped, in words, as far as the store answers in time."""
    from treadle.errors import TreadleError

    others: list[str] = []
    with suppress(TreadleError, TimeoutError, ValueError):
        async with asyncio.timeout(LOOK_S):
            others = [node.node for node in await engine.nodes() if node.coordinates]
            others.remove(engine.name)
    return f"{', '.join(others)} {'go' if len(others) > 1 else 'goes'} on with its runs" if others else ALONE
