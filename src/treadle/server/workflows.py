"""Workflows: deploy, validate, read."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any, Literal
from urllib.parse import quote

from msgspec import Meta, Struct

from treadle.display.graph_json import DrawnGraph, drawn_graph
from treadle.display.mermaid import mermaid
from treadle.display.views import GraphView
from treadle.errors import CommandRefused
from treadle.language import Loaded, load_text, load_value
from treadle.language.document import document_of
from treadle.language.load import Known
from treadle.model.definition import Workflow
from treadle.runtime.client import Deployed
from treadle.server.bodies import read_json
from treadle.server.call import HttpAnswer, HttpCall, created
from treadle.server.problems import HttpProblem, ProblemLine, lines_of
from treadle.server.routes import AUTHOR, VIEWER, Route

_PLAIN = re.compile(r"[A-Za-z0-9._~-]+")
"""Names that are the same as a segment of a path: ids of runs."""

YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml")
DEFINITION_TYPES = ("application/json", *YAML_TYPES)


LISTED = "workflow_rows"
"""The part of the service that remembers the list of workflows for a moment."""


class DeployedView(Struct):
    """A version that was deployed."""

    workflow: str
    version: int
    hash: str
    problems: Annotated[list[ProblemLine], Meta(description="Warnings; a definition with errors is refused.")]
    drawn: Annotated[bool, Meta(description="Whether the version's drawing was changed, which makes no new version.")]


class Validation(Struct):
    """The result of a check. Nothing was stored."""

    ok: bool
    problems: list[ProblemLine]
    graph: Annotated[
        DrawnGraph | None, Meta(description="The execution graph, laid out; null if the definition has errors.")
    ]
    definition: Annotated[
        Any, Meta(description="As it would be stored, its drawing included, with `show=definition`; null with errors.")
    ] = None
    mermaid: Annotated[str | None, Meta(description="The graph as Mermaid text, with `show=mermaid`.")] = None


class ValidateQuery(Struct):
    """What is shown beside problems and graph."""

    show: list[Literal["definition", "mermaid"]] = []


class WorkflowView(Struct):
    """One version of a workflow."""

    workflow: str
    version: int
    hash: str
    deployed: Annotated[int | None, Meta(description="When it was deployed; null: not known.")]
    definition: Any
    canvas: Annotated[Any, Meta(description="Its drawing; null if it was never drawn.")]


async def read_definition(call: HttpCall, *, callbacks: bool = True) -> Loaded:
    """The definition in a request's body: JSON or YAML. `callbacks`: whether workers have an address to answer to.
    Raises BAD_REQUEST for a text that is neither."""
    given = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    known: Known = {**call.service.known, "callbacks": callbacks}
    if given in YAML_TYPES:
        loaded = await asyncio.to_thread(load_text, call.raw, "<body>", **known)
        if not loaded.is_readable:
            raise HttpProblem("BAD_REQUEST", loaded.problems[0].message, place="$", problems=lines_of(loaded.problems))
        return loaded
    value = read_json(call.raw)
    return await asyncio.to_thread(load_value, value, "<body>", **known)


async def deploy(call: HttpCall) -> HttpAnswer:
    loaded = await read_definition(call, callbacks=call.client.public_url is not None)
    if loaded.name is not None and not call.sees(loaded.name):
        raise HttpProblem("FORBIDDEN", f"this key is not for the workflow {loaded.name!r}")
    workflow = loaded.require()
    if call.who.workflows is not None:
        _refuse_calls_outside(call, workflow)
    before = await call.client.deployed(workflow.workflow)
    expected = _expected(call, workflow.workflow, before)
    deployed = await call.client.deploy(workflow, expected=expected)
    call.service.parts.pop(LISTED, None)  # the next list has it
    view = DeployedView(deployed.workflow, deployed.version, deployed.hash, lines_of(loaded.problems), deployed.drawn)
    if before is not None and before.version == deployed.version:
        return HttpAnswer(view)
    return created(view, f"/api/v1/workflows/{segment(deployed.workflow)}/versions/{deployed.version}")


def _refuse_calls_outside(call: HttpCall, workflow: Workflow) -> None:
    """Refuses nodes that call workflows outside of the caller's patterns, or workflows that only a run names: by such
    a call a key would start, and read the output of, what it must not see."""
    for ref, node in workflow.nodes.items():
        for step in node.task.steps if node.task is not None else ():
            called = step.action.config.get("workflow")
            is_seen = isinstance(called, str) and not called.startswith("$") and call.sees(called)
            if step.action.kind == "workflow_call" and not is_seen:
                raise HttpProblem(
                    "FORBIDDEN",
                    f"this key is not for the workflow that node {ref!r} calls",
                    remedy="a key for some workflows deploys calls of these, each by its name",
                )


def _expected(call: HttpCall, name: str, newest: Deployed | None) -> int | None:
    """The version that must still be the newest when this one is written, 0 for none, by the request's conditions;
    None: it has none. A tag names a version by its first parts: its drawing may have changed meanwhile. Raises
    STALE_VERSION."""
    headers = call.request.headers
    wanted, absent = headers.get("if-match"), headers.get("if-none-match")
    if absent is not None and absent.strip() != "*":
        raise HttpProblem("BAD_REQUEST", "If-None-Match of a deploy is `*`: only if there is no version yet")
    if wanted is None and absent is None:
        return None
    tags = (str(newest.version), f"{newest.version}-{newest.hash[:16]}") if newest is not None else ()
    named = [tag.strip().removeprefix("W/").strip('"') for tag in (wanted or "").split(",")]
    versions = {tag.rpartition("-")[0] if tag.count("-") == 2 else tag for tag in named}
    is_named = newest is not None and ("*" in named or not versions.isdisjoint(tags))
    holds = newest is None if wanted is None else is_named
    if not holds:
        stands = f"version {newest.version} is the newest" if newest is not None else "there is no version"
        raise HttpProblem(
            "STALE_VERSION",
            f"of {name!r} {stands}",
            remedy="read the workflow again, compare, and send its ETag as If-Match",
        )
    return newest.version if newest is not None else 0


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return name if _PLAIN.fullmatch(name) else quote(name, safe="")


async def validate(call: HttpCall) -> HttpAnswer:
    loaded = await read_definition(call)
    found = Validation(not loaded.errors, lines_of(loaded.problems), None)
    if loaded.workflow is not None:
        await asyncio.to_thread(_add_pictures, found, loaded.workflow, call.query.show)
    return HttpAnswer(found)


def _add_pictures(found: Validation, workflow: Workflow, wanted: list[str]) -> None:
    graph = GraphView(workflow).graph
    found.graph = drawn_graph(graph)
    if "definition" in wanted:
        found.definition = document_of(workflow)
    if "mermaid" in wanted:
        found.mermaid = mermaid(graph)


async def show(call: HttpCall) -> HttpAnswer:
    return await _version(call, None)


async def show_version(call: HttpCall) -> HttpAnswer:
    return await _version(call, call.number("version"))


async def _version(call: HttpCall, version: int | None) -> HttpAnswer:
    return await version_view(call, await version_of(call, version))


async def version_of(call: HttpCall, version: int | None) -> Deployed:
    """A version of the path's workflow, the newest without a number. Raises NOT_FOUND."""
    name = call.path["name"]
    deployed = await call.client.deployed(name, version)
    if deployed is None:
        what = f"workflow {name!r}" + (f" version {version}" if version is not None else "")
        raise CommandRefused("NOT_FOUND", f"there is no {what}")
    return deployed


