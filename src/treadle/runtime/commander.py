"""How a command reaches its run: directly in the process that coordinates, through the inbox from any other.

Owns the port `Commander` and its remote implementation. The faces (`client`, `run`) speak to a commander and do not
know which one it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import uuid_utils

from treadle.errors import CommandRefused, EngineStopped
from treadle.kernel.state import RunState
from treadle.model.commands import Command, StartRun
from treadle.model.errors import Rejection
from treadle.model.events import RunStarted
from treadle.model.ids import RunId
from treadle.runtime.feed import Feed, News, Watch
from treadle.runtime.folding import fold
from treadle.runtime.library import Library
from treadle.runtime.ports import Clock
from treadle.runtime.wake import INBOX, NEWS, WATCH, Bell
from treadle.store.port import Answer, OutboxRow, Request, Store

LOOK_AGAIN_S = 1.0
"""How long a watcher in another process trusts its subscription: the owner may have changed meanwhile. Only while
somebody waits."""


class Commander(Protocol):
    """Carries commands to runs and news back."""

    @property
    def store(self) -> Store:
        """Where everything is."""

    @property
    def clock(self) -> Clock:
        """What time it is."""

    @property
    def library(self) -> Library:
        """The deployed workflows."""

    async def ask(self, run: RunId, command: Command, workflow: str | None = None, fresh: bool = False) -> Answer:
        """A command to its durable answer."""

    def watch(self, run: RunId) -> Watch:
        """News of a run from now on."""

    def will_tell(self, run: RunId) -> bool:
        """Whether the run surely lives, and a watch of it hears of its end: nobody has to look."""

    async def state(self, run: RunId) -> RunState | None:
        """A run's state, for reading only."""

    async def revive(self, letter: OutboxRow) -> None:
        """A dead letter is tried again. Raises CommandRefused if it is none any more."""

    def changed(self) -> None:
        """Something beside the runs was written (a schedule, a workflow): the owner should look."""


class Remote:
    """From a process that does not coordinate: requests go through the inbox, the owner is rung."""

    def __init__(self, store: Store, clock: Clock, owner_address: Callable[[], str | None]) -> None:
        self.store = store
        self.clock = clock
        self.library = Library(store)
        self._owner_address = owner_address
        self._feed = Feed()
        self._bell = Bell(self._rung)

    @property
    def is_owned(self) -> bool:
        """Whether somebody is there to answer."""
        return self._owner_address() is not None

    async def ask(self, run: RunId, command: Command, workflow: str | None = None, fresh: bool = False) -> Answer:  # noqa: ARG002
        """Waits for the owner. If there is none the request stays in the inbox and `EngineStopped` says so."""
        if isinstance(command, StartRun) and (refused := await self._refusal(command, workflow or "")) is not None:
            return Answer("", refused)
        return await self._asked(Request(str(uuid_utils.uuid7()), run, command, self.clock.now(), workflow))

    async def revive(self, letter: OutboxRow) -> None:
        request = Request(str(uuid_utils.uuid7()), letter.run, None, self.clock.now(), revive=letter.id)
        answer = await self._asked(request)
        if answer.rejection is not None:
            raise CommandRefused(answer.rejection.kind, answer.rejection.message)

    async def _refusal(self, command: StartRun, workflow: str) -> Rejection | None:
        """What the owner would say at once: nobody should wait for it to hear of a slip."""
        graph = await self.library.graph(workflow, command.version or None)
        if graph is None:
            return Rejection("NOT_FOUND", f"there is no workflow {workflow!r}: deploy it first")
        problem = graph.input_schema.problem(command.input or {}) if graph.input_schema is not None else None
        return None if problem is None else Rejection("SCHEMA", f"input of {workflow!r}: {problem}")

    async def _asked(self, request: Request) -> Answer:
        answer = await self.store.submit(request)
        with self.watch(request.run) as watch:
            while answer is None:
                if not self._ring(INBOX):
                    text = f"request {request.id} is kept and will be carried out by the next engine"
                    raise EngineStopped(f"nobody coordinates this store now; {text}")
                await watch.news()
                answer = await self.store.submit(request)
        return answer

    def will_tell(self, _run: RunId) -> bool:
        return False

    def watch(self, run: RunId) -> Watch:
        return _RemoteWatch(self._feed, run, lambda: self._ring(WATCH + self._bell.address.encode()))

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
        self._ring(INBOX)

    async def close(self) -> None:
        self._bell.close()

    def _ring(self, message: bytes) -> bool:
        address = self._owner_address()
        return address is not None and self._bell.send(address, message)

    def _rung(self, message: bytes) -> None:
        if message == NEWS:
            self._feed.wake_everybody()


class _RemoteWatch(Watch):
    """Subscribes at the owner, whoever that is by now, each time it waits."""

    def __init__(self, feed: Feed, run: RunId, subscribe: Callable[[], bool]) -> None:
        super().__init__(feed, run)
        self._subscribe = subscribe
        subscribe()

    async def news(self) -> News | None:
        self._subscribe()
        try:
            return await asyncio.wait_for(super().news(), LOOK_AGAIN_S)
        except TimeoutError:
            return None
