"""`treadle dev`: `treadle serve` for development. Deploys the workflow files of a folder whenever one changes, executes
runs and shows them. Python modules of functions are imported again when they change.

Owns the check for changes: the modification time of every file, twice a second. A broken file is reported, and the
version before it stays. Exit codes: 0 stopped when asked · 4 no such folder · 5 the store cannot be used, or another
process coordinates it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import OK, REFUSED, VerbFailed
from treadle.cli.frame.options import FunctionsOption, LibraryOption, StoreOption, configuration
from treadle.cli.frame.serving import HostOption, ListenAt, PortOption, listen, refuse_strangers, until_stopped
from treadle.cli.screen.output import duration, now_ms, say
from treadle.errors import TreadleError
from treadle.model.states import RunStatus, Waiting
from treadle.project.settings import Configuration

if TYPE_CHECKING:
    from rich.console import Group

    from treadle.cli.watch.overview import Overview
    from treadle.runtime.engine import Engine
    from treadle.runtime.reloading import Reloaded

LOOK_S = 0.5
"""A change is seen within a second, reading the file included."""
RECENT = 8
"""Runs shown at once: a person cannot follow more."""

PAGE = 5_000
GOING = frozenset({RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.COMPENSATING})

Stamp = dict[Path, tuple[int, int]]


def dev(
    folder: Annotated[
        Path | None, Parameter(help="The folder of workflow files; else the setting `workflows`.")
    ] = None,
    /,
    *,
    host: HostOption = "127.0.0.1",
    port: PortOption = None,
    functions: FunctionsOption = (),
    library: LibraryOption = None,
    store: StoreOption = None,
) -> int:
    """Serve, coordinate, execute, and redeploy workflow files as they change."""
    from treadle.cli.frame.opening import drive

    config = configuration(store, library=library)
    place = folder if folder is not None else config.workflows
    if not place.is_dir():
        raise VerbFailed(REFUSED, f"there is no folder {place}: `treadle init` makes a project, or name a folder")
    return drive(_develop(config, place, functions, ListenAt(host, port)))


async def _develop(config: Configuration, folder: Path, modules: tuple[str, ...], at: ListenAt) -> int:
    from treadle.cli.frame.opening import importable, new_engine

    known = importable(config, folder / "any", modules=modules)
    listening = listen(at)
    try:
        async with new_engine(config, functions=known, serves=True) as engine:
            await refuse_strangers(engine, at)
            say(f"{folder} → {config.store}; Ctrl-C stops")
            beside = [
                asyncio.create_task(_keep_deployed(engine, folder, config)),
                asyncio.create_task(_show(engine) if sys.stderr.isatty() else _tell(engine)),
            ]
            try:
                await until_stopped({"": engine}, listening, config, at, beside=beside)
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
            say("runs under way go on when an engine opens the store again")
    finally:
        listening.close()
    return OK


async def _keep_deployed(engine: Engine, folder: Path, config: Configuration) -> None:
    from treadle.runtime.reloading import Reloader

    known: Stamp = {}
    reloader = Reloader(engine)
    library = config.library.resolve() if config.library is not None else None
    while True:
        now = await asyncio.to_thread(_stamps, folder, library)
        reloaded = await asyncio.to_thread(reloader.look)
        if reloaded.changed:
            await _say_reloaded(engine, reloaded)
        # Any file may use the library, or functions whose parameters have changed.
        again = bool(reloaded.changed) or (library is not None and known.get(library) != now.get(library))
        for file, stamp in now.items():
            if file != library and (again or known.get(file) != stamp):
                await _deploy(engine, file, config)
        known = now
        await asyncio.sleep(LOOK_S)


def _stamps(folder: Path, library: Path | None) -> Stamp:
    from treadle.cli.frame.inputs import definition_files

    found: Stamp = {}
    for file in [*([library] if library is not None else []), *definition_files(folder, library)]:
        try:
            status = file.stat()
        except OSError:  # deleted after it was listed
            continue
        found[file] = (status.st_mtime_ns, status.st_size)
    return found


async def _say_reloaded(engine: Engine, reloaded: Reloaded) -> None:
    names = ", ".join(reloaded.changed)
    if reloaded.problem is not None:
        going = [row.run for row in await engine.runs(limit=RECENT) if row.status in GOING]
        used = f"; used by {', '.join(going)}" if going else ""
        say(f"{names} changed and cannot be imported: {reloaded.problem}; the code before it stays{used}")
    else:
        say(f"{names} changed: attempts that begin from now on run the new code")


async def _deploy(engine: Engine, file: Path, config: Configuration) -> None:
    from treadle.cli.frame.inputs import read_definitions, shared

    try:
        for definition in await asyncio.to_thread(read_definitions, file, shared(config), allow=config.allow):
            before = {one.workflow: one.version for one in await engine.workflows()}
            deployed = await engine.deploy(definition)
            if before.get(deployed.workflow) != deployed.version:
                say(f"deployed {deployed.workflow} v{deployed.version} from {file}")
            elif deployed.drawn:
                say(f"the drawing of {deployed.workflow} v{deployed.version} was updated from {file}")
    except (VerbFailed, TreadleError) as problem:
        say(f"{problem}; the version before it stays")


async def _tell(engine: Engine) -> None:
    """Prints one line per run that begins or ends, for logs."""
    said = {row.run: row.status.value for row in await engine.runs(limit=100) if row.status not in GOING}
    while True:
        for row in reversed(await engine.runs(limit=100)):
            if said.get(row.run) != row.status.value:
                said[row.run] = row.status.value
                say(f"{row.workflow} {row.run} {row.status.value}")
        await asyncio.sleep(LOOK_S)


async def _show(engine: Engine) -> None:
    """Draws the newest runs on a terminal."""
    from rich.live import Live

    from treadle.cli.screen.output import live_console

    views: dict[str, Overview] = {}
    with live_console() as screen, Live(console=screen, auto_refresh=False) as live:
        tick = 0
        while True:
            live.update(await _desk(engine, views, tick), refresh=True)
            tick += 1
            await asyncio.sleep(LOOK_S / 2)


async def _desk(engine: Engine, views: dict[str, Overview], tick: int) -> Group:
    from rich.console import Group
    from rich.text import Text

    from treadle.cli.watch import picture

    rows = await engine.runs(limit=RECENT)
    for gone in views.keys() - {row.run for row in rows}:
        del views[gone]
    lines: list[Text] = []
    for row in rows:
        style = picture.STATUS_STYLES.get(row.status, picture.FAILED_STYLE)
        going = row.status in GOING
        took = duration((now_ms() if going else row.changed) - row.started)
        line = Text.assemble((f"{row.workflow:<20}", "bold"), (f" {row.status.value:<12}", style), f" {took:>10}")
        if going:
            line.append(f"  {_doing(await _caught_up(engine, views, row), tick)}", style="dim")
        line.append(f"  {row.run[-12:]}", style="dim")
        line.no_wrap, line.overflow = True, "ellipsis"
        lines.append(line)
    return Group(*(lines or [Text("no runs yet: treadle run WORKFLOW in another terminal", style="dim")]))


async def _caught_up(engine: Engine, views: dict[str, Overview], row: Any) -> Overview:
    """The run's overview, with the events since the last picture folded in."""
    from treadle.cli.watch.overview import Overview

    if row.run not in views:
        views[row.run] = Overview(await engine.definition(row.workflow, row.version))
    view = views[row.run]
    while view.seq < row.seq and (batch := await engine.run(row.run).history(view.seq, PAGE)):
        view.apply(batch)
    return view


def _doing(view: Overview, tick: int) -> str:
    from treadle.cli.watch import picture
    from treadle.cli.watch.tallies import RUNNING, WAITING

    waits = [one for one in view.visits.values() if one.state == WAITING and one.waiting is not Waiting.SIBLINGS]
    runs = sum(node.counted(RUNNING) for node in view.nodes.values())
    words = [f"{picture.SPINNER[tick % len(picture.SPINNER)]} {runs} running"] if runs else []
    words += [f"{waits[0].node} {picture.reason(waits[0], now_ms())}"] if waits else []
    return " · ".join(words)
