"""Commanders: carry commands to runs, directly in the process that coordinates them, through the inbox from any other.

Owns the port `Commander` and its remote implementation. The faces (`client`, `run`) use a commander and do not know
which one it is.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import uuid_utils

from treadle.errors import CommandRefused, EngineStopped
from treadle.kernel import objections
from treadle.kernel.state import RunState
from treadle.model.commands import Command, CompleteGate, StartRun
from treadle.model.errors import Rejection
from treadle.model.events import RunStarted
from treadle.model.ids import RunId
from treadle.runtime.base.patience import patiently as patiently
from treadle.runtime.base.ports import Clock
from treadle.runtime.command.presence import Presence
from treadle.runtime.coordinate.feed import Feed, News, Watch
from treadle.runtime.coordinate.folding import fold
from treadle.runtime.coordinate.library import Library, not_deployed
from treadle.store.notices import AWAIT, CHANGED, END, INBOX, MISSED, NEWS, WANT, Notices
from treadle.store.port import InboxAnswer, InboxRequest, OutboxRow, RunQuery, Store
from treadle.store.rows import shard_of

LOOK_AGAIN_S = 1.0
"""How often a waiting caller in another process reads the store although no notice has come: notices may be lost, and
the owner of the run may change."""
INBOX_MAX = 10_000
"""Unanswered requests that are searched for an idempotency key while no engine runs."""


class Commander(Protocol):
    """Carries commands to runs and news back."""

    @property
    def store(self) -> Store:
        """The store with the runs."""

    @property
    def clock(self) -> Clock:
        """The clock that commands are stamped with."""

    @property
    def library(self) -> Library:
        """The deployed workflows."""

    @property
    def presence(self) -> Presence:
        """The processes on the store, and whether one of them coordinates."""

    def new_run(self) -> RunId:
        """Makes an id for a new run."""

    async def ask(
        self, run: RunId, command: Command, workflow: str | None = None, fresh: bool = False, request: str = ""
    ) -> InboxAnswer:
        """Sends a command to a run and waits for its durable answer. A command sent again with the same `request` id is
        carried out once."""

    def watch(self, run: RunId) -> Watch:
        """Watches a run for news from now on."""

    def will_tell(self, run: RunId) -> bool:
        """Whether the run surely has not ended and a watch of it gets its end, so that the store need not be read."""

    async def state(self, run: RunId) -> RunState | None:
        """A run's state, for reading only."""

    async def revive(self, letter: OutboxRow) -> None:
        """Tries a dead letter again. Raises CommandRefused if the row is no dead letter any more."""

    def changed(self) -> None:
        """Tells the engines that a schedule or a workflow was written, so that they read it."""


