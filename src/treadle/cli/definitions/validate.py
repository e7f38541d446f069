"""`treadle validate PATH…`: checks definitions and prints every problem.

Owns the verb's arguments, the choice of files in a folder, and the look of the answer. It only reads files: it uses no
network and imports no module that a definition names.

Exit codes: 0 valid (warnings allowed) · 2 wrong usage · 3 some definition is invalid · 4 no such file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import msgspec
from cyclopts import Parameter

from treadle.cli.frame.exits import INVALID, REFUSED, USAGE, VerbFailed
from treadle.cli.frame.inputs import shared
from treadle.cli.frame.options import LibraryOption, configuration
from treadle.cli.screen.progress import patiently
from treadle.language import Loaded
from treadle.language.load import load_sources, refused, settled
from treadle.language.reading import Settings
from treadle.language.source import Refusal
from treadle.language.text import read_text
from treadle.project.settings import Output

SUFFIXES = (".yaml", ".yml", ".json")
SCENARIOS = (".scenario.yaml", ".scenario.yml")


class CheckedDefinition(NamedTuple):
    """One definition of one file, and the file's text, from which excerpts are shown."""

    file: str
    loaded: Loaded
    text: str


def validate(
    paths: Annotated[list[str], Parameter(help="Files, folders, or - for standard input.", allow_leading_hyphen=True)],
    /,
    *,
    output: Annotated[Output, Parameter(name=["--output", "-o"], help="Format of the answer.")] = "text",
    strict: Annotated[bool, Parameter(negative="", help="Warnings are errors.")] = False,
    library: LibraryOption = None,
) -> int:
    """Check definitions and report every problem. Functions are looked up by `deploy` and `run`, not here."""
    options = [path for path in paths if path.startswith("-") and path != "-"]
    if options:
        _misused(f"there is no option {options[0]}")
    missing = [path for path in paths if path != "-" and not Path(path).exists()]
    if missing:
        raise VerbFailed(REFUSED, f"there is no file {missing[0]}")
    files = list(_files(paths))
    if not files:
        _misused(f"there is no {', '.join(SUFFIXES)} file in {', '.join(paths)}")
    known = shared(configuration(None, library=library))
    checked = list(_check(files, settled({**known, "strict": strict})))
    show = {"json": _show_json, "jsonl": _show_lines, "text": _show_text}[output]
    show(checked)
    return INVALID if any(one.loaded.errors for one in checked) else 0


def _misused(message: str) -> NoReturn:
    raise VerbFailed(USAGE, f"{message} (`treadle validate --help` shows what it takes)")


def _files(paths: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each file, and whether it was found in a folder rather than named. Hidden folders are skipped."""
    for path in paths:
        if path == "-" or not Path(path).is_dir():
            yield path, False
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if name.endswith(SUFFIXES) and not name.endswith(SCENARIOS):
                    yield str(Path(folder, name)), True


def _check(files: Sequence[tuple[str, bool]], settings: Settings) -> Iterator[CheckedDefinition]:
    for path, found in patiently(files, lambda file: file[0]):
        yield from _check_file(path, found, settings)


def _check_file(path: str, found: bool, settings: Settings) -> Iterator[CheckedDefinition]:
    """Checks one file. A file that was found in a folder is skipped if it does not look like a definition."""
    content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    if found and not any(word in content for word in (b"nodes", b"definitions")):
        return
    name = "<stdin>" if path == "-" else path
    text = content.decode("utf-8", "replace")
    for loaded in _loaded(content, name, settings):
        yield CheckedDefinition(name, loaded, text)


def _loaded(content: bytes, name: str, settings: Settings) -> list[Loaded]:
    """The definitions of a file, without those that a scenario expects to be refused."""
    try:
        documents = read_text(content, name)
    except Refusal as refusal:
        return [refused(name, refusal)]
    wanted = [one for one in documents if not (isinstance(one.value, dict) and "deploy_error" in one.value)]
    if documents and not wanted:
        return []
    return load_sources(wanted, name, settings)


def _show_json(checked: Sequence[CheckedDefinition]) -> None:
    ok = not any(one.loaded.errors for one in checked)
    print(json.dumps({"ok": ok, "files": [_row(one) for one in checked]}, ensure_ascii=False))


def _show_lines(checked: Sequence[CheckedDefinition]) -> None:
    for one in checked:
        print(json.dumps(_row(one), ensure_ascii=False))


def _row(one: CheckedDefinition) -> dict[str, Any]:
    problems = [msgspec.to_builtins(problem) for problem in one.loaded.problems]
    return {"file": one.file, "workflow": one.loaded.name, "problems": problems}


def _show_text(checked: Sequence[CheckedDefinition]) -> None:
    from treadle.cli.screen.problems import plain_console, show_problems  # imports rich, which JSON does not need

    console = plain_console()
    for one in checked:
        show_problems(console, one.loaded.problems, one.text)
    errors = sum(len(one.loaded.errors) for one in checked)
    warnings = sum(len(one.loaded.warnings) for one in checked)
    counts = f"{_counted(len(checked), 'definition')}: {_counted(errors, 'error')}, {_counted(warnings, 'warning')}"
    console.print(counts, style="red" if errors else "green", markup=False)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
