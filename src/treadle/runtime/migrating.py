"""Other versions for runs: one run, some, or all that a filter finds, with a report run by run (6.5).

Owns which runs are asked, and the shape of the report. Must not decide anything: each run makes its own plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from treadle.errors import CommandRefused, EngineStopped
from treadle.model import commands as c
from treadle.model.errors import FieldProblem
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.command.commander import Commander
from treadle.runtime.command.finding import unknown
from treadle.runtime.command.once import ask
from treadle.runtime.given import entity_of
from treadle.store.port import RunQuery, RunRow

Json = Any
AT_ONCE = 32
"""Runs that are asked at the same time: enough to share commits, too few to push others aside."""
PAGE = 500
LIVE = ("running", "paused", "queued")
MIGRATABLE = (*LIVE, "failed")
_FILTERS = {"workflow", "version", "tag", "tags", "entity", "parent", "key", "started_from", "started_until", "text"}


class Migration(Struct, frozen=True):
    """What became of one run that was asked to go on under another version."""

    run: RunId
    from_: int = field(name="from")
    """The version it had."""
    to: int
    outcome: Literal["migrated", "possible", "unchanged", "refused", "kept"]
    """`possible`: nothing is in the way, and nothing was changed (a dry run). `unchanged`: it has that version.
    `kept`: no engine runs, and the next one decides."""
    kind: str | None = None
    message: str | None = None
    """Why it was refused."""
    obstacles: tuple[FieldProblem, ...] = ()
    """Everything in the way, an entry each: where it is, and what it is."""

    @property
    def ok(self) -> bool:
        return self.outcome != "refused"


async def migrate_run(
    commander: Commander, run: RunId, to: int, nodes: Mapping[str, str], *, dry_run: bool, by: str
) -> Migration:
    """Asks one run. Raises CommandRefused with everything in the way, as `problems`."""
    before = await _version(commander, run)
    if before is None:
        raise await unknown(commander.store, run)
    answer = await ask(commander, run, c.MigrateRun(to, dict(nodes), dry_run, by))
    if answer.rejection is not None:
        raise CommandRefused(answer.rejection.kind, answer.rejection.message, answer.rejection.problems)
    outcome: Literal["migrated", "possible", "unchanged"] = "possible" if dry_run else "migrated"
    is_there = before == to and not (answer.is_again and answer.result)  # the same request may have brought it there
    return Migration(run, before, to, "unchanged" if is_there else outcome)


async def reported(
    commander: Commander, run: RunId, to: int, nodes: Mapping[str, str], *, dry_run: bool, by: str
) -> Migration:
    """As `migrate_run`, with a refusal as a report."""
    before = await _version(commander, run) or 0
    try:
        return await migrate_run(commander, run, to, nodes, dry_run=dry_run, by=by)
    except CommandRefused as refused:
        why, entries = refused.message, refused.problems
        return Migration(run, before, to, "refused", kind=refused.kind, message=why, obstacles=entries)
    except EngineStopped as stopped:
        return Migration(run, before, to, "kept", kind="NO_ENGINE", message=str(stopped))


async def _version(commander: Commander, run: RunId) -> int | None:
    rows = await commander.store.find_runs(RunQuery(run=run))
    return rows[0].version if rows else None


class Migrating:
    """See the module's docstring. `Client` is one."""

    _commander: Commander

    async def migrate(
        self,
        runs: str | Sequence[str] | Mapping[str, Json],
        to: int,
        nodes: Mapping[str, str] | None = None,
        *,
        dry_run: bool = False,
        by: str = "operator",
    ) -> list[Migration]:
        """Lets runs go on under version `to` of their workflow: one run or several by their ids, or those that a filter
        finds now, such as `{"workflow": "orders", "version": 1}`; a filter takes the fields of `runs` and needs a
        workflow. `nodes` says which nodes take the place of others. Returns a report for each run, in order; a run that
        refuses does not stop the others. A dry run only says what is in the way."""
        names = await self._chosen(runs, to)
        found: list[Migration] = []
        for begin in range(0, len(names), AT_ONCE):
            part = names[begin : begin + AT_ONCE]
            found += await asyncio.gather(
                *(reported(self._commander, RunId(name), to, nodes or {}, dry_run=dry_run, by=by) for name in part)
            )
        return found

    async def migrate_deployed(self, workflow: str, version: int) -> tuple[Migration, ...]:
        """Tries the newest version for all live runs of older ones (`on_deploy: migrate_if_safe`)."""
        rows = await self._rows({"workflow": workflow, "statuses": LIVE})
        older = [row.run for row in rows if row.version < version]
        return tuple(await self.migrate(older, version, by="deploy")) if older else ()

    async def _chosen(self, runs: str | Sequence[str] | Mapping[str, Json], to: int) -> list[str]:
        if isinstance(runs, str):
            return [runs]
        if not isinstance(runs, Mapping):
            return list(dict.fromkeys(runs))
        if not runs.get("workflow"):
            raise ValueError("a filter of runs to be migrated names a workflow: versions are numbered by workflow")
        return [row.run for row in await self._rows(runs) if row.version != to]

    async def _rows(self, asked: Mapping[str, Json]) -> list[RunRow]:
        """The runs of a filter as they are now, oldest first."""
        unknown = set(asked) - _FILTERS - {"statuses"}
        if unknown:
            raise ValueError(
                f"runs are not filtered by {', '.join(sorted(unknown))}; by: {', '.join(sorted(_FILTERS))}"
            )
        found: list[RunRow] = []
        while True:
            query = _query(asked, found[-1].run if found else None)
            rows = await self._commander.store.find_runs(query)
            found += rows
            if len(rows) < PAGE:
                return sorted(found, key=lambda row: (row.started, row.run))


def _query(asked: Mapping[str, Json], after: RunId | None) -> RunQuery:
    known = {status.value for status in RunStatus}
    entity = asked.get("entity")
    return RunQuery(
        workflow=asked.get("workflow"),
        version=asked.get("version"),
        statuses=tuple(RunStatus(status) for status in asked.get("statuses") or MIGRATABLE if status in known),
        tag=asked.get("tag"),
        tags=tuple(asked.get("tags") or ()),
        entity=entity_of(entity).address if entity is not None else None,
        parent=asked.get("parent"),
        idempotency_key=asked.get("key"),
        started_from=asked.get("started_from"),
        started_until=asked.get("started_until"),
        text=asked.get("text"),
        after=after,
        limit=PAGE,
    )
