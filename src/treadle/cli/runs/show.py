"""`runs show` and `runs history`: one run at a moment, and its events."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
    from treadle.runtime.client import Client, RunRow
    from treadle.runtime.run import Run

PAGE = 5_000


async def show_run(client: Client, run: Run, out: Out, at: int | None = None) -> int:
    """Shows a run as it is now, or as it was after one of its events."""
    row = await run.info()
    before = await run.state(at) if at is not None else None
    view = await overview_of(client, run)
    after, until = 0, at if at is not None else sys.maxsize
    while after < until and (batch := await run.history(after, min(PAGE, until - after))):
        view.apply(batch)
        after = batch[-1].seq
    past: dict[str, Any] = {}
    if before is not None:
        row = replace(row, seq=before.seq, status=before.status, changed=batch[-1].at)
        past = {"state": before.context()["state"]}
    now = now_ms() if before is None else row.changed
    coordinated = row.status in RUN_ENDED or await client.is_owned()
    view.turns = await turns_of(client, view)
    if out.text:
        if not coordinated:
            say(NOBODY)
        screen = console()
        screen.print(picture.picture(view, now, rows_max=10_000))
        facts = {
            "started": clock_time(row.started),
            "changed": clock_time(row.changed),
            "key": row.idempotency_key,
            "tags": row.tags,
            "entity": row.entity,
            "parent": row.parent,
            "input": view.started.input if view.started is not None else None,
            **past,
            "output": view.output,
            "error": picture.error_line(view),
            "events": row.seq,
            "warnings": view.warnings or None,
        }
        if row.status is RunStatus.COMPENSATION_FAILED:
            facts["not undone"] = f"treadle runs compensations {row.run} (--retry, --skip)"
        print()
        out.one(facts)
        if view.error is not None and view.traceback is not None:
            print(f"\n{plain(view.traceback)}")
        return OK
    paused = view.status is RunStatus.PAUSED
    visits = [_visit(visit, view.turns, now, paused=paused) for visit in view.visits.values()]
    answer = {
        **run_row(row),
        "input": view.started.input if view.started is not None else None,
        **past,
        "output": view.output,
        "error": builtins(view.error),
        "traceback": view.traceback if view.error is not None else None,
        "nodes": {node.ref: _node(node) for node in view.nodes.values()},
        "live": visits,
        "joins": [{"node": target, "arrived": arrived, "needed": needed} for target, arrived, needed in view.joins()],
        "warnings": view.warnings,
        "coordinated": coordinated,
    }
    out.json(answer)
    return OK


def run_row(row: RunRow) -> dict[str, Any]:
    """A run as a row: `key`, and `ended` if it has ended. `busy` is left out: only the engine uses it."""
    parts = {name: value for name, value in builtins(row).items() if name not in ("busy", "idempotency_key")}
    ended = row.changed if row.status in RUN_ENDED else None
    return {**parts, "key": row.idempotency_key, "ended": ended}


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
