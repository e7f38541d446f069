"""Reading what the user hands over: definitions from files, JSON from an argument or a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from treadle.cli.configuration import Configuration
from treadle.cli.emit import say
from treadle.cli.exits import INVALID, REFUSED, USAGE, Failure
from treadle.errors import DefinitionError
from treadle.language import Loaded, load_documents
from treadle.language.library import library_in
from treadle.language.load import Known
from treadle.language.source import Spot
from treadle.model.definition import Workflow

SUFFIXES = (".yaml", ".yml", ".json")
SCENARIO = ".scenario"


def definition_paths(paths: Sequence[Path], library: Path | None = None) -> list[Path]:
    """Files as they are given; of folders, those that may hold definitions, which the project's library does not."""
    return [file for path in paths for file in (definition_files(path, library) if path.is_dir() else [path])]


def shared(config: Configuration) -> Known:
    """What the project gives to all its definitions: the library, and what worker types stand for."""
    known: Known = {"workers": config["workers"]}
    if config.library is None:
        return known
    if not config.library.is_file():
        raise Failure(REFUSED, f"there is no file {config.library}, which `library` names")
    try:
        known["library"] = library_in(config.library.read_bytes(), str(config.library))
    except DefinitionError as wrong:
        raise Failure(INVALID, str(wrong)) from None
    return known


def read_definitions(file: Path, known: Known, *, allow: Sequence[str] | None = None) -> list[Workflow]:
    """The workflows of one file. Problems are shown on stderr, with their lines; errors end the verb. `allow`: the
    modules whose functions it may name; these are imported and their signatures checked, as a deployer wants it."""
    if not file.is_file():
        raise Failure(REFUSED, f"there is no file {file}")
    loaded = load_documents(file.read_bytes(), str(file), **known)
    if allow is not None and not any(one.errors for one in loaded):
        from treadle.language.functions import finder

        checked: Known = {**known, "signatures": finder([one.require() for one in loaded], allow)}
        loaded = load_documents(file.read_bytes(), str(file), **checked)
    show_problems(file, loaded)
    errors = sum(len(one.errors) for one in loaded)
    if errors:
        raise Failure(INVALID, f"{file}: {errors} {'errors' if errors > 1 else 'error'}; nothing was deployed")
    return [one.require() for one in loaded]


def show_problems(file: Path, loaded: Sequence[Loaded]) -> None:
    """Every problem of a file, as `treadle validate` shows it, but on stderr."""
    problems = [problem for one in loaded for problem in one.problems]
    if not problems:
        return
    from treadle.cli import render
    from treadle.cli.emit import console

    render.show_problems(console(stderr=True), problems, file.read_text("utf-8", "replace"))


def definition_files(folder: Path, library: Path | None = None) -> list[Path]:
    """Files of a folder that may hold definitions; the library, scenarios and hidden ones are left alone."""
    shared = library.resolve() if library is not None else None
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in SUFFIXES
        and SCENARIO not in file.name
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and file.is_file()
        and (shared is None or file.resolve() != shared)
    )


def read_json(text: str | None, name: str) -> Any:
    """`{"a": 1}`, `@file.json`, or `-` for standard input. None stays None."""
    if text is None:
        return None
    source = name
    if text == "-":
        text, source = sys.stdin.read(), "<stdin>"
    elif text.startswith("@"):
        file = Path(text[1:])
        if not file.is_file():
            raise Failure(REFUSED, f"{name}: there is no file {file}")
        text, source = file.read_text("utf-8"), str(file)
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as problem:
        raise Failure(INVALID, f"{source}: not JSON: {_where(text) or problem}") from None


def _where(text: str) -> str | None:
    """What is wrong with a JSON text, with line and column."""
    from treadle.language.json_text import NotJson, read_json
    from treadle.language.limits import BOUNDS
    from treadle.language.source import Refusal, spot_of

    try:
        read_json(text, BOUNDS)
    except NotJson as wrong:
        return _placed(wrong.message, spot_of(wrong.at))
    except Refusal as refusal:
        return _placed(refusal.message, refusal.spot)
    return None


def _placed(message: str, spot: Spot | None) -> str:
    return message if spot is None else f"{message} (line {spot.line}, column {spot.column})"


def split_pair(text: str, option: str) -> tuple[str, str]:
    """`a=b` as two."""
    left, equals, right = text.partition("=")
    if not equals or not left:
        raise Failure(USAGE, f"{option} {text}: expected NAME=VALUE")
    return left, right


def warn_nobody(what: str) -> None:
    """A command that was kept for an engine to come."""
    say(f"{what}: nobody coordinates the store now; it is kept and will be carried out by the next engine")
