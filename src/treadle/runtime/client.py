"""The face of a store full of runs: deploy, start, find, answer. `Engine` is one that also coordinates and executes.

Owns the words people use in Python; every method is a question to the store or a command to a run. Must not know
whether the process it runs in coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uuid_utils
from msgspec import Struct
from msgspec.structs import replace

from treadle.errors import CommandRefused
from treadle.model import commands as c
from treadle.model.definition import Workflow
from treadle.model.ids import RunId
from treadle.model.references import EntityRef
from treadle.model.states import RunStatus
from treadle.runtime.command import kept_requests
from treadle.runtime.command.commander import Commander
from treadle.runtime.command.finding import find_run
from treadle.runtime.command.kept_requests import RequestRow as RequestRow
from treadle.runtime.command.once import ask, current_once
from treadle.runtime.command.presence import NodeRow as NodeRow
from treadle.runtime.coordinate.library import KIND
from treadle.runtime.definitions import Definition as Definition
from treadle.runtime.definitions import workflow_of as workflow_of
from treadle.runtime.given import entity_of, given, named, named_start
from treadle.runtime.many_runs import ManyRuns
from treadle.runtime.migrating import MIGRATABLE as MIGRATABLE
from treadle.runtime.migrating import Migrating
from treadle.runtime.migrating import Migration as Migration
from treadle.runtime.operate.fsck import Report, check_store
from treadle.runtime.people_face import GateRow as GateRow
from treadle.runtime.people_face import PeopleFace
from treadle.runtime.people_face import Person as Person
from treadle.runtime.queue.queue_settings import QueueView, put_rules, queues_of, work_of
from treadle.runtime.run import Run
from treadle.runtime.run_queue_face import QueuedRun as QueuedRun
from treadle.runtime.run_queue_face import RunQueueFace
from treadle.runtime.schedule_face import ScheduleFace
from treadle.runtime.service_face import ServiceFace
from treadle.runtime.traces.context import read_context
from treadle.runtime.workflow_face import WorkflowFace
from treadle.store.port import Batch, OutboxRow, RunQuery, StoredDocument
from treadle.store.port import RunRow as RunRow
from treadle.store.work import QueueRules

if TYPE_CHECKING:
    from treadle.display.views import GraphView

Json = Any


class Deployed(Struct, frozen=True):
    """One version of a workflow."""

    workflow: str
    version: int
    hash: str
    drawn: bool = False
    """Whether deploying it has changed the version's drawing, which makes no version of its own."""
    migrated: tuple[Migration, ...] = ()
    """Live runs of older versions that were asked to go on under it (`on_deploy: migrate_if_safe`)."""


