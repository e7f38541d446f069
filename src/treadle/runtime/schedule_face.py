"""Schedules as people use them: list, change, look ahead, fire by hand. `Client` has these methods.

Owns the words. Carrying schedules out is the scheduler's, deciding about them the plan's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from treadle.errors import CommandRefused, DefinitionError
from treadle.model.definition import Workflow
from treadle.runtime.command.commander import Commander
from treadle.runtime.schedule.definition import KIND as SCHEDULE
from treadle.runtime.schedule.definition import Schedule, ScheduleProblem, check_schedule, hash_of, tag_of
from treadle.runtime.schedule.times import next_due, starts_at
from treadle.store.port import RunQuery, RunRow

if TYPE_CHECKING:
    from treadle.runtime.run import Run


class ScheduleFace:
    """See the module's docstring."""

    _commander: Commander

    if TYPE_CHECKING:

        async def definition(self, workflow: str, version: int | None = None) -> Workflow: ...

        start: Any

    async def schedules(self) -> list[Schedule]:
        """Every schedule, by name."""
        documents = await self._commander.store.documents(SCHEDULE)
        return [msgspec.convert(document.body, Schedule) for document in documents]

    async def schedule(self, name: str) -> Schedule:
        """One schedule. Raises CommandRefused(NOT_FOUND)."""
        documents = await self._commander.store.documents(SCHEDULE, name)
        if not documents:
            raise CommandRefused("NOT_FOUND", f"there is no schedule {name!r}")
        return msgspec.convert(documents[0].body, Schedule)

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
        await self.schedule(name)
        await self._commander.store.put_document(SCHEDULE, name, "", None)
        self._commander.changed()

    async def fire_schedule(self, name: str, *, by: str = "operator", key: str | None = None) -> Run:
        """Starts the workflow of a schedule now, beside its times and whatever is running. Raises CommandRefused."""
        schedule = await self.schedule(name)
        trigger = {"schedule": name, "fired_by": by}
        run: Run = await self.start(schedule.workflow, schedule.input, tags=(tag_of(name),), trigger=trigger, key=key)
        return run

    async def schedule_runs(self, name: str, limit: int = 10) -> list[RunRow]:
        """The newest runs of a schedule."""
        return await self._commander.store.find_runs(RunQuery(tag=tag_of(name), newest_first=True, limit=limit))

    async def upcoming(self, name: str, *, after: int | None = None, limit: int = 10) -> list[tuple[int, int]]:
        """The next due times of a schedule, each with the moment at which it starts; none while it is paused. Raises
        CommandRefused(NOT_FOUND)."""
        schedule = await self.schedule(name)
        due: int | None = after if after is not None else self._commander.clock.now()
        found: list[tuple[int, int]] = []
        while not schedule.paused and len(found) < limit and (due := next_due(schedule, due or 0)) is not None:
            found.append((due, starts_at(schedule, due)))
        return found
