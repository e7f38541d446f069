"""Progress that attempts report while they work: gathered for a moment, then made durable like every other event.

Owns the gathering. Promises order, and that a stream of words costs a few events a second, not one for each word. Parts
that were not yet written are lost with their process: they are no result.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct

from treadle.model.commands import ReportProgress
from treadle.model.ids import RunId, TokenId
from treadle.runtime.surroundings.ports import Clock, Report

Json = Any

EVERY_MS = 250
"""Milliseconds between two writes of a stream: fast enough to read along, at most four events a second."""


Identity = tuple[RunId, TokenId, int]
"""Run, visit, attempt."""


class Progress:
    """Makes the `emit` function of attempts."""

    def __init__(self, report: Report, clock: Clock) -> None:
        self._report = report
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._streams: WeakValueDictionary[Identity, _Stream] = WeakValueDictionary()
        """The streams of attempts that have emitted something; each lives as long as its attempt."""
        self.has_spoken = False
        """Whether any attempt ever emitted anything: most never do."""

    def teller(self, identity: Identity) -> Callable[[str, Json], None]:
        """The `emit` function of an attempt. It may be called from any thread and never blocks."""
        return _Teller(self, identity)

    def ended(self, run: RunId, token: TokenId, attempt: int) -> None:
        """The attempt is about to report its result: its gathered progress is written before that."""
        stream = self._streams.pop((run, token, attempt), None)
        if stream is not None:
            stream.write()

    def emit(self, teller: _Teller, name: str, data: Json) -> None:
        if threading.get_ident() == self._thread:
            self._say(teller, name, data)
        else:
            self._loop.call_soon_threadsafe(self._say, teller, name, data)

    def _say(self, teller: _Teller, name: str, data: Json) -> None:
        self.has_spoken = True
        if teller.stream is None:
            teller.stream = _Stream(self._report, self._clock, teller.identity)
            self._streams[teller.identity] = teller.stream
        teller.stream.say(name, data)


class _Teller(Struct, eq=False):
    """The `emit` function of one attempt."""

    progress: Progress
    identity: Identity
    stream: _Stream | None = None

    def __call__(self, name: str, data: Json) -> None:
        self.progress.emit(self, name, data)


class _Stream:
    """The progress of one execution of one attempt."""

    def __init__(self, report: Report, clock: Clock, identity: Identity) -> None:
        self._report = report
        self._clock = clock
        self._identity = identity
        self._gathered: list[tuple[str, Json]] = []
        self._part = 0

    def say(self, name: str, data: Json) -> None:
        if not self._gathered:
            self._clock.call_at(self._clock.now() + EVERY_MS, self.write)
        elif (whole := continued(*self._gathered[-1], name, data)) is not None:
            self._gathered[-1] = (name, whole)
            return
        self._gathered.append((name, data))

    def write(self) -> None:
        run, token, attempt = self._identity
        gathered, self._gathered = self._gathered, []
        for name, data in gathered:
            self._part += 1
            self._report(run, ReportProgress(token, attempt, self._part, name, data))


def continued(name: str, data: Json, later_name: str, later: Json) -> Json | None:
    """Joins two pieces of one text, if they have the same type and the later begins where the earlier ends; else
    None."""
    pieces = isinstance(data, dict) and isinstance(later, dict) and "text" in data and "text" in later
    if name != later_name or not pieces or data.get("at", 0) + len(data["text"]) != later.get("at"):
        return None
    rest = {key: value for key, value in data.items() if key not in ("at", "text")}
    if rest != {key: value for key, value in later.items() if key not in ("at", "text")}:
        return None
    return {**data, "text": data["text"] + later["text"]}
