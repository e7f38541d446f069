"""The face of a store full of runs: deploy, start, find, answer. `Engine` is one that also coordinates and executes.

Owns the words people use in Python; every method is a question to the store or a command to a run. Must not know
whether the process it runs in coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import uuid_utils
from msgspec import Struct

from treadle.errors import CommandRefused, DefinitionError
from treadle.model import commands as c
from treadle.model.definition import Workflow
from treadle.model.ids import RunId, TokenId
from treadle.model.references import EntityRef
from treadle.model.states import RunStatus
from treadle.runtime.command.commander import Commander
from treadle.runtime.command.finding import find_run
from treadle.runtime.command.presence import NodeRow as NodeRow
from treadle.runtime.coordinate.library import KIND
from treadle.runtime.definitions import Definition as Definition
from treadle.runtime.definitions import workflow_of as workflow_of
from treadle.runtime.given import entity_of, given, named, named_start
from treadle.runtime.operate.fsck import Report, check_store
from treadle.runtime.queue.queue_settings import QueueView, put_rules, queues_of, work_of
from treadle.runtime.run import Run
from treadle.runtime.schedule.definition import KIND as SCHEDULE
from treadle.runtime.schedule.definition import Schedule, ScheduleProblem, check_schedule, hash_of
from treadle.store.port import GateRow as GateRow
from treadle.store.port import OutboxRow, RunQuery, StoredDocument
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


class Client:
    """See the module's docstring."""

    def __init__(self, commander: Commander) -> None:
        self._commander = commander

    async def is_owned(self) -> bool:
        """Whether somebody coordinates the store now: else commands are kept, and nothing happens."""
        return await self._commander.presence.is_owned()

    async def nodes(self) -> list[NodeRow]:
        """The processes that coordinate the store or execute its work, what each owns, and how far behind it is."""
        return await self._commander.presence.nodes()

    # Workflows

    async def deploy(self, definition: Definition) -> Deployed:
        """Makes a version; deploying the newest again changes nothing but its drawing, if that is another. Raises
        DefinitionError."""
        workflow, library = workflow_of(definition), self._commander.library
        before = library.newest(workflow.workflow)
        graph = await library.deploy(workflow)
        if graph.version != before:
            self._commander.changed()
        drawn = await library.draw_deployed(workflow, graph.version)
        return Deployed(graph.workflow_name, graph.version, graph.hash, drawn)

    async def workflows(self) -> list[Deployed]:
        """The newest version of each."""
        return [_deployed(document) for document in await self._commander.store.documents(KIND)]

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
        entity: EntityRef | str | None = None,
        version: int | None = None,
        run_id: str | None = None,
        trigger: Json = None,
    ) -> Run:
        """Starts a run, durably. A definition is deployed first. The same `key` gives the same run again. Raises
        CommandRefused for an input against the schema or an unknown workflow."""
        if not isinstance(workflow, str):
            deployed = await self.deploy(workflow)
            workflow, version = deployed.workflow, deployed.version
        about = entity_of(entity) if isinstance(entity, str) else entity
        named_start(key, run_id, tags, about)
        run = RunId(run_id) if run_id is not None else self._commander.new_run()
        command = c.StartRun(
            run=run,
            input=given("input", input),
            version=version or 0,
            entity=about,
            idempotency_key=key,
            trigger=given("trigger", trigger),
            seed=uuid_utils.uuid7().int & 0xFFFF_FFFF,
            tags=tuple(tags),
        )
        answer = await self._commander.ask(run, command, workflow, fresh=run_id is None)
        if answer.rejection is not None:
            raise CommandRefused(answer.rejection.kind, answer.rejection.message)
        return Run(self._commander, RunId(answer.result), workflow)

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
        statuses: Sequence[RunStatus | str] = (),
        tag: str | None = None,
        entity: str | None = None,
        parent: str | None = None,
        started_from: int | None = None,
        started_until: int | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[RunRow]:
        """Runs, newest first; `after` a run's id gives the next page. Raises CommandRefused(NOT_FOUND) if that run is
        gone meanwhile: begin again."""
        query = RunQuery(
            workflow=workflow,
            statuses=tuple(RunStatus(status) for status in statuses),
            tag=tag,
            entity=entity,
            parent=RunId(parent) if parent is not None else None,
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

    async def gates(self, run: str | None = None, limit: int = 100) -> list[GateRow]:
        """Gates somebody has still to answer, longest open first; among them runs that are out of time and wait for
        somebody to extend or abort them (`can` says what may be done)."""
        return await self._commander.store.find_gates(RunId(run) if run is not None else None, limit)

    async def complete_gate(
        self, run: str, visit: int, data: Json = None, *, by: str | None = None, force: bool = False
    ) -> None:
        """Answers a gate; see `Run.complete_gate`."""
        await self.run(run).complete_gate(TokenId(visit), data, by=by, force=force)

    # Schedules

    async def schedules(self) -> list[Schedule]:
        """Every schedule, by name."""
        documents = await self._commander.store.documents(SCHEDULE)
        return [msgspec.convert(document.body, Schedule) for document in documents]

    async def put_schedule(self, schedule: Schedule) -> None:
        """Creates or changes a schedule. Raises DefinitionError with every problem, CommandRefused for an unknown
        workflow."""
        problems = check_schedule(schedule)
        if problems:
            raise DefinitionError(problems)
        await self.definition(schedule.workflow)
        graph = await self._commander.library.graph(schedule.workflow)
        problem = graph.input_schema.problem(schedule.input or {}) if graph and graph.input_schema else None
        if problem is not None:
            raise DefinitionError([ScheduleProblem("input", f"{schedule.workflow!r} does not take it: {problem}")])
        body = msgspec.to_builtins(schedule)
        await self._commander.store.put_document(SCHEDULE, schedule.name, hash_of(body), body)
        self._commander.changed()

    async def remove_schedule(self, name: str) -> None:
        """Ends a schedule; runs it has started go on."""
        if not await self._commander.store.documents(SCHEDULE, name):
            raise CommandRefused("NOT_FOUND", f"there is no schedule {name!r}")
        await self._commander.store.put_document(SCHEDULE, name, "", None)
        self._commander.changed()

    # Queues

    async def queues(self) -> list[QueueView]:
        """Every queue with work, rules or workers of its own, by name. Raises CommandRefused where one engine executes
        everything."""
        return await queues_of(self._commander.store, await self.nodes())

    async def set_queue(self, queue: str, rules: QueueRules) -> None:
        """Replaces what is decided about a queue; rules without anything end them. Raises CommandRefused."""
        named("queue", queue)
        work_of(self._commander.store)
        await put_rules(self._commander.store, queue, rules)
        self._commander.changed()

    # What could not be delivered

    async def dead_letters(self, limit: int = 1_000) -> list[OutboxRow]:
        """What could not be delivered to the world outside, with the reason."""
        store = self._commander.store
        return await store.outbox(range(store.shards), limit=limit, parked=True)

    async def requeue(self, row: int) -> None:
        """Tries a dead letter again. Raises CommandRefused(NOT_FOUND)."""
        store = self._commander.store
        letters = await store.outbox(range(store.shards), row - 1, 1, parked=True)
        if not letters or letters[0].id != row:
            raise CommandRefused("NOT_FOUND", f"there is no dead letter {row}")
        await self._commander.revive(letters[0])

    async def artifact(self, digest: str) -> bytes | None:
        """The bytes an artifact's digest stands for."""
        return await self._commander.store.get_blob(digest)

    async def fsck(self, progress: Callable[[int], None] | None = None) -> Report:
        """Compares every history with what is kept beside it, and with the invariants; see `runtime.operate.fsck`."""
        return await check_store(self._commander.store, progress=progress)


def _deployed(document: StoredDocument) -> Deployed:
    return Deployed(document.name, document.version, document.hash)
