"""`treadle serve`: an engine, the HTTP API and the canvas, in the foreground, until SIGINT or SIGTERM.

Prints one line on stdout when it is ready, `treadle: serving http://127.0.0.1:8787`; everything else goes to stderr.
Exit codes: 0 stopped when at · 2 an address that would let strangers in · 3 the settings are invalid · 5 the store
cannot be used, or another process coordinates it, or the address is taken."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, STORE, VerbFailed
from treadle.cli.frame.options import FunctionsOption, LibraryOption, NodeNameOption, StoreOption, configuration
from treadle.cli.frame.serving import (
    AllowHostOption,
    BehindTlsOption,
    HostOption,
    ListenAt,
    PortOption,
    ProjectOption,
    listen,
    project_stores,
    refuse_strangers,
    until_stopped,
)
from treadle.project.settings import Configuration

if TYPE_CHECKING:
    from treadle.cli.frame.opening import Functions
    from treadle.runtime.client import Client


def serve(
    *,
    host: HostOption = "127.0.0.1",
    port: PortOption = None,
    engine: Annotated[
        bool, Parameter(help="Coordinate and execute, too; without it engines elsewhere do.", negative="--no-engine")
    ] = True,
    deploy: Annotated[
        tuple[Path, ...],
        Parameter(help="Deploy these files, or the files of these folders, first.", negative="", consume_multiple=True),
    ] = (),
    behind_tls: BehindTlsOption = False,
    allow_host: AllowHostOption = (),
    functions: FunctionsOption = (),
    library: LibraryOption = None,
    name: NodeNameOption = None,
    project: ProjectOption = (),
    store: StoreOption = None,
) -> int:
    """Serve the API and the canvas; coordinate and execute."""
    from treadle.cli.frame.opening import drive

    config = configuration(store, library=library)
    stores = project_stores(project)
    served = {"": config} if not stores or config.values["store"].origin != "default" else {}
    served |= {name: _below(configuration(place, library=library), name) for name, place in stores.items()}
    at = ListenAt(host, port, behind_tls=behind_tls, hosts=allow_host)
    return drive(_serve(served, at, deploy, functions, name, executes=engine))


def _below(config: Configuration, project: str) -> Configuration:
    """The settings of a project: its callbacks come in below /p/NAME of the service's address."""
    public, ending = config.values["webhooks.public_url"], f"/p/{project}"
    if public.value is not None and not public.value.rstrip("/").endswith(ending):
        config.values["webhooks.public_url"] = public._replace(value=f"{public.value.rstrip('/')}{ending}")
    return config


async def _serve(
    served: Mapping[str, Configuration],
    at: ListenAt,
    paths: tuple[Path, ...],
    modules: tuple[str, ...],
    name: str | None,
    *,
    executes: bool,
) -> int:
    """Opens the store of every project, by name (the one without a name at the root), and serves them."""
    from treadle.cli.frame.inputs import definition_paths, read_definitions, shared
    from treadle.cli.frame.opening import importable
    from treadle.cli.screen.output import say

    config = next(iter(served.values()))
    files = definition_paths(paths, config.library)
    known = {project: importable(one, *files, modules=modules) for project, one in served.items()}
    given = shared(config)
    definitions = [definition for file in files for definition in read_definitions(file, given, allow=config.allow)]
    listening = listen(at)
    try:
        async with AsyncExitStack() as held:
            clients: dict[str, Client] = {}
            for project, one in served.items():
                client = clients[project] = await _opened(held, one, name, known[project], executes=executes)
                await refuse_strangers(client, at)
                for definition in definitions:
                    deployed = await client.deploy(definition)
                    say(f"deployed {deployed.workflow} v{deployed.version}" + (f" to {project}" if project else ""))
            await until_stopped(clients, listening, config, at)
    finally:
        listening.close()
    return OK


async def _opened(
    held: AsyncExitStack, config: Configuration, name: str | None, functions: Functions, *, executes: bool
) -> Client:
    """The store of one project: with an engine in this process, or as a client of engines elsewhere."""
    from treadle.cli.frame.opening import new_engine, open_wait_s, require_store
    from treadle.errors import OwnedElsewhere
    from treadle.runtime.connecting import connect

    if not executes:
        require_store(config)
        client = await held.enter_async_context(connect(config.store, wait_s=open_wait_s(config)))
        client.secrets_key_file = config["secrets.key_file"]
        client.public_url = config["webhooks.public_url"]
        return client
    try:
        return await held.enter_async_context(new_engine(config, name=name, functions=functions, serves=True))
    except OwnedElsewhere as elsewhere:
        raise VerbFailed(
            STORE, f"{config.store} is coordinated by {elsewhere.owner}: stop that one, or serve with --no-engine"
        ) from None
