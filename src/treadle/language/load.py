"""Text, file or value → `Loaded`: the one door through which definitions come in.

    text → documents → (canvas → execution form) → fields by the grammar's tables → Workflow → checks

Owns the order of these steps and the result. Promises never to raise for anything an author could write: all mistakes
are in `problems`, at once, in the order of the file. Loading does no network, starts no process and imports nothing
that the document names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path as FilePath
from typing import Any, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import replace

from treadle.errors import DefinitionError
from treadle.language.assemble import assemble
from treadle.language.canvas import is_canvas, read_canvas
from treadle.language.document import document_of
from treadle.language.grammar.workflow import WORKFLOW
from treadle.language.library import Library, read_library
from treadle.language.plain import refuse_value
from treadle.language.problem import Problem
from treadle.language.reading import NOTHING_KNOWN, ROOT, Reading, Settings
from treadle.language.source import Refusal, Source
from treadle.language.text import read_text
from treadle.model.definition import Workflow

Json = Any


class Known(TypedDict, total=False):
    """Facts a caller may know beside the document itself; every `load_…` takes these by name."""

    library: Library | str | FilePath | None
    """Shared `tasks` and `actions`, written as in a document; or the path of their file."""
    functions: Callable[[str], bool] | None
    """Whether a Python function exists; without it `python` actions are not looked up."""
    kinds: Mapping[str, Collection[str] | None] | None
    """Third-party action kinds and their config keys (None: any)."""
    workers: Mapping[str, Json] | None
    """The action a canvas's `workerType` stands for: type → an action as in a document, with a `queue` if it has
    one."""
    strict: bool
    """Authoring warnings are errors, whatever the document says."""
    signatures: Callable[[str], Callable[..., Any] | None] | None
    """Finds a function, so that a `python` action's inputs are checked against its signature. None from it: unknown
    here, and not checked."""
    callbacks: bool
    """Whether workers of webhooks have an address to call back to: the operator's `webhooks.public_url`. False: each
    webhook gets a warning. True unless given."""


class Loaded(Struct, frozen=True):
    """A definition that was read, with all its problems."""

    workflow: Workflow | None
    """None when there are errors."""
    problems: list[Problem]
    name: str | None = None
    """The name the document gives itself, even if it has errors."""
    is_readable: bool = True
    """False: the text is neither JSON nor YAML, so nobody can say what its author meant."""

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity == "error"]

    @property
    def warnings(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity == "warning"]

    @property
    def document(self) -> dict[str, Json] | None:
        """The canonical document; None when there are errors."""
        return document_of(self.workflow) if self.workflow is not None else None

    def require(self) -> Workflow:
        """The workflow. Raises DefinitionError with every problem when there are errors."""
        if self.workflow is None:
            raise DefinitionError(self.problems)
        return self.workflow


def load_text(text: str | bytes, name: str = "<text>", **known: Unpack[Known]) -> Loaded:
    """The one definition in a text. A text with several is a problem here: `load_documents` takes those."""
    settings = settled(known)
    try:
        sources = definitions_in(read_text(text, name, settings.bounds))
    except Refusal as refusal:
        return replace(refused(name, refusal), is_readable=False)
    if len(sources) != 1:
        return refused(name, Refusal(f"expected one workflow, found {len(sources)}"))
    return load_source(sources[0], settings)


def load_file(path: str | FilePath, **known: Unpack[Known]) -> Loaded:
    """The one definition in a file. Raises OSError when the file cannot be read."""
    text = FilePath(path).read_bytes()
    return load_text(text, str(path), **known)


def load_value(value: Json, name: str = "<value>", **known: Unpack[Known]) -> Loaded:
    """A definition that another program has parsed: plain JSON values."""
    return load_source(Source(value, name), settled(known))


def load_documents(text: str | bytes, name: str = "<text>", **known: Unpack[Known]) -> list[Loaded]:
    """Every definition in a text: documents apart by `---`, and lists under `definitions`."""
    return load_all_settled(text, name, settled(known))


def load_all_settled(text: str | bytes, name: str, settings: Settings) -> list[Loaded]:
    """As `load_documents`, for callers that know more than the public options say."""
    try:
        sources = read_text(text, name, settings.bounds)
    except Refusal as refusal:
        return [refused(name, refusal)]
    return load_sources(sources, name, settings)


def settled(known: Known) -> Settings:
    """The facts of a caller, ready to be used. A library's file is read here: raises OSError, DefinitionError."""
    return Settings(**{**known, "library": read_library(known.get("library"))})  # type: ignore[arg-type]


def load_sources(sources: list[Source], name: str, settings: Settings = NOTHING_KNOWN) -> list[Loaded]:
    """Every definition in documents that were read before."""
    found = definitions_in(sources)
    return [load_source(source, settings) for source in found] or [refused(name, Refusal("there is no workflow in it"))]


def load_source(source: Source, settings: Settings = NOTHING_KNOWN) -> Loaded:
    """A definition from a document that was read before; problems carry the document's lines."""
    reading = Reading(source, settings)
    try:
        if source.mark is None:
            refuse_value(source.value, settings.bounds)
    except Refusal as refusal:
        reading.refused(refusal)
        return _loaded(None, reading)
    return _loaded(_read(source, reading), reading)


def _read(source: Source, reading: Reading) -> Workflow | None:
    value = source.value
    if not isinstance(value, dict):
        WORKFLOW.read(value, ROOT, reading)
        return None
    reading.strict = reading.strict or value.get("strict") is True
    if is_canvas(value):
        values = read_canvas(value, reading)
    else:
        values, _ = WORKFLOW.read_fields(value, ROOT, reading)
    workflow = assemble(values, reading)
    if workflow is not None:
        from treadle.language.checks import (
            check,
        )  # imports CEL and JSON Schema, for which `import treadle` should not wait

        check(workflow, reading)
    return workflow


def _loaded(workflow: Workflow | None, reading: Reading) -> Loaded:
    value = reading.source.value
    name = value.get("workflow", value.get("name")) if isinstance(value, dict) else None
    problems = sorted(reading.problems, key=lambda problem: (problem.line or 0, problem.column or 0))
    if reading.dropped:
        problems.append(reading.rest())
    return Loaded(
        workflow=None if reading.failed else workflow,
        problems=problems,
        name=name if isinstance(name, str) else None,
    )


def refused(name: str, refusal: Refusal) -> Loaded:
    """The result for a text that is not even a document."""
    reading = Reading(Source(None, name), NOTHING_KNOWN)
    reading.refused(refusal)
    return _loaded(None, reading)


def definitions_in(sources: list[Source]) -> list[Source]:
    """The definitions of all documents; one that names a `file:` is left to the caller."""
    found: list[Source] = []
    for source in sources:
        value = source.value
        if isinstance(value, dict) and isinstance(value.get("definitions"), list):
            parts = [source.part("definitions", index) for index in range(len(value["definitions"]))]
            found += [
                part
                for part in parts
                if not (isinstance(part.value, dict) and "file" in part.value and "nodes" not in part.value)
            ]
        elif isinstance(value, list):
            found += [source.part(index) for index in range(len(value))]
        elif value is not None:
            found.append(source)
    return found
