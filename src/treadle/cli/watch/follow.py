"""Watching a run until it ends: a live picture on a terminal, one line per change on a pipe, events for programs.

Owns how often something is shown. Progress goes to stderr, so that the output of the run is the only thing on stdout. A
terminal's picture is redrawn eight times a second; a pipe gets a line only when something happened.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from treadle.cli.frame.exits import NO, OK
from treadle.cli.screen.output import Out, builtins, console, now_ms, say
from treadle.cli.watch import picture
from treadle.cli.watch.narration import Narrator
from treadle.cli.watch.overview import Overview
from treadle.cli.watch.queue_words import turns_of
from treadle.errors import StoreUnavailable, TreadleError
from treadle.model.event_rows import event_row as event_row
from treadle.model.states import RUN_ENDED, RunStatus

if TYPE_CHECKING:
    from treadle.model.events import Event
    from treadle.runtime.client import Client
    from treadle.runtime.run import Run

FRAME_S = 0.125
ATTEND_S = 2.0
"""How often a watcher checks whether an engine coordinates the store."""
ANSWER_S = 5.0
"""After this long the user is told that the store does not answer; the watcher waits on."""
NOBODY = "no engine coordinates the store now: the run goes on when one opens it (treadle engine, runs watch --execute)"
ROWS_AROUND = 6
"""Lines of the terminal that the picture leaves free."""


async def watch(client: Client, run: Run, out: Out, *, live: bool | None = None) -> int:
    """Shows a run until it has ended, then its output or its error. Returns OK if the run completed, else NO."""
    view = await overview_of(client, run)
    live = out.text and (sys.stderr.isatty() if live is None else live)
    async with _attended(_Attendant(client, run, view, is_drawn=live)):
        if out.mode == "jsonl":
            await _stream(view, run, out)
            return OK if view.status is RunStatus.COMPLETED else NO
        if live:
            await _animate(view, run)
        elif out.text:
            await _narrate(view, run)
        else:
            await _follow(view, run)
    return conclude(view, out)


@asynccontextmanager
async def _attended(attendant: _Attendant) -> AsyncIterator[None]:
    """While the run is watched, tells the user when no engine could move it on."""
    task = asyncio.ensure_future(attendant.attend())
    try:
        yield
    finally:
        task.cancel()


class _Attendant:
    """Checks what a history does not tell: whether the store answers, whether an engine coordinates it, why work of a
    queue does not begin. Tells each change once."""

    def __init__(self, client: Client, run: Run, view: Overview, *, is_drawn: bool) -> None:
        self._client, self._run, self._view = client, run, view
        self._is_drawn = is_drawn
        """Whether a picture is drawn, which shows by itself why a queue stands still."""
        self._answers = self._there = True

    async def attend(self) -> None:
        with suppress(TreadleError):  # the same error ends the watcher, which reports it
            while await self._look():
                await asyncio.sleep(ATTEND_S)

    async def _look(self) -> bool:
        """One check. Returns whether the run goes on."""
        try:
            async with asyncio.timeout(ANSWER_S):
                ended = (await self._run.status()) in RUN_ENDED
                there = await self._client.is_owned()
                turns = await turns_of(self._client, self._view)
        except (StoreUnavailable, TimeoutError):
            if self._answers:
                say("the store does not answer; still waiting")
            self._answers = False
            return True
        if not self._answers:
            say("the store answers again")
        if there != self._there and not ended:
            say("an engine coordinates the store again" if there else f"{NOBODY}; still watching")
        for queue, why in turns.items():
            if not self._is_drawn and self._view.turns.get(queue) != why:
                say(f"queue {queue!r}: {why}")
        self._answers, self._there, self._view.turns = True, there, turns
        return not ended


async def overview_of(client: Client, run: Run) -> Overview:
    """An empty overview of a run's workflow version, ready for the run's events."""
    info = await run.info()
    return Overview(await client.definition(info.workflow, info.version))


def conclude(view: Overview, out: Out) -> int:
    """Prints the end of a run, its output on stdout or its error on stderr, and returns the exit code."""
    completed = view.status is RunStatus.COMPLETED
    if not out.text:
        error = {"error": builtins(view.error), "undo_error": builtins(view.undo_error)}
        out.json({"run": view.run, "status": view.status.value, "output": view.output, **error})
    else:
        console(stderr=True).print(picture.ending(view))
        if completed and view.output is not None:
            out.json(view.output)
    return OK if completed else NO


async def _animate(view: Overview, run: Run) -> None:
    from rich.live import Live

    screen = console(stderr=True)
    batches = _batches(run)
    tick = 0
    with Live(console=screen, auto_refresh=False, transient=False) as live:
        coming = asyncio.ensure_future(anext(batches, None))
        try:
            while True:
                done, _ = await asyncio.wait({coming}, timeout=FRAME_S)
                tick += 1
                if done:
                    batch = coming.result()
                    if batch is None:
                        break
                    view.apply(batch)
                    coming = asyncio.ensure_future(anext(batches, None))
                rows = max(screen.height - ROWS_AROUND, 3)
                live.update(picture.picture(view, now_ms(), tick, rows_max=rows), refresh=True)
        finally:
            coming.cancel()
        live.update(picture.picture(view, now_ms(), tick), refresh=True)


async def _batches(run: Run) -> AsyncIterator[list[Event]]:
    """Events in batches as they come: drawing after each of ten thousand events would take longer than the run."""
    pieces: asyncio.Queue[Event | None] = asyncio.Queue()

    async def read() -> None:
        try:
            async for event in run.events():
                pieces.put_nowait(event)
        finally:
            pieces.put_nowait(None)

    reading = asyncio.ensure_future(read())
    try:
        while True:
            batch = [await pieces.get()]
            while not pieces.empty():
                batch.append(pieces.get_nowait())
            yield [event for event in batch if event is not None]
            if batch[-1] is None:
                await reading
                return
    finally:
        reading.cancel()


async def _narrate(view: Overview, run: Run) -> None:
    narrator = Narrator(view)
    async for event in run.events():
        for line in narrator.tell(event):
            say(line)


async def _follow(view: Overview, run: Run) -> None:
    async for batch in _batches(run):
        view.apply(batch)


async def _stream(view: Overview, run: Run, out: Out) -> None:
    async for event in run.events():
        view.apply([event])
        out.json(event_row(event))
