"""The one runner: finds `bench_*.py`, runs all or those named, prints a table, or JSON line by line."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.table import Table

from bench.report import Figure, Report, shown


def benches() -> dict[str, ModuleType]:
    """NAME → module, in alphabetical order of the files."""
    found: dict[str, ModuleType] = {}
    for file in sorted(Path(__file__).parent.glob("bench_*.py")):
        module = importlib.import_module(f"bench.{file.stem}")
        found[module.NAME] = module
    return found


def main(arguments: list[str]) -> int:
    known = benches()
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(known) or 'none yet'}")
    parser.add_argument("--json", action="store_true", help="one JSON object per figure and line")
    parser.add_argument("--list", action="store_true", help="only name the benches")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"there is no bench {unknown[0]!r}; there are: {', '.join(known) or 'none yet'}")
    if options.list:
        print("\n".join(known))
        return 0
    chosen = {
        name: module
        for name, module in known.items()
        if name in options.names or not (options.names or getattr(module, "ONLY_BY_NAME", False))
    }
    if not chosen:
        print("no benches yet: add bench/bench_<something>.py", file=sys.stderr)
        return 0
    (as_json if options.json else as_table)(chosen)
    return 0


def as_json(chosen: dict[str, ModuleType]) -> None:
    for name, module in chosen.items():
        module.run(Report(name, tell=lambda figure: print(figure.as_json(), flush=True)))


def as_table(chosen: dict[str, ModuleType]) -> None:
    console = Console()
    figures: list[Figure] = []
    with Console(stderr=True).status("measuring") as status:
        for name, module in chosen.items():
            status.update(f"measuring {name}")
            module.run(Report(name, figures.append, progress_of(name, status.update)))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("bench", "workload"):
        table.add_column(column)
    for column in ("value", "floor", "ratio"):
        table.add_column(column, justify="right")
    table.add_column("unit")
    for figure in figures:
        cells = (shown(figure.value), shown(figure.floor), shown(figure.ratio))
        table.add_row(figure.bench, figure.workload, *cells, figure.unit)
    console.print(table)


def progress_of(name: str, update: Callable[[str], None]) -> Callable[[str], None]:
    return lambda what: update(f"measuring {name}: {what}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