async def version_view(call: HttpCall, deployed: Deployed) -> HttpAnswer:
    """A version with its drawing. Its tag changes with either."""
    name, version = deployed.workflow, deployed.version
    definition = document_of(await call.client.definition(name, version))
    at, drawn = await call.client.deployed_at(name, version), await call.client.drawn_version(name, version)
    view = WorkflowView(name, version, deployed.hash, at, definition, await call.client.drawing(name, version))
    return HttpAnswer(view, etag=f"{version}-{deployed.hash[:16]}-{drawn}")


ROUTES = (
    Route(
        method="POST",
        path="/workflows",
        handler=deploy,
        access=AUTHOR,
        about="handler",
        noun="workflows",
        summary="Deploy a definition",
        description="A definition that is the newest version already changes nothing and answers 200. With `If-Match`"
        " it is deployed only if the version with this ETag is still the newest, with `If-None-Match: *` only if the"
        " workflow was never deployed.",
        body=bytes,
        media_types=DEFINITION_TYPES,
        reads_headers=("If-Match", "If-None-Match: *"),
        answers={201: DeployedView, 200: DeployedView},
        makes={"name": "workflow"},
        problems=("SCHEMA", "STALE_VERSION"),
    ),
    Route(
        method="POST",
        path="/workflows/validate",
        handler=validate,
        access=VIEWER,
        about="handler",
        noun="workflows",
        summary="Check a definition and store nothing",
        query=ValidateQuery,
        body=bytes,
        media_types=DEFINITION_TYPES,
        answers={200: Validation},
        audited=False,
    ),
    Route(
        method="GET",
        path="/workflows/{name}",
        handler=show,
        access=VIEWER,
        about="workflow",
        noun="workflows",
        summary="The newest version of a workflow",
        reads_headers=("If-None-Match",),
        answers={200: WorkflowView},
        problems=("NOT_FOUND",),
    ),
    Route(
        method="GET",
        path="/workflows/{name}/versions/{version}",
        handler=show_version,
        access=VIEWER,
        about="workflow",
        noun="workflows",
        summary="One version of a workflow",
        reads_headers=("If-None-Match",),
        answers={200: WorkflowView},
        problems=("NOT_FOUND",),
    ),
)
