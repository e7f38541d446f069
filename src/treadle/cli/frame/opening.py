"""Opening a store for a verb: as a client of the engines on it, or with an engine in this process.

Owns that choice, the engine's settings, and a clean end on Ctrl-C or SIGTERM. Imports the engine only when a verb needs
it: that takes longer than most verbs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.cli.frame.exits import REFUSED, STORE, VerbFailed
from treadle.cli.screen.output import Out, keep_stdout, say
from treadle.errors import SettingsInvalid
from treadle.project.settings import Configuration

if TYPE_CHECKING:
    from treadle.runtime.client import Client
    from treadle.runtime.connecting import connect
    from treadle.runtime.engine import Engine, EngineSettings
    from treadle.runtime.standby import StandBy


Functions = Mapping[str, Callable[..., Any]]
LOOK_WAIT_S = 5.0
"""How long a verb that only reads or asks waits for a store that does not answer: a person is waiting."""


class Reached(NamedTuple):
    """A client of a store, and the process that coordinates the store."""

    client: Client
    owner: str | None = None
    """The other process that coordinated the store when it was opened; None if this process does."""
    standby: StandBy | None = None
    """Takes over in this process when the owner is gone."""
    served: bool = False
    """The owner is a service: this process never takes over."""

    @property
    def executes(self) -> bool:
        """Whether this process coordinates the store now."""
        return not self.served and (self.standby is None or self.standby.engine is not None)


def drive(verb: Coroutine[Any, Any, int]) -> int:
    """Runs an asynchronous verb to its end. SIGTERM ends it as cleanly as Ctrl-C does, and once: `timeout`, systemd and
    others send it twice, and the second must not tear the closing apart."""

    from treadle.runtime.surroundings.logs import log_to_stderr

    log_to_stderr(logging.ERROR)  # a verb that only asks prints its own messages; an engine logs more

    async def main() -> int:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()

        def end() -> None:
            loop.add_signal_handler(signal.SIGTERM, lambda: None)
            task.cancel()

        loop.add_signal_handler(signal.SIGTERM, end)
        return await verb

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@asynccontextmanager
async def reach(config: Configuration) -> AsyncIterator[Client]:
    """A client of a store that exists. This process executes nothing: the owner of the store does."""
    if not config["server"]:
        require_store(config)
    async with connected(config, wait_s=min(LOOK_WAIT_S, open_wait_s(config))) as client:
        yield client


def connected(config: Configuration, *, wait_s: float, create: bool = False) -> connect:
    """A client of the store, or of the service if one is named."""
    from treadle.runtime.connecting import connect

    if config["server"]:
        return connect(config["server"], key=os.environ.get("TREADLE_KEY"), wait_s=wait_s)
    return connect(config.store, create=create, wait_s=wait_s)


def open_wait_s(config: Configuration) -> float:
    """How long an engine waits for a store that does not answer."""
    return float(config["engine.open_wait_ms"]) / 1_000


def require_store(config: Configuration) -> None:
    """Raises VerbFailed if the store does not exist."""
    if config.store.is_missing:
        raise VerbFailed(
            STORE, f"there is no store {config.store}: `treadle run` or `treadle engine` makes one (--store)"
        )


@asynccontextmanager
async def own_or_reach(config: Configuration, functions: Functions | None = None) -> AsyncIterator[Reached]:
    """An engine in this process if no other coordinates the store, else a client of the one that does. When that one is
    gone, this process takes over."""
    from treadle.runtime.standby import StandBy

    keep_stdout()
    if config["server"]:
        async with reach(config) as client:
            yield Reached(client, config["server"], served=True)
        return
    engine = new_engine(config, functions=functions)
    owner = await _owner(config, engine)
    if owner is None:
        try:
            yield Reached(engine)
        finally:
            await engine.close()
        return
    async with StandBy(config.store, new_engine(config, wait=True, functions=functions), _taken) as standby:
        yield Reached(standby.client, owner, standby)


async def _owner(config: Configuration, engine: Engine) -> str | None:
    """The other process that coordinates the store. None: there is none, and `engine` is open now."""
    from treadle.errors import OwnedElsewhere
    from treadle.runtime.connecting import connect

    if config.store.dsn is not None:
        async with connect(config.store, create=True, wait_s=open_wait_s(config)) as client:
            if await client.is_owned():  # else no node would execute the run
                return f"the nodes of {config.store}"
    try:
        await engine.__aenter__()
    except OwnedElsewhere as elsewhere:
        return elsewhere.owner
    return None


def _taken(problem: Exception | None) -> None:
    if problem is None:
        say("the engine that coordinated the store is gone: this process takes over and executes")
    else:
        say(f"the engine that coordinated the store is gone, and this process cannot take over: {problem}")


def new_engine(
    config: Configuration,
    *,
    wait: bool = False,
    name: str | None = None,
    functions: Functions | None = None,
    serves: bool = False,
) -> Engine:
    """An engine with the project's settings, not yet open. It logs to stderr. `serves`: it serves others, and works for
    no queue unless the settings name some."""
    from msgspec.structs import replace

    from treadle.runtime.engine import Engine
    from treadle.runtime.surroundings.logs import log_to_stderr

    log_to_stderr(log_level(config))
    settings = engine_settings(config)
    if serves and settings.queues is None:
        settings = replace(settings, queues={})
    return Engine(config.store, functions=functions, settings=settings, name=name, wait_for_ownership=wait)


def log_level(config: Configuration) -> int:
    """The level from which an engine or worker logs."""
    return logging.getLevelNamesMapping()[config["log.level"].upper()]


def engine_settings(config: Configuration) -> EngineSettings:
    """The project's settings as an engine takes them. Raises SettingsInvalid."""
    import msgspec

    from treadle.runtime.engine import EngineSettings

    parts: dict[str, dict[str, Any]] = {}
    for name in config.values:
        room, _, setting = name.partition(".")
        parts.setdefault(room, {})[setting] = config[name]
    known = {
        **parts["engine"],
        "spare_collector": True,  # the process belongs to the engine alone
        "functions_allow": config.allow,
        "secrets_key_file": config["secrets.key_file"],
        "traces": config["traces.enabled"],
        "keep_of": parts["keep"].pop("workflows"),
        "keep": parts["keep"],
        "outside": {"net": parts["net"], "shell": parts["shell"], **parts["webhooks"]},
        "llm": parts["llm"] if config["llm.profiles"] else None,
        "mcp": parts["mcp"] if config["mcp.servers"] else None,
    }
    try:
        return msgspec.convert(known, EngineSettings)
    except msgspec.ValidationError as problem:
        told = str(problem).replace("$.keep_of", "keep.workflows")  # as it is written in treadle.toml
        raise SettingsInvalid(f"settings: {told} (treadle config --origin shows where they come from)") from None


