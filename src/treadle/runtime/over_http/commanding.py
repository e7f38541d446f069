"""The commander of a client of a service: sends commands as requests, and waits for news by long polls.

Implements the port `Commander`, so that `Client` and `Run` need not know that a service is in between.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import uuid_utils

from treadle.errors import CommandRefused, EngineStopped, StoreUnavailable
from treadle.kernel.state import RunState
from treadle.model.commands import (
    AbortRun,
    CancelRun,
    Command,
    CommentGate,
    ForkRun,
    KeepArtifact,
    MigrateRun,
    PauseRun,
    ResumeRun,
    StartRun,
)
from treadle.model.errors import FieldProblem, Rejection
from treadle.model.ids import RunId
from treadle.model.references import EntityRef
from treadle.model.states import RUN_ENDED, RunStatus
from treadle.runtime.command.commander import folded
from treadle.runtime.command.presence import NodeRow, Presence
from treadle.runtime.command.work_bell import WorkBell
from treadle.runtime.coordinate.feed import Feed, News, Watch
from treadle.runtime.coordinate.library import Library
from treadle.runtime.over_http.commands import fork_of, request_of, require_caller
from treadle.runtime.over_http.connection import Connection, segment
from treadle.runtime.over_http.reading import ServiceReader, fitted
from treadle.runtime.surroundings.clock import SystemClock
from treadle.runtime.surroundings.ports import Clock
from treadle.runtime.view.readings import Readings
from treadle.store.port import InboxAnswer, OutboxRow, RunQuery, Store

Json = Any
WAIT_MS = 30_000
"""How long one request waits for news; then it is sent again."""
ENDINGS = tuple(f"run.{status}" for status in RunStatus if status in RUN_ENDED)


_MEANT = {PauseRun: RunStatus.PAUSED, ResumeRun: RunStatus.RUNNING}
"""The status of a run that a command leaves as it is, if the caller is not strict."""


def _entity(about: EntityRef) -> dict[str, Json]:
    parts = {"type": about.type, "id": about.id, "name": about.name, "attributes": about.attributes}
    return {name: value for name, value in parts.items() if value is not None}


class OverHttp:
    """See the module's docstring."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.user: str | None = None
        """The person whom the key stands for, once the service was asked."""
        self.reader = ServiceReader(connection)
        self.clock: Clock = SystemClock()
        self.library = Library(self.store)
        self.readings = Readings(self.store, self.library)
        self.presence: Presence = _Asked(connection)
        self.bell = WorkBell()
        self._feed = Feed()

    @property
    def store(self) -> Store:
        """The part of a store's verbs that a service answers."""
        return cast(Store, self.reader)

    async def place(self, run: RunId, workflow: str, version: int | None) -> RunId:  # noqa: ARG002
        return run  # the service places it

    def new_run(self) -> RunId:
        return RunId(str(uuid_utils.uuid7()))

    async def ask(
        self,
        run: RunId,
        command: Command,
        workflow: str | None = None,
        fresh: bool = False,
        request: str = "",  # noqa: ARG002
        fingerprint: str | None = None,  # noqa: ARG002 — the server remembers answers, not its clients
    ) -> InboxAnswer:
        try:
            if isinstance(command, ForkRun):
                return await self._fork(command)
            if isinstance(command, StartRun):
                return await self._start(command, workflow or "", fresh)
            require_caller(command, self.user)
            if isinstance(command, KeepArtifact):
                await self._keep(run, command)
            elif isinstance(command, MigrateRun):
                await self._migrate(run, command)
            else:
                path, body = request_of(run, command)
                # A comment has no id in its body: the service takes the key of the request for it.
                once = (isinstance(command, CommentGate) and command.id) or True
                await self.connection.send("POST", path, body, once=once)
        except CommandRefused as refused:
            if isinstance(command, AbortRun) and not command.strict and refused.kind == "INVALID_STATE":
                return await self.ask(run, CancelRun(command.by, "aborted"))  # it is running: so a store ends it, too
            if not await self._is_so_already(run, command, refused):
                return InboxAnswer("", Rejection(refused.kind, refused.message, refused.problems))
        return InboxAnswer("", result=run, run=run)

    async def _start(self, command: StartRun, workflow: str, fresh: bool) -> InboxAnswer:
        if not fresh:
            raise CommandRefused("BAD_REQUEST", "a service chooses the id of a run; give it a key instead")
        if command.trigger is not None:
            raise CommandRefused("BAD_REQUEST", "a service makes the trigger of a run itself; use a hook or a schedule")
        about = command.entity
        body = {
            "workflow": workflow,
            "version": command.version or None,
            "input": command.input,
            "key": command.idempotency_key,
            "tags": list(command.tags) or None,
            "entity": _entity(about) if about is not None else None,
        }
        given = {name: value for name, value in body.items() if value is not None}
        # Without a key of its own a start is not sent again: the header's key would become the run's.
        once = command.idempotency_key is not None
        try:
            started = await self.connection.send("POST", "/runs", given, once=once, headers=command.trace)
            run = RunId(started["run"])
        except CommandRefused as refused:
            run = await self._of_key(workflow, command, refused)
        return InboxAnswer("", result=run, run=run)

    async def _fork(self, command: ForkRun) -> InboxAnswer:
        require_caller(command, self.user)
        about = command.entity
        path, body = fork_of(command, _entity(about) if about is not None else None)
        forked = await self.connection.send("POST", path, body, once=command.idempotency_key is not None)
        run = RunId(forked["run"])
        return InboxAnswer("", result=run, run=run)

    async def _of_key(self, workflow: str, command: StartRun, refused: CommandRefused) -> RunId:
        """The run that has the key already, whatever its input: so a client of a store answers, too."""
        if refused.kind == "DUPLICATE" and command.idempotency_key is not None:
            rows = await self.reader.find_runs(RunQuery(workflow=workflow, idempotency_key=command.idempotency_key))
            if rows:
                return rows[0].run
        raise refused

    async def _migrate(self, run: RunId, command: MigrateRun) -> None:
        """Raises CommandRefused with everything in the way."""
        body = {"runs": [run], "to": command.to, "nodes": command.nodes, "dry_run": command.dry_run}
        (told,) = (await self.connection.send("POST", "/migrations", body, once=True))["results"]
        if not told["ok"]:
            problem = told["problem"]
            entries = [FieldProblem(one.get("place", ""), one["message"]) for one in problem.get("problems", [])]
            raise CommandRefused(problem["code"], problem["detail"], entries)

    async def _keep(self, run: RunId, command: KeepArtifact) -> None:
        content = self.reader.taken_blob(command.digest)
        path = f"/runs/{segment(run)}/artifacts/{segment(command.name)}"
        await self.connection.upload(path, content, command.content_type)

    async def _is_so_already(self, run: RunId, command: Command, refused: CommandRefused) -> bool:
        """Whether a refusal only says that the run is as it should be: a service refuses to pause a paused run, where
        a client of a store that is not strict finds nothing to do."""
        meant = _MEANT.get(type(command))
        if meant is None or refused.kind != "INVALID_STATE" or getattr(command, "strict", False):
            return False
        rows = await self.reader.find_runs(RunQuery(run=run))
        return bool(rows) and rows[0].status is meant

    def will_tell(self, _run: RunId) -> bool:
        return False

    def watch(self, run: RunId) -> Watch:
        return HttpWatch(self._feed, run, self)

    async def state(self, run: RunId) -> RunState | None:
        history = await self.reader.history(run)
        return await folded(history, self.library) if history else None

    async def revive(self, letter: OutboxRow) -> None:
        await self.connection.send("POST", f"/dead-letters/{letter.id}/requeue")

    def changed(self) -> None:
        """The service tells its engines itself."""

    def close(self) -> None:
        """Raises EngineStopped in every caller that waits, or asks again."""
        self._feed.close(EngineStopped("this client was closed"))


