"""Reading of arguments: definitions from files and folders, JSON from an argument, a file or standard input."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from treadle.cli.frame.exits import INVALID, REFUSED, USAGE, VerbFailed
from treadle.errors import DefinitionError
from treadle.language import Loaded, load_documents
from treadle.language.load import Known
from treadle.language.source import Spot
from treadle.model.definition import Workflow
from treadle.project import shared as project
from treadle.project.settings import Configuration

SUFFIXES = (".yaml", ".yml", ".json")
SCENARIO = ".scenario"


def definition_paths(paths: Sequence[Path], library: Path | None = None) -> list[Path]:
    """The files among `paths`, and of each folder the files that may hold definitions, without the library."""
    return [file for path in paths for file in (definition_files(path, library) if path.is_dir() else [path])]


def shared(config: Configuration) -> Known:
    """The project's library and worker types. Raises VerbFailed."""
    try:
        return project.shared(config)
    except FileNotFoundError as missing:
        raise VerbFailed(REFUSED, str(missing)) from None
    except DefinitionError as wrong:
        raise VerbFailed(INVALID, str(wrong)) from None


def read_definitions(file: Path, known: Known, *, allow: Sequence[str] | None = None) -> list[Workflow]:
    """The workflows of one file. Problems are printed on stderr with their lines; errors end the verb. `allow`: modules
    whose functions the file may name; they are imported, and the signatures of the functions are checked."""
    if not file.is_file():
        raise VerbFailed(REFUSED, f"there is no file {file}")
    loaded = load_documents(file.read_bytes(), str(file), **known)
    if allow is not None and not any(one.errors for one in loaded):
        from treadle.language.functions import finder

        checked: Known = {**known, "signatures": finder([one.require() for one in loaded], allow)}
        loaded = load_documents(file.read_bytes(), str(file), **checked)
    show_problems(file, loaded)
    errors = sum(len(one.errors) for one in loaded)
    if errors:
        raise VerbFailed(INVALID, f"{file}: {errors} {'errors' if errors > 1 else 'error'}; nothing was deployed")
    return [one.require() for one in loaded]


def show_problems(file: Path, loaded: Sequence[Loaded]) -> None:
    """Prints every problem of a file as `treadle validate` does, but on stderr."""
    found = [problem for one in loaded for problem in one.problems]
    if not found:
        return
    from treadle.cli.screen import problems
    from treadle.cli.screen.output import console

    problems.show_problems(console(stderr=True), found, file.read_text("utf-8", "replace"))


def definition_files(folder: Path, library: Path | None = None) -> list[Path]:
    """Files of a folder that may hold definitions: neither the library, nor scenarios, nor hidden files."""
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
    """The value of a JSON argument: `{"a": 1}`, `@file.json`, or `-` for standard input. None stays None."""
    if text is None:
        return None
    source = name
    if text == "-":
        text, source = sys.stdin.read(), "<stdin>"
    elif text.startswith("@"):
        file = Path(text[1:])
        if not file.is_file():
            raise VerbFailed(REFUSED, f"{name}: there is no file {file}")
        text, source = file.read_text("utf-8"), str(file)
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as problem:
        raise VerbFailed(INVALID, f"{source}: not JSON: {_where(text) or problem}") from None


def _where(text: str) -> str | None:
    """The first mistake in a JSON text, with line and column."""
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
    """`a=b` as the pair (`a`, `b`)."""
    left, equals, right = text.partition("=")
    if not equals or not left:
        raise VerbFailed(USAGE, f"{option} {text}: expected NAME=VALUE")
    return left, right


_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(text: str, option: str) -> int:
    """`90d` → milliseconds. Raises VerbFailed."""
    unit = _UNITS.get(text[-1:])
    if unit is None or not text[:-1].isdigit() or int(text[:-1]) == 0:
        raise VerbFailed(USAGE, f"{option} {text}: write a number and s, m, h or d, as 90d")
    return int(text[:-1]) * unit
