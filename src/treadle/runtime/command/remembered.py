"""Commands to runs of this process whose answers are remembered: decided once, however often they are sent.

Owns the commands under way, by the name of their request. Promises that a command is decided here only if the store
knows no request of its name, and that its answer is written in the transaction of its decision. Must not know where
names come from (`command.once`).

Failure cases
    the caller goes away      the command goes on: its successor finds it under way, or its answer
    sent by another node      the request is in the inbox: the second sender waits for its answer
    the run moves away        `Moved`: the command is sent to the new owner, under its name
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from treadle.model.commands import Command
from treadle.model.ids import RunId
from treadle.runtime.command.known import check_fingerprint, known_request
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.runtime.deliver.inbox import Inbox
from treadle.runtime.surroundings.patience import patiently
from treadle.store.port import InboxAnswer, InboxRequest

LOOK_AGAIN_S = 0.2
"""How often the answer to a request in the inbox is read: it is rare, and the owner is this process."""


class Remembered:
    """See the module's docstring."""

    def __init__(self, coordinator: Coordinator, inbox: Inbox, read_inbox: Callable[[], None]) -> None:
        self._coordinator = coordinator
        self._inbox = inbox
        self._read_inbox = read_inbox
        inbox.is_asked_here = self._decides
        self._under_way: dict[str, tuple[str, asyncio.Task[InboxAnswer]]] = {}
        self._in_inbox: set[str] = set()
        """Requests under way that the inbox has, too: they are decided from there."""

    def _decides(self, request: str) -> bool:
        """Whether a request is decided here without the inbox: a request of this name that comes into the inbox
        meanwhile is answered with it."""
        return request in self._under_way and request not in self._in_inbox

    async def ask(
        self, run: RunId, command: Command, workflow: str | None, request: str, fingerprint: str
    ) -> InboxAnswer:
        """The answer to a command. `is_again`: it was given before, or is being given to another caller."""
        known = self._under_way.get(request)
        if known is not None:
            check_fingerprint(request, known[0], fingerprint)
            return replace(await asyncio.shield(known[1]), is_again=True)
        asking = self._ask(run, command, workflow, request, fingerprint)
        task = asyncio.get_running_loop().create_task(asking)
        self._under_way[request] = fingerprint, task
        task.add_done_callback(partial(self._done, request))
        return await asyncio.shield(task)

    def _done(self, request: str, task: asyncio.Task[InboxAnswer]) -> None:
        if self._decides(request):
            self._inbox.answered_here(request)
        del self._under_way[request]
        self._in_inbox.discard(request)
        if not task.cancelled():
            task.exception()  # consumed: the caller may have gone away

    async def _ask(
        self, run: RunId, command: Command, workflow: str | None, request: str, fingerprint: str
    ) -> InboxAnswer:
        store, now = self._coordinator.store, self._coordinator.clock.now()
        asked = InboxRequest(request, run, None, now, workflow, fingerprint=fingerprint)
        known = await known_request(store, run, request, fingerprint)
        if known is None:
            return await self._coordinator.ask(run, command, workflow, asked=asked)
        answer = known.answer
        if answer is None:  # another process has put it into the inbox
            self._in_inbox.add(request)
            self._read_inbox()
        while answer is None:
            await asyncio.sleep(LOOK_AGAIN_S)
            answer = await patiently(partial(store.answer, asked))
        return replace(answer, is_again=True)