class HttpWatch(Watch):
    """A watch of a run behind a service. Waiting is a request for events after the last one that was read."""

    def __init__(self, feed: Feed, run: RunId, commander: OverHttp) -> None:
        super().__init__(feed, run)
        self._commander = commander

    async def news(self) -> News | None:
        if self._feed.closed is not None:
            return await super().news()
        query = {
            "after": self._commander.reader.seen.get(self._run, 0),
            "limit": 1,
            "wait_ms": WAIT_MS,
            "type": list(ENDINGS) if self.only is not None else None,
        }
        path = f"/runs/{segment(self._run)}/history"
        polling = asyncio.ensure_future(self._commander.connection.get(path, query, wait_ms=WAIT_MS))
        closing = asyncio.ensure_future(self._woken.wait())
        try:
            await asyncio.wait({polling, closing}, return_when=asyncio.FIRST_COMPLETED)
            if polling.done():
                polling.result()
        except StoreUnavailable as problem:
            if problem.final:
                raise
        finally:
            for task in (polling, closing):
                task.cancel()
        return None


class _Asked:
    """Who coordinates the store, as the service tells it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._read = 0.0
        self._owned = True

    async def is_owned(self) -> bool:
        if time.monotonic() - self._read > 1.0:
            self._owned = any(row["coordinates"] for row in await self._connection.all_of("/nodes"))
            self._read = time.monotonic()
        return self._owned

    async def nodes(self) -> list[NodeRow]:
        return [fitted(row, NodeRow) for row in await self._connection.all_of("/nodes")]
