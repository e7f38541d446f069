"""The feed: tells watches and listeners of this process that a run has new events.

Owns the watches, in memory. Promises that news are only about durable events. Must not read a store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Self, TypeVar

from msgspec import Struct

from treadle.actions.failure import is_interrupt
from treadle.errors import EngineStopped, StoreUnavailable
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.patience import patiently
from treadle.store.port import Commit

T = TypeVar("T")
log = logger("treadle.feed")
LOOK_AGAIN_S = 1.0
"""How often a waiting caller in another process reads the store although no notice has come: notices may be lost, and
the owner of the run may change."""


class News(Struct, frozen=True):
    """The newest durable event of a run, and its status after it."""

    seq: int
    status: RunStatus
    last: Event | None = None
    """The newest event itself, if the publisher had it."""


Listener = Callable[[Mapping[RunId, Commit]], None]
"""Takes the newest decision of every run in a batch that was written."""


class Watch:
    """News of one run from now on. A caller that begins to watch before it reads the store misses nothing. Of the news
    that come while the caller is busy, the newest is kept."""

    def __init__(self, feed: Feed, run: RunId) -> None:
        self._feed = feed
        self._run = run
        self._woken = asyncio.Event()
        self._news: News | None = None
        self._has_looked = False
        self.only: frozenset[RunStatus] | None = None
        """Statuses that are news; None: all. A caller that waits for a run's end is not woken for every step."""
        self.look_again_s = LOOK_AGAIN_S
        """How long to wait for news of another process, which may be lost, before the caller reads the store."""
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
        """Waits for the next news. None: something may have changed, read the store. When the feed is closed it returns
        None once, for a last reading, and raises EngineStopped after that."""
        closed = self._feed.closed
        if closed is not None and not self._woken.is_set():
            if self._has_looked:
                raise EngineStopped(f"this engine has stopped and gets no more news of the run: {closed}")
            self._has_looked = True
            return None
        await self._woken.wait()
        self._woken.clear()
        self._has_looked = self._feed.closed is not None
        news, self._news = self._news, None
        return news

    async def look(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Reads the store with `ask`, and tries again for a while if it does not answer. If the feed is closed it tries
        once, and raises EngineStopped if the store does not answer."""
        if self._feed.closed is None:
            return await patiently(ask)
        try:
            return await ask()
        except StoreUnavailable as problem:
            raise EngineStopped(f"this engine has stopped and its store is closed: {self._feed.closed}") from problem

    def wake(self, news: News | None) -> None:
        self._news = news
        self._woken.set()


class Feed:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.watches: dict[RunId, list[Watch]] = {}
        self.closed: BaseException | None = None
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` for every batch that has changed runs. Returns a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def watch(self, run: RunId) -> Watch:
        return Watch(self, run)

    def publish(self, commits: Sequence[Commit]) -> None:
        """Tells watches and listeners that these decisions are durable, once for each run: a thousand branches of a
        fan-out may share a batch."""
        newest = {commit.run: commit for commit in commits if commit.events}
        if not newest:
            return
        for run, commit in newest.items() if self.watches else ():
            for watch in self.watches.get(run, ()):
                if watch.only is None or commit.status in watch.only:
                    last = commit.events[-1]
                    watch.wake(News(last.seq, commit.status, last))
        for listener in tuple(self._listeners):
            try:
                listener(newest)
            except BaseException as problem:  # one listener must not keep the others from being called
                if is_interrupt(problem):
                    raise
                log.error("a listener failed", exc_info=problem)

    def close(self, reason: BaseException) -> None:
        """Wakes every watch for the last time; there will be no more news."""
        self.closed = reason
        self.wake_everybody()

    def wake(self, run: RunId, *, ended: bool = False) -> None:
        """Wakes the watches of a run that another process has changed, or that has `ended` there."""
        for watch in self.watches.get(run, ()):
            if ended or watch.only is None:
                watch.wake(None)

    def wake_everybody(self) -> None:
        """Wakes every watch: another process may have changed its run."""
        for watches in self.watches.values():
            for watch in watches:
                watch.wake(None)
