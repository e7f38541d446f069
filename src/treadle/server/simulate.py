"""`POST /workflows/{name}/simulate`: plays a definition on a virtual clock, with scripted outcomes.

Owns the process in which it is played, and its bounds: so many at a time, so many seconds. Nothing is stored, and
nothing of this process is there: neither its store nor its secrets.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from treadle.errors import CommandRefused
from treadle.language import load_value
from treadle.language.document import document_of
from treadle.model.definition import Workflow
from treadle.server.bodies import bad
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.problems import HttpProblem
from treadle.server.routes import VIEWER, Route
from treadle.testing.scenario.simulation import SimulationAnswer, SimulationQuestion

AT_ONCE = 2
"""Simulations at the same time: each is a process that computes."""
LONGEST_S = 15.0
CALLED_MAX = 50
"""Workflows that a simulation takes along because the played one calls them."""


class SimulatedStart(Struct, forbid_unknown_fields=True):
    """How the run begins, as a scenario writes it."""

    input: Any = None
    entity: dict[str, Any] | None = None


class SimulationGiven(Struct):
    """What to play, in the words of a scenario. Without a definition: the deployed version, or the newest."""

    scenario: Annotated[str | None, Meta(description="Its name, for people.")] = None
    version: Annotated[int, Meta(ge=1)] | None = None
    definition: Annotated[dict[str, Any] | None, Meta(description="A definition that need not be deployed.")] = None
    definitions: Annotated[
        Annotated[list[dict[str, Any]], Meta(min_length=1)] | None,
        Meta(description="The same with those it calls; the first is played."),
    ] = None
    start: SimulatedStart | None = None
    input: Annotated[Any, Meta(description="The same as `start.input`.")] = None
    entity: Annotated[dict[str, Any] | None, Meta(description="The same as `start.entity`.")] = None
    mocks: Annotated[dict[str, Any], Meta(description="Outcomes by address.")] = {}
    steps: list[dict[str, Any]] | None = None
    expect: dict[str, Any] | None = None


class _Turns:
    """How many simulations are under way in this process."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """One's turn. Raises RATE_LIMITED if it does not come soon: nobody waits behind a crowd."""
        try:
            async with asyncio.timeout(LONGEST_S):
                await self._free.acquire()
        except TimeoutError:
            raise HttpProblem("RATE_LIMITED", "too many simulations are under way") from None
        try:
            yield
        finally:
            self._free.release()


async def simulate(call: HttpCall) -> HttpAnswer:
    given: SimulationGiven = call.body
    if given.definition is not None and given.definitions is not None:
        raise bad("give `definition` or `definitions`: one of them", place="$.definition")
    start = given.start or SimulatedStart()
    value = given.input if given.input is not None else start.input
    entity = given.entity if given.entity is not None else start.entity
    own = given.definitions or ([given.definition] if given.definition is not None else [])
    if not own:
        own = [document_of(await _deployed(call, call.path["name"], given.version))]
    else:
        for definition in own:
            (await asyncio.to_thread(load_value, definition)).require()  # the refusal lists every problem
    question = SimulationQuestion(
        [*own, *await _called(call, own)], value, entity, given.mocks, given.steps, given.expect
    )
    turns: _Turns = call.service.parts.setdefault("simulations", _Turns())
    async with turns.taken():
        answered = await _played(msgspec.json.encode(question))
    if "problem" in answered:
        raise HttpProblem("SCHEMA", answered["problem"], remedy="docs/reference/scenarios.md")
    return HttpAnswer(msgspec.convert(answered["answer"], SimulationAnswer))


async def _deployed(call: HttpCall, name: str, version: int | None) -> Workflow:
    if version is None:
        deployed = await call.client.deployed(name)
        version = deployed.version if deployed is not None else None
    return await call.client.definition(name, version)


async def _called(call: HttpCall, own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The deployed workflows that definitions call, and those that they call."""
    found: dict[str, dict[str, Any]] = {}
    given = {definition.get("workflow") for definition in own}
    todo = sorted(_calls(own))
    while todo and len(found) < CALLED_MAX:
        name = todo.pop()
        if name in found or name in given or not call.sees(name):
            continue
        try:
            found[name] = document_of(await _deployed(call, name, None))
        except CommandRefused:  # the call fails when it is played, as it would
            continue
        todo += sorted(_calls(found[name]))
    return list(found.values())


def _calls(value: Any) -> set[str]:
    """Names of workflows that are called anywhere in a document."""
    found: set[str] = set()
    todo = [value]
    while todo:
        here = todo.pop()
        if isinstance(here, dict):
            if here.get("kind") == "workflow_call":
                config = here.get("config") if isinstance(here.get("config"), dict) else here
                name = config.get("workflow") if isinstance(config, dict) else None
                if isinstance(name, str):
                    found.add(name)
            todo += here.values()
        elif isinstance(here, list):
            todo += here
    return found


async def _played(question: bytes) -> dict[str, Any]:
    module = "treadle.testing.scenario.simulation"
    environment = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "PYTHONPATH") if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
    )
    try:
        async with asyncio.timeout(LONGEST_S):
            told, _ = await process.communicate(question)
    except TimeoutError:
        raise HttpProblem(
            "LIMIT_EXCEEDED", f"the simulation did not end within {LONGEST_S:g} s", remedy="play fewer steps"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0 or not told:
        raise HttpProblem("LIMIT_EXCEEDED", "the simulation took more memory or time than it may")
    answer: dict[str, Any] = msgspec.json.decode(told)
    return answer


ROUTES = (
    Route(
        method="POST",
        path="/workflows/{name}/simulate",
        handler=simulate,
        access=VIEWER,
        about="workflow",
        noun="workflows",
        summary="Play a definition on a virtual clock and store nothing",
        description="`mocks`, `steps` and `expect` are those of a scenario. Steps that would reach outside fail unless "
        "they are mocked.",
        body=SimulationGiven,
        answers={200: SimulationAnswer},
        problems=("NOT_FOUND", "SCHEMA"),
        audited=False,
    ),
)
