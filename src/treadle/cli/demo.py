"""`python -m treadle.cli.demo [FILE]`: plays a workflow on the memory store and shows its visits as they happen.

Owns the picture, nothing else: the run is driven by `testing.World`, whose virtual clock is let go in step with the
real one. On a terminal a table lives; anywhere else each change is one line. This is what `./dev run` does until the
durable engine takes its place.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from treadle.language import load_file
from treadle.model.errors import Rejection
from treadle.model.ids import RunId
from treadle.model.states import TokenState, Waiting
from treadle.testing.projection import Projection, Visit
from treadle.testing.world import World

FRAME_MS = 50
"""Twenty pictures a second: smooth to the eye, and idle in between."""
IDLE_MS_MAX = 60_000
"""A demonstration that has not ended by then is waiting for somebody who is not there."""
DEFAULT = Path("examples/panel.yaml")
INPUT = {"draft": "On the treadle loom"}

_LOOK = {
    TokenState.PENDING: ("·", "dim"),
    TokenState.DISPATCHED: ("→", "cyan"),
    TokenState.EXECUTING: ("▶", "bold cyan"),
    TokenState.WAITING: ("…", "yellow"),
    TokenState.COMPLETED: ("✓", "green"),
    TokenState.FAILED: ("✗", "bold red"),
    TokenState.TIMED_OUT: ("⏱", "red"),
    TokenState.CANCELLED: ("–", "dim"),
}


def main(arguments: list[str]) -> int:
    """Play a definition; the exit code says whether the run completed."""
    console = Console()
    path = Path(arguments[0]) if arguments else DEFAULT
    if not path.is_file():
        console.print(f"there is no file {path}; name a definition, or stand in the project's folder", style="red")
        return 2
    loaded = load_file(path)
    if loaded.workflow is None:
        for problem in loaded.errors:
            console.print(f"{path}:{problem.line}:{problem.column} {problem.code} {problem.message}", style="red")
        return 3
    world = World()
    world.deploy(loaded.workflow)
    run = world.start(loaded.workflow.workflow, INPUT)
    if isinstance(run, Rejection):
        console.print(f"{run.kind}: {run.message}", style="red")
        return 1
    (_animate if console.is_terminal else _narrate)(console, world, run)
    return _conclude(console, world.projection(run))


def _frames(world: World, run: RunId) -> Iterator[Projection]:
    """Let virtual and real time go on together until the run has ended."""
    while _elapsed(world, run) < IDLE_MS_MAX:
        world.settle()
        projection = world.projection(run)
        yield projection
        if projection.ended_at is not None:
            return
        world.advance(FRAME_MS)


def _elapsed(world: World, run: RunId) -> int:
    started = world.projection(run).started
    return world.clock.now - started.at if started is not None else 0


def _animate(console: Console, world: World, run: RunId) -> None:
    with Live(console=console, refresh_per_second=1000 // FRAME_MS) as live:
        for projection in _frames(world, run):
            live.update(_picture(projection, _elapsed(world, run)))
            time.sleep(FRAME_MS / 1000)


def _picture(projection: Projection, now: int) -> Group:
    assert projection.started is not None
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("visit", "path", "", "state", "output or reason"):
        table.add_column(name)
    for visit in projection.visits.values():
        mark, style = _LOOK[visit.state]
        table.add_row(
            str(visit),
            Text(visit.path, style="dim"),
            Text(mark, style=style),
            Text(_state(visit), style=style),
            _result(visit),
        )
    title = Text.assemble(
        (projection.started.workflow, "bold"), "  ", (projection.status.value, "cyan"), f"  {now / 1000:.1f} s"
    )
    return Group(title, _bar(projection), table)


def _bar(projection: Projection) -> Table:
    ended = sum(1 for visit in projection.visits.values() if not visit.live or visit.waiting is Waiting.SIBLINGS)
    line = Table.grid()  # a bare bar would not end its line
    line.add_row(ProgressBar(total=max(len(projection.visits), 1), completed=ended, width=60))
    return line


def _state(visit: Visit) -> str:
    return f"waiting for {visit.waiting}" if visit.state is TokenState.WAITING and visit.waiting else visit.state.value


def _result(visit: Visit) -> Text:
    if visit.error is not None:
        return Text(visit.error.message, style="red")
    if visit.live and visit.waiting is not Waiting.SIBLINGS:
        return Text("")
    return Text(_short(visit.output), style="dim")


def _short(value: Any) -> str:
    text = "" if value in (None, {}) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"


def _narrate(console: Console, world: World, run: RunId) -> None:
    """One line per change, for logs and pipes; no need to wait for the real clock there."""
    seen: dict[int, str] = {}
    for projection in _frames(world, run):
        for visit in projection.visits.values():
            state = _state(visit)
            if seen.get(visit.token) != state:
                seen[visit.token] = state
                line = f"{_elapsed(world, run):>6} ms  {visit!s:<12} {visit.path:<18} {state:<22} {_result(visit)}"
                console.print(line.rstrip(), highlight=False, soft_wrap=True)


def _conclude(console: Console, projection: Projection) -> int:
    style = "bold green" if projection.status == "completed" else "bold red"
    console.print(Text(f"\n{projection.status.value}", style=style), end="  ")
    if projection.error is not None:
        console.print(f"{projection.error.kind}: {projection.error.message}")
    else:
        console.print(json.dumps(projection.output, ensure_ascii=False), highlight=False, soft_wrap=True)
    return 0 if projection.status == "completed" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
