"""Commanders: carry commands to runs, directly in the process that coordinates them, through the inbox from any other.

Owns the port `Commander` and its remote implementation. The faces (`client`, `run`) use a commander and do not know
which one it is.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import uuid_utils
from msgspec.structs import replace

from treadle.errors import CommandRefused, EngineStopped
from treadle.kernel import objections
from treadle.kernel.placing import placed
from treadle.kernel.state import RunState
from treadle.model.commands import Command, CompleteGate, ForkRun, StartRun
from treadle.model.errors import Rejection
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.runtime.command.foretelling import foretold
from treadle.runtime.command.known import known_request
from treadle.runtime.command.presence import Presence
from treadle.runtime.command.work_bell import WorkBell
from treadle.runtime.coordinate.feed import Feed, News, Watch
from treadle.runtime.coordinate.folding import fold
from treadle.runtime.coordinate.library import Library, not_deployed
from treadle.runtime.surroundings.patience import patiently as patiently
from treadle.runtime.surroundings.ports import Clock
from treadle.runtime.view.readings import Readings
from treadle.store.notices import AWAIT, CHANGED, END, INBOX, MISSED, NEWS, WANT, WORK, Notices
from treadle.store.port import KEPT, InboxAnswer, InboxRequest, OutboxRow, RunQuery, Store
from treadle.store.rows import shard_of

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

    @property
    def bell(self) -> WorkBell:
        """Rings when queues have something to claim."""

    @property
    def user(self) -> str | None:
        """The person all commands are from, where a service knows them by a key; None: a command names its own."""

    def new_run(self) -> RunId:
        """Makes an id for a new run."""

    async def place(self, run: RunId, workflow: str, version: int | None) -> RunId:
        """The id for a new run of this workflow: another one if the workflow limits its starts, so that all its runs
        are in one shard."""

    async def ask(
        self,
        run: RunId,
        command: Command,
        workflow: str | None = None,
        fresh: bool = False,
        request: str = "",
        fingerprint: str | None = None,
    ) -> InboxAnswer:
        """Sends a command to a run and waits for its durable answer. A command sent again with the same `request` id is
        carried out once. With a `fingerprint` the answer is remembered for a day at least, and the same id with another
        fingerprint raises CommandRefused(IDEMPOTENCY_MISMATCH)."""

    def watch(self, run: RunId) -> Watch:
        """Watches a run for news from now on."""

    def will_tell(self, run: RunId) -> bool:
        """Whether the run surely has not ended and a watch of it gets its end, so that the store need not be read."""

    async def state(self, run: RunId) -> RunState | None:
        """A run's state, for reading only."""

    @property
    def readings(self) -> Readings:
        """Runs that somebody looks at, folded for readers."""

    async def revive(self, letter: OutboxRow) -> None:
        """Tries a dead letter again. Raises CommandRefused if the row is no dead letter any more."""

    def changed(self) -> None:
        """Tells the engines that a schedule or a workflow was written, so that they read it."""


class Remote:
    """The commander of a process that does not coordinate the run: writes requests to the inbox and wakes the owner."""

    user: str | None = None

    def __init__(
        self, store: Store, clock: Clock, notices: Notices, presence: Presence, feed: Feed | None = None
    ) -> None:
        self.store = store
        self.clock = clock
        self.library = Library(store)
        self.readings = Readings(store, self.library)
        self.presence: Presence = presence
        self.bell = WorkBell()
        self._notices = notices
        self._feed = feed if feed is not None else Feed()
        notices.hear(NEWS, self._news)
        notices.hear(MISSED, self._news)
        notices.hear(WORK, self.bell.ring)
        notices.hear(END, lambda name: self._feed.wake(RunId(name), ended=True))

    def new_run(self) -> RunId:
        return RunId(str(uuid_utils.uuid7()))

    async def place(self, run: RunId, workflow: str, version: int | None) -> RunId:
        return await placed_by(self.library, self.store.shards, run, workflow, version)

    async def ask(
        self,
        run: RunId,
        command: Command,
        workflow: str | None = None,
        fresh: bool = False,  # noqa: ARG002
        request: str = "",
        fingerprint: str | None = None,
    ) -> InboxAnswer:
        """Waits for the answer of the owner. If no engine runs, the request stays in the inbox, and EngineStopped is
        raised."""
        refused = None
        known = await known_request(self.store, run, request, fingerprint) if fingerprint is not None else None
        if known is not None and known.answer is not None:
            return replace(known.answer, is_again=True)
        if known is not None:
            pass  # it was accepted before
        elif isinstance(command, StartRun):
            if not isinstance(command, ForkRun):
                refused = await self._refused_start(command, workflow or "")
            if refused is None and command.idempotency_key is not None and not await self.presence.is_owned():
                started = await self._known_start(command.idempotency_key, workflow or "")
                if started is not None:
                    return started
        elif isinstance(command, CompleteGate) and not await self.presence.is_owned():
            refused = await self._refused_answer(run, command)
        if refused is not None:
            return InboxAnswer("", refused)
        id = request or await self._new_request()
        if id.startswith(KEPT) and not isinstance(command, StartRun):
            foreseen = await foretold(self.store, run, command, self.clock.now(), self.library, self.state)
            if foreseen is not None:
                return foreseen
        return await self._asked(InboxRequest(id, run, command, self.clock.now(), workflow, fingerprint=fingerprint))

    async def revive(self, letter: OutboxRow) -> None:
        id = await self._new_request()
        answer = await self._asked(InboxRequest(id, letter.run, None, self.clock.now(), revive=letter.id))
        if answer.rejection is not None:
            raise CommandRefused(answer.rejection.kind, answer.rejection.message, answer.rejection.problems)

    async def _new_request(self) -> str:
        """An id for a request. If no engine runs, it says that the sender does not wait (`store.kept` finds it)."""
        id = str(uuid_utils.uuid7())
        return id if await patiently(self.presence.is_owned) else f"{KEPT}{id}"

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
        return await folded(history, self.library)

    def changed(self) -> None:
        self._notices.say(CHANGED)

    def _news(self, run: str) -> None:
        if run:
            self._feed.wake(RunId(run))
        else:
            self._feed.wake_everybody()


async def folded(history: list[Event], library: Library) -> RunState:
    """The state a whole history leads to."""
    graph = await library.graph_of(history)
    assert graph is not None, "a run's version stays deployed"
    return fold(graph, history)


def _kept(request: InboxRequest) -> EngineStopped:
    text = f"request {request.id} is kept for the next engine"
    look = f"`treadle requests show {request.id}` says what became of it"
    run = request.run if isinstance(request.command, StartRun) else None
    return EngineStopped(f"nobody coordinates this store now; {text}; {look}", run=run, request=request.id)


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
            async with asyncio.timeout(self.look_again_s):
                return await super().news()
        except TimeoutError:
            return None


async def placed_by(library: Library, shards: int, run: RunId, workflow: str, version: int | None) -> RunId:
    """See `Commander.place`."""
    if shards == 1:
        return run
    graph = await library.graph(workflow, version)
    return run if graph is None or graph.flow is None else placed(run, workflow, shards)