class Client(ServiceFace, PeopleFace, ManyRuns, Migrating, WorkflowFace, ScheduleFace, RunQueueFace):
    """See the module's docstring."""

    def __init__(self, commander: Commander) -> None:
        self._commander = commander

    # Workflows

    async def deploy(self, definition: Definition, *, expected: int | None = None) -> Deployed:
        """Makes a version; deploying the newest again changes nothing but its drawing, if that is another. With
        `expected`, only if that is the newest version now; 0: the workflow was never deployed. Raises DefinitionError,
        StoreConflict(STALE_VERSION)."""
        workflow, library = workflow_of(definition), self._commander.library
        before = library.newest(workflow.workflow)
        if before is None:
            await library.refresh_some([workflow.workflow])
            before = library.newest(workflow.workflow)
        graph = await library.deploy(workflow, expected)
        if graph.version != before:
            await library.note_deployed(graph, self._commander.clock.now())
            self._commander.changed()
        drawn = await library.draw_deployed(workflow, graph.version)
        safe = graph.version != before and workflow.on_deploy == "migrate_if_safe"
        migrated = await self.migrate_deployed(workflow.workflow, graph.version) if safe else ()
        return Deployed(graph.workflow_name, graph.version, graph.hash, drawn, migrated)

    async def workflows(self) -> list[Deployed]:
        """The newest version of each."""
        return [_deployed(document) for document in await self._commander.store.documents(KIND)]

    async def deployed(self, workflow: str, version: int | None = None) -> Deployed | None:
        """One version of a workflow, the newest without one; None: there is none."""
        documents = await self._commander.store.documents(KIND, workflow, version)
        return _deployed(documents[0]) if documents else None

    async def definition(self, workflow: str, version: int | None = None) -> Workflow:
        """A deployed version, the newest without one. Raises CommandRefused(NOT_FOUND)."""
        graph = await self._commander.library.graph(workflow, version)
        if graph is None:
            what = f"{workflow!r}" + (f" version {version}" if version is not None else "")
            raise CommandRefused("NOT_FOUND", f"there is no workflow {what}: deploy it first")
        return graph.definition

    async def drawing(self, workflow: str, version: int | None = None) -> Json:
        """What a deployed version looks like on a canvas, the newest without one; None if it was never drawn. Raises
        CommandRefused(NOT_FOUND)."""
        return await self._commander.library.drawing(workflow, await self._version(workflow, version))

    async def draw(self, workflow: str, drawing: Json, version: int | None = None) -> bool:
        """Replaces the drawing of a deployed version, which stays the version it is; whether anything has changed.
        Raises CommandRefused(NOT_FOUND)."""
        drawing = given("drawing", drawing)
        return await self._commander.library.draw(workflow, await self._version(workflow, version), drawing)

    async def _version(self, workflow: str, version: int | None) -> int:
        """Which one is meant, as the store knows it now."""
        if version is None:
            await self._commander.library.refresh_some([workflow])
        await self.definition(workflow, version)
        return version or self._commander.library.newest(workflow) or 0

    async def graph(self, workflow: str | Definition, version: int | None = None) -> GraphView:
        """A workflow as a picture in a notebook: a deployed one by its name, or any definition."""
        from treadle.display.views import GraphView

        known = await self.definition(workflow, version) if isinstance(workflow, str) else workflow_of(workflow)
        return GraphView(known)

    # Runs

    async def start(
        self,
        workflow: str | Definition,
        input: Json = None,
        *,
        key: str | None = None,
        tags: Sequence[str] = (),
        entity: EntityRef | Mapping[str, Json] | str | None = None,
        version: int | None = None,
        run_id: str | None = None,
        trigger: Json = None,
        trace: Mapping[str, str] | None = None,
    ) -> Run:
        """Starts a run, durably. A definition is deployed first. The same `key` gives the same run again. `trace`:
        headers of W3C Trace Context (`traceparent`, `tracestate`), whose trace the run continues. Raises CommandRefused
        for an input against the schema or an unknown workflow."""
        if not isinstance(workflow, str):
            deployed = await self.deploy(workflow)
            workflow, version = deployed.workflow, deployed.version
        about = entity_of(entity) if entity is not None else None
        named_start(key, run_id, tags, about)
        asking = current_once()
        new = self._commander.new_run if asking is None else asking.new_run
        run = await self._commander.place(RunId(run_id) if run_id is not None else new(), workflow, version)
        command = c.StartRun(
            run=run,
            input=given("input", input),
            version=version or 0,
            entity=about,
            idempotency_key=key,
            trigger=given("trigger", trigger),
            seed=uuid_utils.uuid7().int & 0xFFFF_FFFF,
            tags=tuple(tags),
            trace=read_context(trace),
        )
        answer = await ask(self._commander, run, command, workflow, fresh=run_id is None)
        if answer.rejection is not None and answer.rejection.kind == "STALE_VERSION":
            await self._commander.library.refresh_some([workflow])  # its newest version limits its starts
            command = replace(command, run=await self._commander.place(run, workflow, version))
            answer = await ask(self._commander, command.run, command, workflow, fresh=run_id is None)
        if (refused := answer.rejection) is not None:
            raise CommandRefused(refused.kind, refused.message, refused.problems, refused.retry_after_ms)
        return Run(self._commander, RunId(answer.result), workflow, answer.result == command.run)

    @staticmethod
    def new_run_id() -> str:
        """An id that no run has: for callers that need to know it before they start the run."""
        return str(uuid_utils.uuid7())

    def run(self, run_id: str) -> Run:
        """A handle on a run that exists."""
        return Run(self._commander, RunId(run_id))

    async def find_run(self, text: str) -> Run:
        """A run as people name it: by its id, or by the last six or more characters of it if they fit no other run.
        Raises CommandRefused(NOT_FOUND) with the runs that fit."""
        return self.run(await find_run(self._commander, text))

    async def runs(
        self,
        *,
        workflow: str | None = None,
        version: int | None = None,
        statuses: Sequence[RunStatus | str] = (),
        tag: str | None = None,
        tags: Sequence[str] = (),
        entity: str | None = None,
        parent: str | None = None,
        key: str | None = None,
        started_from: int | None = None,
        started_until: int | None = None,
        text: str | None = None,
        after: str | None = None,
        beyond: int | None = None,
        down_to: int | None = None,
        limit: int = 100,
    ) -> list[RunRow]:
        """Runs, newest first. `entity` is TYPE/ID. The next page begins `after` a run's id (raises
        CommandRefused(NOT_FOUND) if that run is gone meanwhile), or `beyond` its number, which always works. Runs
        before the number `down_to` are left out."""
        query = RunQuery(
            workflow=workflow,
            version=version,
            tags=tuple(tags),
            text=text,
            beyond=beyond,
            down_to=down_to,
            statuses=tuple(RunStatus(status) for status in statuses),
            tag=tag,
            entity=entity_of(entity).address if entity is not None else None,
            parent=RunId(parent) if parent is not None else None,
            idempotency_key=key,
            started_from=started_from,
            started_until=started_until,
            newest_first=True,
            after=RunId(after) if after is not None else None,
            limit=limit,
        )
        rows = await self._commander.store.find_runs(query)
        if not rows and query.after is not None:
            await self.run(query.after).info()  # an empty page after a deleted run does not mean the list is over
        return rows

    # Queues

    async def queues(self) -> list[QueueView]:
        """Every queue with work, rules or workers of its own, by name. Raises CommandRefused where one engine executes
        everything."""
        return await queues_of(self._commander.store, await self.nodes(), self._commander.clock.now())

    async def set_queue(self, queue: str, rules: QueueRules) -> None:
        """Replaces what is decided about a queue; rules without anything end them. Raises CommandRefused."""
        named("queue", queue)
        work_of(self._commander.store)
        await put_rules(self._commander.store, queue, rules)
        self.tasks.rules_changed()
        self._commander.changed()

    # What could not be delivered

    async def dead_letters(self, limit: int = 1_000) -> list[OutboxRow]:
        """What could not be delivered to the world outside, with the reason."""
        store = self._commander.store
        return await store.outbox(range(store.shards), limit=limit, parked=True)

    async def requeue(self, row: int) -> None:
        """Tries a dead letter again. Raises CommandRefused(NOT_FOUND)."""
        await self._commander.revive(await self.dead_letter(row))

    async def dead_letter(self, row: int) -> OutboxRow:
        """One dead letter. Raises CommandRefused(NOT_FOUND)."""
        store = self._commander.store
        letters = await store.outbox(range(store.shards), row - 1, 1, parked=True)
        if not letters or letters[0].id != row:
            raise CommandRefused("NOT_FOUND", f"there is no dead letter {row}")
        return letters[0]

    async def drop_letter(self, row: int) -> None:
        """Gives a dead letter up for good: it is never delivered. Raises CommandRefused(NOT_FOUND)."""
        await self.dead_letter(row)
        await self._commander.store.commit(Batch(done=[row]))

    async def requests(self, run: str | None = None, limit: int = 100) -> list[RequestRow]:
        """Requests that were kept while no engine ran, of one run or of all, newest first: waiting, done or refused."""
        return await kept_requests.requests(self._commander.store, RunId(run) if run else None, limit)

    async def request(self, id: str) -> RequestRow:
        """What became of the request that `EngineStopped.request` names. Raises CommandRefused(NOT_FOUND)."""
        return await kept_requests.one_request(self._commander.store, id)

    async def artifact(self, digest: str) -> bytes | None:
        """The bytes an artifact's digest stands for."""
        return await self._commander.store.get_blob(digest)

    async def fsck(self, progress: Callable[[int], None] | None = None) -> Report:
        """Compares every history with what is kept beside it, and with the invariants; see `runtime.operate.fsck`."""
        return await check_store(self._commander.store, progress=progress)


def _deployed(document: StoredDocument) -> Deployed:
    return Deployed(document.name, document.version, document.hash)
