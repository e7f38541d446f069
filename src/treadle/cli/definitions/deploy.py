"""`treadle deploy FILE…`: stores new versions of workflows. Deploying the newest version again changes nothing.

Exit codes: 0 deployed · 3 a definition is invalid, and nothing was deployed · 4 no such file · 5 no store.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from treadle.cli.frame.exits import OK
from treadle.cli.frame.options import FunctionsOption, LibraryOption, OutputOption, StoreOption, configuration
from treadle.project.settings import Configuration


def deploy(
    files: Annotated[list[Path], Parameter(help="Definition files, or folders of them.")],
    /,
    *,
    check: Annotated[bool, Parameter(help="Check that the functions they name exist, as an engine would.")] = True,
    functions: FunctionsOption = (),
    library: LibraryOption = None,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Store new versions of workflows."""
    from treadle.cli.frame.opening import drive

    return drive(_deploy(configuration(store, output, library), files, check, functions))


async def _deploy(config: Configuration, paths: list[Path], check: bool, modules: tuple[str, ...]) -> int:
    from treadle.cli.frame.inputs import definition_paths, read_definitions, shared
    from treadle.cli.frame.opening import connected, importable, open_wait_s
    from treadle.cli.screen.output import Out, builtins, say

    files = definition_paths(paths, config.library)
    importable(config, *files, modules=modules)
    # The functions of a service are where its engines are: it looks for them itself.
    known, allow = shared(config), config.allow if check and not config["server"] else None
    known["callbacks"] = config["webhooks.public_url"] is not None
    definitions = [definition for file in files for definition in read_definitions(file, known, allow=allow)]
    out = Out(config["output"])
    async with connected(config, create=True, wait_s=open_wait_s(config)) as client:
        before = {one.workflow: one.version for one in await client.workflows()}
        rows = []
        for definition in definitions:
            deployed = await client.deploy(definition)
            new = before.get(deployed.workflow) != deployed.version
            rows.append({**builtins(deployed), "new": new})
            if deployed.drawn and not new:
                say(f"{deployed.workflow} v{deployed.version}: the drawing was updated; it is the same version")
    out.rows(("workflow", "version", "new", "hash"), rows, "there was nothing to deploy")
    return OK
