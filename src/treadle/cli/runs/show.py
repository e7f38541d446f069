"""`runs show` and `runs history`: one run at a moment, and its events."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from treadle.cli.frame.exits import OK
from treadle.cli.screen.output import Out, builtins, clock_time, console, now_ms, plain, say
from treadle.cli.watch import picture
from treadle.cli.watch.follow import NOBODY, event_row, overview_of
from treadle.cli.watch.queue_words import turns_of
from treadle.cli.watch.tallies import RUNNING, WAITING
from treadle.model.events import WARNINGS, Event
from treadle.model.states import RUN_ENDED, RunStatus, Waiting

if TYPE_CHECKING:
    from treadle.cli.screen.tables import Gives
    from treadle.cli.watch.overview import Overview
    from treadle.model.errors import Error
    from treadle.runtime.client import Client, RequestRow, RunRow
    from treadle.runtime.run import Moment, Run

PAGE = 5_000
VISITS_MAX = 20
"""Visits that a terminal lists; JSON has all of them."""
COLUMNS = ("visit", "node", "state", "attempt", "why")
GIVES: tuple[Gives, ...] = (("wrap", "why"), ("cut", "node"))
INTERNAL = ("busy", "idempotency_key")
"""Fields of a run's row that only the engine uses, or that are shown under another name."""
SEEN = ("causes", "counts", "waiting", "waiting_more", "shortened")
"""Fields of `RunDetail` beside those that are there under the same name."""


async def show_run(client: Client, run: Run, out: Out, at: Moment | None = None) -> int:
    """Shows a run as it is now, or as it was at a moment."""
    row = await run.info()
    state = await run.state(at)
    view = await overview_of(client, run)
    after = 0
    while after < state.seq and (batch := await run.history(after, min(PAGE, state.seq - after))):
        view.apply(batch)
        after = batch[-1].seq
    if at is not None:
        row = replace(row, seq=state.seq, status=state.status, changed=view.changed_at)
    view.turns = await turns_of(client, view)
    coordinated = row.status in RUN_ENDED or await client.is_owned()
    refused = [one for one in await client.requests(run.id) if one.status == "refused"]
    shown = Shown(row, view, state.context()["state"], refused, now_ms() if at is None else row.changed)
    if not out.text:
        seen = await _seen(run) if at is None else {}
        out.json({**_as_data(shown), "coordinated": coordinated, **seen})
        return OK
    if not coordinated:
        say(NOBODY)
    _print(shown, out)
    return OK


class Shown(NamedTuple):
    """A run at one moment."""

    row: RunRow
    view: Overview
    state: Any
    refused: list[RequestRow]
    """Requests that were kept while no engine ran, and that an engine has refused."""
    now: int

    def visits(self) -> list[dict[str, Any]]:
        """Visits that are under way, and those that failed: people retry, cancel and answer them by their numbers."""
        paused = self.view.status is RunStatus.PAUSED
        live = [_visit(visit, self.view.turns, self.now, paused=paused) for visit in self.view.visits.values()]
        failed = [
            {"visit": one.token, "node": one.node, "state": "failed", "attempt": one.attempt, "why": _error(one.error)}
            for one in self.view.failed.values()
        ]
        return sorted(live + failed, key=lambda visit: int(visit["visit"]))


def _print(shown: Shown, out: Out) -> None:
    row, view = shown.row, shown.view
    console().print(picture.picture(view, shown.now, rows_max=10_000))
    visits = shown.visits()
    if visits:
        print()
        out.rows(COLUMNS, visits[:VISITS_MAX], "", GIVES)
    if len(visits) > VISITS_MAX:
        say(f"… and {len(visits) - VISITS_MAX} more visits: --output json has all of them")
    print()
    out.one(
        {
            "started": clock_time(row.started),
            "changed": clock_time(row.changed),
            "key": row.idempotency_key,
            "tags": row.tags,
            "entity": row.entity,
            "parent": row.parent,
            "input": view.started.input if view.started is not None else None,
            "state": shown.state,
            "output": view.output,
            "error": picture.error_line(view.error),
            "events": row.seq,
            "warnings": view.warnings or None,
            "not undone": picture.not_undone(view),
        }
    )
    for one in shown.refused:
        print(f"\nrefused: {plain(refusal_line(one))}")
    if view.error is not None and view.traceback is not None:
        print(f"\n{plain(view.traceback)}")


