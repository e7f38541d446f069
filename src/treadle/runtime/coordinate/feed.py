"""Who watches which run. In memory; news are only ever about what is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self, TypeVar

from msgspec import Struct

from treadle.actions.failure import is_interrupt
from treadle.errors import EngineStopped, StoreUnavailable
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.base.logs import logger
from treadle.runtime.base.patience import patiently

T = TypeVar("T")
log = logger("treadle.feed")


class News(Struct, frozen=True):
    """How far a run has come, durably."""

    seq: int
    status: RunStatus
    last: Event | None = None
    """Its newest event, where it was at hand."""


Listener = Callable[[RunId, int, RunStatus], None]


class Watch:
    """News of one run from now on. Begin to watch before you look at the store, and you miss nothing; what comes while
    you are busy is kept, the newest only."""

    def __init__(self, feed: Feed, run: RunId) -> None:
        self._feed = feed
        self._run = run
        self._rung = asyncio.Event()
        self._news: News | None = None
        self._has_looked = False
        self.only: frozenset[RunStatus] | None = None
        """Which statuses are news; None: all. Who waits for an end is not woken for every step."""
        feed.watches.setdefault(run, []).append(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        watches = self._feed.watches.get(self._run, [])
        if self in watches:
            watches.remove(self)
        if not watches:
            self._feed.watches.pop(self._run, None)

    async def news(self) -> News | None:
        """The next news; None: something may have changed, look yourself. Raises EngineStopped once there will be none
        any more, after a last look."""
        closed = self._feed.closed
        if closed is not None and not self._rung.is_set():
            if self._has_looked:
                raise EngineStopped(f"this engine has stopped, it will not hear of it: {closed}")
            self._has_looked = True
            return None
        await self._rung.wait()
        self._rung.clear()
        self._has_looked = self._feed.closed is not None
        news, self._news = self._news, None
        return news

    async def look(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What the store says, asked again for a while if it does not answer. Once there will be no more news here the
        store is asked once. Raises EngineStopped if it is closed by then, too."""
        if self._feed.closed is None:
            return await patiently(ask)
        try:
            return await ask()
        except StoreUnavailable as problem:
            raise EngineStopped(f"nothing can be asked here any more: {self._feed.closed}") from problem

    def ring(self, news: News | None) -> None:
        self._news = news
        self._rung.set()


class Feed:
    """Tells watches and listeners that a run has got new events."""

    def __init__(self) -> None:
        self.watches: dict[RunId, list[Watch]] = {}
        self.closed: BaseException | None = None
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` for every run that has changed; returns how to stop that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def watch(self, run: RunId) -> Watch:
        return Watch(self, run)

    def publish(self, run: RunId, last: Event, status: RunStatus) -> None:
        """Events up to `last` are durable."""
        watches = self.watches.get(run)
        if watches is not None:
            for watch in watches:
                if watch.only is None or status in watch.only:
                    watch.ring(News(last.seq, status, last))
        for listener in tuple(self._listeners):
            try:
                listener(run, last.seq, status)
            except BaseException as problem:  # a listener must not keep others from hearing it, whatever it raises
                if is_interrupt(problem):
                    raise
                log.error("a listener failed", run=run, exc_info=problem)

    def close(self, reason: BaseException) -> None:
        """There will be no more news here."""
        self.closed = reason
        self.wake_everybody()

    def wake(self, run: RunId, *, ended: bool = False) -> None:
        """This run has changed where nobody here saw it, or has `ended`."""
        for watch in self.watches.get(run, ()):
            if ended or watch.only is None:
                watch.ring(None)

    def wake_everybody(self) -> None:
        """Something may have changed that nobody here saw."""
        for watches in self.watches.values():
            for watch in watches:
                watch.ring(None)