def importable(config: Configuration, *files: Path, modules: Sequence[str] = ()) -> dict[str, Callable[..., Any]]:
    """Lets `python` actions import modules from the current folder, the project's folder and the folders of the
    definitions on the command line. The operator wrote that line, so these folders and `modules` are trusted. Returns
    the functions of `modules`."""
    beside = [file.resolve().parent for file in files]
    for folder in (Path.cwd(), config.project, *beside):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    config.trusted += [*modules, *map(str, beside)]
    return {key: function for module in modules for key, function in functions_in(module).items()}


def functions_in(module: str) -> dict[str, Any]:
    """The public functions that a module defines, by name."""
    import importlib

    try:
        found = importlib.import_module(module)
    except ImportError as problem:
        raise VerbFailed(REFUSED, f"--functions {module}: it cannot be imported: {problem}") from None
    return {
        name: value
        for name, value in vars(found).items()
        if callable(value)
        and not isinstance(value, type)
        and not name.startswith("_")
        and getattr(value, "__module__", None) == found.__name__
    }


def ask_or_make(config: Configuration, act: Callable[[Client, Out], Awaitable[int]]) -> int:
    """Runs one question or command on a store, which is made if it does not exist, and returns its exit code."""

    async def verb() -> int:
        async with connected(config, create=True, wait_s=min(LOOK_WAIT_S, open_wait_s(config))) as client:
            return await act(client, Out(config["output"]))

    return drive(verb())


def ask(config: Configuration, act: Callable[[Client, Out], Awaitable[int]], *, execute: bool = False) -> int:
    """Runs one question or command on a store that exists, and returns its exit code. `execute`: meanwhile this process
    coordinates the store, if no other does."""

    async def verb() -> int:
        out = Out(config["output"])
        if not execute:
            async with reach(config) as client:
                return await act(client, out)
        if not config["server"]:
            require_store(config)
        importable(config)
        async with own_or_reach(config) as reached:
            return await act(reached.client, out)

    return drive(verb())