def _as_data(shown: Shown) -> dict[str, Any]:
    row, view = shown.row, shown.view
    return {
        **run_row(row),
        "input": view.started.input if view.started is not None else None,
        "state": shown.state,
        "output": view.output,
        "error": builtins(view.error),
        "undo_error": builtins(view.undo_error),
        "skipped": [{"record": record, "node": node, "by": by} for record, (node, by) in view.skipped.items()],
        "traceback": view.traceback if view.error is not None else None,
        "nodes": {node.ref: _node(node) for node in view.nodes.values()},
        "live": [visit for visit in shown.visits() if visit["state"] != "failed"],
        "failed": [visit for visit in shown.visits() if visit["state"] == "failed"],
        "joins": [{"node": target, "arrived": arrived, "needed": needed} for target, arrived, needed in view.joins()],
        "warnings": view.warnings,
        "refused": builtins(shown.refused),
    }


def _error(error: Error | None) -> str | None:
    return f"{error.kind}: {error.message}" if error is not None else None


async def _seen(run: Run) -> dict[str, Any]:
    shown = await run.detail()
    return {name: builtins(getattr(shown, name)) for name in SEEN}


def run_row(row: RunRow) -> dict[str, Any]:
    """A run as a row: `key`, and `ended` if it has ended. Left out is what only the engine uses."""
    parts = {name: value for name, value in builtins(row).items() if name not in INTERNAL}
    ended = row.changed if row.status in RUN_ENDED else None
    return {**parts, "key": row.idempotency_key, "ended": ended}


def refusal_line(request: RequestRow) -> str:
    """A request that was kept while no engine ran, and that an engine has refused."""
    by = f" by {request.by}" if request.by else ""
    return f"{request.command.replace('_', ' ')}{by}, asked {clock_time(request.asked)}: {request.reason}"


def _node(node: Any) -> dict[str, int]:
    held = sum(1 for visit in node.live.values() if visit.waiting is Waiting.SIBLINGS)
    return {
        "running": node.counted(RUNNING),
        "waiting": node.counted(WAITING) - held,
        "done": node.done + held,
        "failed": node.failed,
        "cancelled": node.cancelled,
    }


def _visit(visit: Any, turns: Mapping[str, str], now: int, *, paused: bool) -> dict[str, Any]:
    return {
        "visit": visit.token,
        "node": visit.node,
        "state": visit.state,
        "attempt": visit.attempt,
        "waiting_for": visit.waiting.value if visit.waiting is not None else None,
        "why": picture.reason(visit, now, turns, paused=paused) if visit.waiting is not None else None,
        "until": visit.until,
        "title": visit.title,
    }


async def show_history(run: Run, out: Out, after: int, limit: int | None, warnings: bool, full: bool = False) -> int:
    """Shows events, read a page at a time. `full`: nothing is cut, failed attempts have their tracebacks."""
    await run.info()  # refuses an unknown run, whose history would look like an empty one
    events: list[Event] = []
    left = limit if limit is not None else sys.maxsize
    while left and (batch := await run.history(after, min(left, PAGE))):
        after = batch[-1].seq
        left -= len(batch)
        chosen = [event for event in batch if not warnings or event.type in WARNINGS]
        if out.mode == "jsonl":
            for event in chosen:
                out.json(event_row(event))
        else:
            events += chosen
    if out.mode == "json":
        out.json([event_row(event) for event in events])
    elif out.text:
        await _show_text(run, events, full)
    return OK


async def _show_text(run: Run, events: list[Event], full: bool) -> None:
    from rich.text import Text

    from treadle.testing.scenario.log import DETAIL_MAX, render
    from treadle.testing.scenario.report import paint
    from treadle.testing.world.projection import Projection

    if not events:
        say("there are no such events")
        return
    reading = Projection()
    reading.apply(await run.history(0, events[-1].seq))
    began, wanted = reading.events[0].at, {event.seq for event in events}
    header, *lines = render(reading, began, DETAIL_MAX if sys.stdout.isatty() and not full else None)
    chosen: list[str] = []
    for event, line in zip(reading.events, lines, strict=True):
        if event.seq in wanted:
            told = getattr(getattr(event, "error", None), "traceback", None) if full else None
            chosen += [line, *(f"      {each}" for each in (told or "").splitlines())]
    screen = console()
    screen.print(Text(header, style="dim"))
    screen.print(paint(plain("\n".join(chosen))))
