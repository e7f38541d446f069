"""The notices a node hears from the others, and slow polling in case a notice is lost.

Owns a node's side of the notices on a shared store, and the polling that makes notices dispensable: the inbox of its
shards every second, workflows and schedules every ten. A store of one process needs no polling: nobody else writes to
it without sending a notice. Must not know how the news are handled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from treadle.errors import StoreUnavailable
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED
from treadle.runtime.deliver.core import Core
from treadle.runtime.surroundings.logs import logger
from treadle.store.notices import AWAIT, CHANGED, END, INBOX, MISSED, NEWS, WANT, Notices
from treadle.store.port import Commit

INBOX_S = 1.0
"""Seconds until a request is noticed whose notice was lost."""
BESIDE_EVERY = 10
"""Every so many looks, workflows and schedules are read too: they change rarely and are more to read."""

log = logger("treadle.notices")

Look = Callable[[], Coroutine[Any, Any, None]]


class NoticesHeard:
    """See the module's docstring. It hears notices from the moment it is made; `open` starts the polling."""

    def __init__(self, core: Core, notices: Notices, beside: Look) -> None:
        self._core = core
        self._coordinator = coordinator = core.coordinator
        self._notices = notices
        self._beside = beside
        self._looking: asyncio.Task[None] | None = None
        self._is_open = False
        self._is_about_to_look = False
        self._looking_inside = asyncio.Lock()
        notices.hear(INBOX, self._asked)
        notices.hear(CHANGED, self._changed)
        notices.hear(MISSED, self._changed)
        notices.hear(WANT, lambda run: self._wanted(run, NEWS))
        notices.hear(AWAIT, lambda run: self._wanted(run, END))
        notices.hear(NEWS, lambda run: core.other_nodes.look(RunId(run) if run else None))
        core.other_nodes.wake = self._ask
        core.hear_answered(self._answered)
        coordinator.feed.listen(self._happened)

    def open(self, *, is_shared: bool) -> None:
        """Starts to act on notices, and to poll a shared store. Before that, opening the engine reads everything
        itself."""
        self._is_open = True
        if is_shared:
            self._looking = asyncio.get_running_loop().create_task(self._look_again())

    async def close(self) -> None:
        self._is_open = False
        if self._looking is not None:
            self._looking.cancel()

    def _ask(self, run: RunId) -> None:
        """Tells another node that its inbox has a request."""
        self._notices.say(WANT, run)
        self._notices.say(INBOX, str(self._core.shards.of(run)))

    def _answered(self, runs: Iterable[RunId]) -> None:
        for run in runs:
            self._notices.say(NEWS, run)

    def _asked(self, shard: str) -> None:
        if self._is_open and (not shard or shard in map(str, self._core.shards.owned)) and not self._is_about_to_look:
            self._is_about_to_look = True  # one look sees every request made before it
            self._coordinator.spawn(self._look_inside())

    def _changed(self, _name: str) -> None:
        if self._is_open:
            self._coordinator.spawn(self._both())

    def _happened(self, newest: Mapping[RunId, Commit]) -> None:
        if not self._notices.names_runs:
            self._notices.say(NEWS)
            return
        for run, commit in newest.items():
            self._notices.say(NEWS, run)
            if commit.status in RUN_ENDED:
                self._notices.say(END, run)

    def _wanted(self, run: str, kind: str) -> None:
        """A process has begun to wait for a run and may have missed the last news: they are sent again."""
        if self._coordinator.shards.owns(run):
            self._notices.say(kind, run)

    async def _look_inside(self) -> None:
        async with self._looking_inside:
            self._is_about_to_look = False
            await self._core.look()

    async def _both(self) -> None:
        try:
            await self._look_inside()
            await self._beside()
        except StoreUnavailable as problem:  # `_look_again` looks a little later
            log.info("could not look", error=str(problem))

    async def _look_again(self) -> None:
        turn = 0
        while True:
            await asyncio.sleep(INBOX_S)
            turn += 1
            try:
                owned = self._coordinator.shards.owned
                if owned and await self._coordinator.store.inbox(owned, 1):
                    await self._look_inside()
                if turn % BESIDE_EVERY == 0:
                    await self._beside()
            except StoreUnavailable as problem:
                log.info("could not look", error=str(problem))
            except Exception as problem:  # polling must go on, whatever the problem is
                log.error("looking failed", exc_info=problem)
