"""The commanders of a process that coordinates: the whole store, or some of its runs.

Owns the way of a command: to the coordinator of this process if it owns the run, else through the inbox to the owner.
Must not know how ownership is gained and lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import uuid_utils

from treadle.errors import EngineStopped
from treadle.kernel.state import RunState
from treadle.model.commands import Command, StartRun
from treadle.model.ids import RunId
from treadle.runtime.command.commander import Remote, RemoteWatch, patiently, placed_by
from treadle.runtime.command.presence import Alone, Presence
from treadle.runtime.command.remembered import Remembered
from treadle.runtime.command.work_bell import WorkBell
from treadle.runtime.coordinate.feed import Feed, Watch
from treadle.runtime.coordinate.library import Library
from treadle.runtime.coordinate.shards import Moved
from treadle.runtime.deliver.core import Core
from treadle.runtime.surroundings.ports import Clock
from treadle.runtime.view.readings import Readings
from treadle.store.notices import Notices
from treadle.store.port import InboxAnswer, OutboxRow, Store

DRAWS_MAX = 500
"""Ids drawn to find one in an owned shard. An id takes a microsecond; a node with one shard of 64 fails once in
2,600."""


class Unopened:
    """The commander of an engine that is not open: every use raises EngineStopped."""

    def __getattr__(self, name: str) -> Any:
        raise EngineStopped("this engine is not open: use it inside `async with Engine(…) as engine:`")


class Direct:
    """The commander of the one process that coordinates a store. `look` is called when a schedule or a workflow was
    written here."""

    user: str | None = None

    def __init__(self, core: Core, look: Callable[[], None], presence: Presence | None = None) -> None:
        self._look = look
        alone = Alone(core.coordinator.store, lambda: ("this process", 0), core.coordinator.clock.now)
        self.presence: Presence = presence or alone
        self.bell = WorkBell()
        self._coordinator = core.coordinator
        self._inbox = core.inbox
        self._readings = Readings(core.coordinator.store, core.coordinator.library)
        spawn = core.coordinator.spawn
        self._remembered = Remembered(core.coordinator, core.inbox, lambda: spawn(core.look()))

    @property
    def store(self) -> Store:
        return self._coordinator.store

    @property
    def clock(self) -> Clock:
        return self._coordinator.clock

    @property
    def library(self) -> Library:
        return self._coordinator.library

    @property
    def readings(self) -> Readings:
        return self._readings

    def new_run(self) -> RunId:
        return RunId(str(uuid_utils.uuid7()))

    async def place(self, run: RunId, workflow: str, version: int | None) -> RunId:
        if self._coordinator.store.shards == 1:
            return run
        return await placed_by(self.library, self.store.shards, run, workflow, version)

    async def ask(
        self,
        run: RunId,
        command: Command,
        workflow: str | None = None,
        fresh: bool = False,
        request: str = "",
        fingerprint: str | None = None,
    ) -> InboxAnswer:
        if fingerprint is not None:
            return await self._remembered.ask(run, command, workflow, request, fingerprint)
        return await self._coordinator.ask(run, command, workflow, fresh)

    def will_tell(self, run: RunId) -> bool:
        return self._coordinator.is_hot(run)

    def watch(self, run: RunId) -> Watch:
        return self._coordinator.feed.watch(run)

    async def state(self, run: RunId) -> RunState | None:
        return await self._coordinator.state(run)

    async def revive(self, letter: OutboxRow) -> None:
        await self._inbox.revive(letter.id, letter.run)

    def changed(self) -> None:
        self._look()


class Shared(Direct):
    """The commander of one of several nodes. If a run moves to another node before a command is written, the command is
    sent to that node."""

    def __init__(self, core: Core, look: Callable[[], None], remote: Remote, notices: Notices) -> None:
        super().__init__(core, look, remote.presence)
        self._remote = remote
        self._notices = notices

    def new_run(self) -> RunId:
        """Makes an id in a shard of this node, if it has any, so that no other node has to be asked."""
        for _ in range(DRAWS_MAX):
            run = super().new_run()
            if self._coordinator.owns(run):
                break
        return run

    async def ask(
        self,
        run: RunId,
        command: Command,
        workflow: str | None = None,
        fresh: bool = False,
        request: str = "",
        fingerprint: str | None = None,
    ) -> InboxAnswer:
        if fingerprint is not None and workflow is not None:
            # A refusal is remembered, too: before the start is decided, the newest version must be known.
            await patiently(lambda: self.library.refresh_some([workflow]))
        known = self.library.newest(workflow or "")
        answer = await self._asked(run, command, workflow, fresh, request, fingerprint)
        if fingerprint is None and answer.rejection is not None and isinstance(command, StartRun) and workflow:
            # Another node may have deployed the workflow, and its notice may still be on the way.
            await patiently(lambda: self.library.refresh_some([workflow]))
            if self.library.newest(workflow) != known:
                return await self._asked(run, command, workflow, fresh)
        return answer

    async def _asked(
        self,
        run: RunId,
        command: Command,
        workflow: str | None,
        fresh: bool,
        request: str = "",
        fingerprint: str | None = None,
    ) -> InboxAnswer:
        if self._coordinator.owns(run):
            try:
                return await super().ask(run, command, workflow, fresh, request, fingerprint)
            except Moved:
                pass
        return await self._remote.ask(run, command, workflow, request=request, fingerprint=fingerprint)

    def watch(self, run: RunId) -> Watch:
        return _SharedWatch(self._coordinator.feed, run, self._notices, self._coordinator.owns)

    async def state(self, run: RunId) -> RunState | None:
        return await (super().state(run) if self._coordinator.owns(run) else self._remote.state(run))

    async def revive(self, letter: OutboxRow) -> None:
        if self._coordinator.owns(letter.run):
            await super().revive(letter)
        else:
            await self._remote.revive(letter)

    def changed(self) -> None:
        super().changed()
        self._remote.changed()


class _SharedWatch(RemoteWatch):
    """A watch of a run that this node may own now and another node later. Losing the run wakes all its watches."""

    def __init__(self, feed: Feed, run: RunId, notices: Notices, owns: Callable[[RunId], bool]) -> None:
        self._owns = owns
        super().__init__(feed, run, notices)

    @property
    def is_remote(self) -> bool:
        return not self._owns(self._run)
