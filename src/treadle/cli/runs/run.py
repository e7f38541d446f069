"""`treadle run FILE|WORKFLOW`: starts a run and watches it.

If another process coordinates the store, it executes the run; this process watches, and takes over if the other is
gone. Else this process coordinates and executes until the run has ended. With --no-wait it only requests the run and
executes nothing. Exit codes: 0 completed (or requested, with --no-wait) · 1 the run ended otherwise · 3 the definition
or the input is invalid · 4 no such workflow · 5 the store cannot be used · 130 interrupted.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from treadle.cli.frame.exits import INTERRUPTED, OK, REFUSED, STORE, VerbFailed
from treadle.cli.frame.options import FunctionsOption, LibraryOption, OutputOption, StoreOption, configuration
from treadle.cli.screen.output import cell
from treadle.model.events import Beginning
from treadle.project.settings import Configuration

if TYPE_CHECKING:
    from treadle.cli.frame.opening import Reached
    from treadle.cli.screen.output import Out
    from treadle.model.definition import Workflow
    from treadle.runtime.client import Client
    from treadle.runtime.run import Run


def run(
    workflow: Annotated[str, Parameter(help="A definition file, which is deployed, or the name of a workflow.")],
    /,
    *,
    input: Annotated[
        str | None, Parameter(name=["--input", "-i"], help="JSON, @FILE, or - for standard input.")
    ] = None,
    wait: Annotated[
        bool,
        Parameter(help="Watch it until it ends, and execute it if no other process does."),
    ] = True,
    key: Annotated[
        str | None, Parameter(help="The same key gives the same run again, as long as that run is kept.")
    ] = None,
    tag: Annotated[tuple[str, ...], Parameter(help="A tag to find the run by; may be repeated.", negative="")] = (),
    version: Annotated[int | None, Parameter(help="Version of a workflow given by name; else the newest.")] = None,
    entity: Annotated[str | None, Parameter(help="The entity it is about: TYPE/ID, for instance order/42.")] = None,
    trigger: Annotated[
        str | None,
        Parameter(help="Data about the cause of the run: JSON, @FILE, or -; expressions read it as _trigger."),
    ] = None,
    functions: FunctionsOption = (),
    library: LibraryOption = None,
    store: StoreOption = None,
    output: OutputOption = None,
) -> int:
    """Run a workflow and watch it."""
    from treadle.cli.frame.inputs import read_json
    from treadle.cli.frame.opening import drive

    config = configuration(store, output, library)
    value = read_json(input, "--input")
    began = read_json(trigger, "--trigger")
    options = {"key": key, "tags": tag, "version": version, "entity": entity, "trigger": began}
    return drive(_run(config, workflow, value, wait, options, functions))


async def _run(
    config: Configuration, workflow: str, value: Any, wait: bool, options: dict[str, Any], modules: tuple[str, ...]
) -> int:
    from treadle.cli.frame.inputs import read_definitions, shared
    from treadle.cli.frame.opening import importable, own_or_reach
    from treadle.cli.screen.output import Out, say
    from treadle.cli.screen.progress import no_answer_yet
    from treadle.cli.watch.follow import watch

    out = Out(config["output"])
    file = Path(workflow)
    known = importable(config, *([file] if _is_file(workflow) else []), modules=modules)
    allow = config.allow if not config["server"] else None  # a service looks for its functions itself
    definitions = read_definitions(file, shared(config), allow=allow) if _is_file(workflow) else []
    if not definitions and not config["server"] and config.store.is_missing:
        raise VerbFailed(STORE, f"there is no store {config.store}, so nothing is deployed: name a file, or --store")
    if not wait:
        return await _hand_in(config, definitions, workflow, value, options, out)
    async with own_or_reach(config, known) as reached:
        if reached.owner is not None:
            takes_over = "" if reached.served else "; this process takes over when that ends"
            say(f"the run is executed by {reached.owner}{takes_over}")
        name = await _deployed(reached.client, definitions, workflow, options)
        with no_answer_yet():
            started = await reached.client.start(name, value, **options)
        await _check_key(started, value, options["key"])
        try:
            return await watch(reached.client, started, out)
        except asyncio.CancelledError:
            say(_goes_on(reached, started))
            return INTERRUPTED


async def _deployed(client: Client, definitions: list[Workflow], workflow: str, options: dict[str, Any]) -> str:
    """Deploys a given file, and returns the workflow's name: the first in a file, which calls the others."""
    for definition in definitions:
        deployed = await client.deploy(definition)
        options["version"] = deployed.version if definition is definitions[0] else options["version"]
    return definitions[0].workflow if definitions else workflow


async def _hand_in(
    config: Configuration, definitions: list[Workflow], workflow: str, value: Any, options: dict[str, Any], out: Out
) -> int:
    """Requests a run without executing anything here: the engine on the store does, now or later."""
    from treadle.cli.frame.opening import connected, open_wait_s
    from treadle.cli.screen.output import say
    from treadle.cli.screen.progress import no_answer_yet
    from treadle.errors import EngineStopped

    async with connected(config, create=True, wait_s=open_wait_s(config)) as client:
        name = await _deployed(client, definitions, workflow, options)
        run_id = None if config["server"] else client.new_run_id()
        try:
            with no_answer_yet():
                started = await client.start(name, value, run_id=run_id, **options)
            await _check_key(started, value, options["key"])
            run_id = started.id
        except EngineStopped as stopped:
            run_id = stopped.run or run_id
            say("requested; no engine coordinates the store now: the next one starts the run (treadle engine)")
            say(f"`treadle requests show {stopped.request}` says whether it did")
    print(run_id) if out.text else out.json({"run": run_id})
    return OK


async def _check_key(run: Run, value: Any, key: str | None) -> None:
    """Refuses a key that belongs to a run with another input, and names that run."""
    if key is None:
        return
    [began] = await run.history(0, 1)
    if isinstance(began, Beginning) and (began.input or {}) != (value or {}):
        text = f"key {key!r} belongs to run {run.id}, which has another input: {cell(began.input, 200)}"
        raise VerbFailed(REFUSED, f"{text}; take another key, or `treadle runs watch {run.id}`")


def _is_file(text: str) -> bool:
    """Whether the argument is a file, or looks like the path of one."""
    return Path(text).is_file() or text.endswith((".yaml", ".yml", ".json"))


def _goes_on(reached: Reached, started: Run) -> str:
    if not reached.executes:
        return f"\nno longer watching; run {started.id} goes on (treadle runs watch {started.id})"
    return f"\nstopping; run {started.id} goes on when an engine opens the store again (treadle engine)"
