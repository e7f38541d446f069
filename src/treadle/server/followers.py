"""Followers of streams: one reader of all events for all of them, and who may still read.

Owns the reader, and the streams that are open. Promises that what streams do together, reading and
sending, keeps to its share of the time (`pace.py`), so that they do not slow the engine of this process; and that the
store is read, and each event written as a message, once for all followers of all runs, however many there are. Must not
know HTTP.

    engine commits ── hint ──► reader ── events_after ──► the newest events ──► follower, follower, …
                               (also every POLL_S, where other nodes commit)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from time import perf_counter
from typing import Any

import msgspec
from msgspec.structs import replace
from sse_starlette.event import ServerSentEvent

from treadle.errors import PositionGone, TreadleError
from treadle.model.event_rows import event_row
from treadle.runtime.service.following import FollowedEvent
from treadle.runtime.surroundings.logs import logger
from treadle.server.newest_events import AT_ONCE, NewestEvents, Portion, StreamedEvent, StreamFilter, portion_of
from treadle.server.pace import Pace
from treadle.server.service import Service
from treadle.server.who import Who

log = logger("treadle.server")
POLL_S = 0.5
"""How often the store is read although this process has committed nothing: other nodes do, and nobody tells."""
PAGE = 500
FIRST = 5
"""Events that a follower reads from the store at first."""
RIGHTS_S = 2.0
"""How often the rights of followers are looked at: with the age of the keys it stays below five seconds."""


def next_limit(count: int, size: int) -> int:
    """How many events a follower reads next, if it has read so many events with so many bytes."""
    return max(1, min(PAGE, AT_ONCE * count // max(size, 1))) if count else FIRST


class Stop:
    """Tells one stream why it ends."""

    def __init__(self, who: Who) -> None:
        self.who = who
        self.woken = asyncio.Event()
        self.has_lost_right = False


class Followers:
    """See the module's docstring."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._following = service.client.following
        self.pace = Pace()
        self._open: set[Stop] = set()
        self._newest = NewestEvents()
        self._position: str | None = None
        self.news = asyncio.Event()
        """Set, and replaced by another, when there are new events, and when a stream is to end. A follower that looks
        at its `Stop` and takes this before it reads, and waits for it afterwards, misses nothing."""
        self._hint = asyncio.Event()
        self._beginning = asyncio.Lock()
        self._reader: asyncio.Task[None] | None = None
        self._watchman: asyncio.Task[None] | None = None
        self._is_read = 0

    @property
    def count(self) -> int:
        """How many streams are open."""
        return len(self._open)

    @asynccontextmanager
    async def stream(self, who: Who) -> AsyncIterator[Stop]:
        """One stream, while it is open."""
        stop = Stop(who)
        if self._service.draining.is_set():
            stop.woken.set()
        self._open.add(stop)
        if self._watchman is None:
            self._watchman = asyncio.create_task(self._watch())
        try:
            yield stop
        finally:
            self._open.discard(stop)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Keeps the reader of all events at work."""
        async with self._beginning:  # nobody would end a second reader
            if self._reader is None:
                self._begin_at(await self._following.last_position())
                self._reader = asyncio.create_task(self._read())
        self._is_read += 1
        try:
            yield
        finally:
            self._is_read -= 1
            if not self._is_read and self._reader is not None:
                self._reader.cancel()
                self._reader = self._position = None

    async def now(self) -> tuple[str, str]:
        """Where a follower begins that wants only what comes: in memory, where the reader is, which may be late; and
        the last position, up to which events are past (`is_past`)."""
        position, last = self._position, await self._following.last_position()
        return position or last, last

    def is_past(self, position: str, last: str) -> bool:
        """Whether an event with this position was there when `last` was the last position."""
        return self._following.is_past(position, last)

    async def check(self, position: str | None) -> None:
        """Raises PositionGone if events behind a position are gone, and ValueError for a text that is none."""
        if position is not None and position not in self._newest:
            await self._following.events_after(position, 1)

    async def portion(
        self, position: str | None, wanted: StreamFilter, limit: int = PAGE, past: str | None = None
    ) -> Portion | None:
        """What a follower gets behind a position, without the events that are past at `past`: from memory if they are
        there, else from the store, so many of them at most. None: there is nothing yet. Raises PositionGone."""
        if position is not None and position in self._newest:
            await self.pace.spare()
            began = perf_counter()
            found = self._from_memory(position, wanted, past)
            self.pace.worked(perf_counter() - began)
            if found is not None:
                return found if found.count else None
        async with self.pace.turn():
            read = await self.pace.read(self._following.events_after(position, limit))
            return self._of([_streamed(one) for one in read], wanted, past) if read else None

    def _from_memory(self, position: str, wanted: StreamFilter, past: str | None) -> Portion | None:
        if past is None:
            return self._newest.behind(position, wanted)
        events = self._newest.events_behind(position)
        if not events:
            return None if events is None else Portion(position, (), 0, 0)
        return self._of(events, wanted, past)

    def _of(self, events: Sequence[StreamedEvent], wanted: StreamFilter, past: str | None) -> Portion:
        found = portion_of(events, wanted)
        if past is None or not self.is_past(events[0].position, past):
            return found
        later = [event for event in events if not self.is_past(event.position, past)]
        return replace(found, pieces=portion_of(later, wanted).pieces if later else ())

    async def close(self) -> None:
        """Wakes every stream, so that it says goodbye."""
        for stop in self._open:
            stop.woken.set()
        self._tell_news()
        for task in (self._reader, self._watchman):
            if task is not None:
                task.cancel()

    async def _read(self) -> None:
        ends = self._following.listen(self._hint.set)
        try:
            while True:
                await self._wait_hint()
                try:
                    await self._read_pages()
                except Exception as problem:
                    if not isinstance(problem, TreadleError):  # an outage has lines of its own in the log
                        log.error("events cannot be read for streams", exc_info=problem)
                    self._hint.set()  # what it announced was not read
                    await asyncio.sleep(POLL_S)
        finally:
            ends()

    async def _read_pages(self) -> None:
        try:
            while await self._read_page():
                pass
        except PositionGone:  # it stood still for so long that events it had not read were forgotten
            self._begin_at(await self._following.last_position())
            self._tell_news()  # followers read the store themselves, and are told the same

    def _begin_at(self, position: str) -> None:
        """Nothing is in memory but the place at which the events to come begin."""
        self._newest.begin_at(position)
        self._position = position

    def _tell_news(self) -> None:
        told, self.news = self.news, asyncio.Event()
        told.set()

    async def _wait_hint(self) -> None:
        if self._following.hears_all:
            await self._hint.wait()
        else:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hint.wait(), POLL_S)
        self._hint.clear()

    async def _read_page(self) -> bool:
        async with self.pace.turn():
            page = await self.pace.read(self._following.events_after(self._position, PAGE))
            self._newest.keep([_streamed(one) for one in page])
        if page:
            self._position = page[-1].position
            self._tell_news()
        return bool(page)

    async def _watch(self) -> None:
        """Ends streams whose callers may not read any more, while there are streams."""
        while self._open:
            await asyncio.sleep(RIGHTS_S)
            known: dict[str, bool] = {}
            for stop in tuple(self._open):
                if stop.who.id not in known:
                    known[stop.who.id] = await self._is_current(stop.who)
                if not known[stop.who.id]:
                    stop.has_lost_right = True
                    stop.woken.set()
            if not all(known.values()):
                self._tell_news()
        self._watchman = None

    async def _is_current(self, who: Who) -> bool:
        """Whether a caller may still read. If the store does not say, it may until the next look."""
        try:
            return await self._service.is_current(who)
        except Exception as problem:
            if not isinstance(problem, TreadleError):
                log.error("rights of streams cannot be looked at", exc_info=problem)
            return True


def _streamed(one: FollowedEvent) -> StreamedEvent:
    row: dict[str, Any] = {"run": one.run, **event_row(one.event)}
    kind, content = one.event.type, msgspec.json.encode(row).decode()
    message = ServerSentEvent(content, event=kind, id=one.position).encode()
    return StreamedEvent(one.position, one.run, one.workflow, one.entity, kind, message)


async def first_of(*waits: Any, timeout_s: float | None = None) -> None:
    """Waits until one of them is done, and raises what that one raises."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def followers_of(service: Service) -> Followers:
    """The followers of a service: made when the first comes."""
    found: Followers = service.parts.setdefault("followers", None) or Followers(service)
    service.parts["followers"] = found
    return found