class Remote:
    """The commander of a process that does not coordinate the run: writes requests to the inbox and wakes the owner."""

    def __init__(
        self, store: Store, clock: Clock, notices: Notices, presence: Presence, feed: Feed | None = None
    ) -> None:
        self.store = store
        self.clock = clock
        self.library = Library(store)
        self.presence: Presence = presence
        self._notices = notices
        self._feed = feed if feed is not None else Feed()
        notices.hear(NEWS, self._news)
        notices.hear(MISSED, self._news)
        notices.hear(END, lambda name: self._feed.wake(RunId(name), ended=True))

    def new_run(self) -> RunId:
        return RunId(str(uuid_utils.uuid7()))

    async def ask(
        self,
        run: RunId,
        command: Command,
        workflow: str | None = None,
        fresh: bool = False,  # noqa: ARG002
        request: str = "",
    ) -> InboxAnswer:
        """Waits for the answer of the owner. If no engine runs, the request stays in the inbox, and EngineStopped is
        raised."""
        refused = None
        if isinstance(command, StartRun):
            refused = await self._refused_start(command, workflow or "")
            if refused is None and command.idempotency_key is not None and not await self.presence.is_owned():
                known = await self._known_start(command.idempotency_key, workflow or "")
                if known is not None:
                    return known
        elif isinstance(command, CompleteGate) and not await self.presence.is_owned():
            refused = await self._refused_answer(run, command)
        if refused is not None:
            return InboxAnswer("", refused)
        return await self._asked(
            InboxRequest(request or str(uuid_utils.uuid7()), run, command, self.clock.now(), workflow)
        )

    async def revive(self, letter: OutboxRow) -> None:
        request = InboxRequest(str(uuid_utils.uuid7()), letter.run, None, self.clock.now(), revive=letter.id)
        answer = await self._asked(request)
        if answer.rejection is not None:
            raise CommandRefused(answer.rejection.kind, answer.rejection.message)

    async def _known_start(self, key: str, workflow: str) -> InboxAnswer | None:
        """The answer to a start whose idempotency key was used before; None: it was not. If the earlier start is still
        an unanswered request, raises EngineStopped with the run of that request."""
        found = await self.store.find_runs(RunQuery(workflow=workflow, idempotency_key=key, limit=1))
        if found:
            return InboxAnswer("", result=found[0].run)
        for request in await self.store.inbox(range(self.store.shards), INBOX_MAX):
            asked = request.command
            if isinstance(asked, StartRun) and (asked.idempotency_key, request.workflow) == (key, workflow):
                raise _kept(request)
        return None

    async def _refused_answer(self, run: RunId, command: CompleteGate) -> Rejection | None:
        """The rejection of a gate's answer that does not fit its form. It is checked now, because the person who gave
        it may be gone when the next engine reads it."""
        state = await self.state(run)
        return objections.to_answer(state, command) if state is not None else None

    async def _refused_start(self, command: StartRun, workflow: str) -> Rejection | None:
        """The rejection of a start that the owner would refuse at once, so that the caller need not wait for the owner.
        Before a start is refused the newest version is read: another process may have deployed one."""
        if await self._problem_of(command, workflow) is not None:
            await self.library.refresh_some([workflow])
        return await self._problem_of(command, workflow)

    async def _problem_of(self, command: StartRun, workflow: str) -> Rejection | None:
        graph = await self.library.graph(workflow, command.version or None)
        if graph is None:
            return not_deployed(workflow, command.version)
        return objections.to_input(graph, command.input or {})

    async def _asked(self, request: InboxRequest) -> InboxAnswer:
        """Submits a request and waits for its answer."""
        answer = await patiently(lambda: self.store.submit(request))
        if answer is None:
            shard = str(shard_of(request.run, self.store.shards))
            with self.watch(request.run) as watch:
                while answer is None:
                    self._notices.say(WANT, request.run)  # first, so that the answer is announced
                    self._notices.say(INBOX, shard)
                    if not await patiently(self.presence.is_owned):
                        return await self._left_behind(request)
                    await watch.news()
                    answer = await patiently(lambda: self.store.answer(request))
        return answer

    async def _left_behind(self, request: InboxRequest) -> InboxAnswer:
        """No engine runs, so the request stays in the inbox: raises EngineStopped. Several starts with one key that
        came at the same moment all name the run of the first in the inbox, since the next engine starts that one."""
        command = request.command
        if isinstance(command, StartRun) and command.idempotency_key is not None:
            known = await patiently(lambda: self._known_start(command.idempotency_key or "", request.workflow or ""))
            if known is not None:
                return known
        raise _kept(request)

    def close(self) -> None:
        """Raises EngineStopped in every caller that waits, or asks again."""
        self._feed.close(EngineStopped("this client was closed"))

    def will_tell(self, _run: RunId) -> bool:
        return False

    def watch(self, run: RunId) -> Watch:
        return RemoteWatch(self._feed, run, self._notices)

    async def state(self, run: RunId) -> RunState | None:
        history = await self.store.history(run)
        if not history:
            return None
        started = history[0]
        assert isinstance(started, RunStarted)
        graph = await self.library.graph(started.workflow, started.version)
        assert graph is not None, "a run's version stays deployed"
        return fold(graph, history)

    def changed(self) -> None:
        self._notices.say(CHANGED)

    def _news(self, run: str) -> None:
        if run:
            self._feed.wake(RunId(run))
        else:
            self._feed.wake_everybody()


def _kept(request: InboxRequest) -> EngineStopped:
    text = f"request {request.id} is kept and will be carried out by the next engine"
    run = request.run if isinstance(request.command, StartRun) else None
    return EngineStopped(f"nobody coordinates this store now; {text}", run=run)


class RemoteWatch(Watch):
    """A watch of a run that another process owns. Each wait asks the current owner for news, or only for the run's end
    if `only` is set."""

    def __init__(self, feed: Feed, run: RunId, notices: Notices) -> None:
        super().__init__(feed, run)
        self._notices = notices

    @property
    def is_remote(self) -> bool:
        """Whether the news come from another process and may be lost."""
        return True

    async def news(self) -> News | None:
        if not self.is_remote:
            return await super().news()
        self._notices.say(WANT if self.only is None else AWAIT, self._run)
        try:
            async with asyncio.timeout(LOOK_AGAIN_S):
                return await super().news()
        except TimeoutError:
            return None
