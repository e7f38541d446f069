"""Queries for runs: a query's conditions as SQL, and the order that leads the planner to their index. Must not write.

Statements are planned once for all values (`force_generic_plan`), perhaps while a table is small or before the server
has counted what is in it. Left alone, the planner takes a rare value for a common one and reads the newest runs until
enough of them fit, which can be the whole table; or a common value for a rare one, and sorts a million runs for a page
of a hundred. So it is decided here what leads a list:

- An id, a key, an entity or a parent: few runs, found by their index.
- A rare tag: its runs are looked up first.
- A workflow or a status: the index that begins with it, which has the order of the list, so that a page reads about as
  many runs as it shows. Several statuses are several such lists, put together. Where both are given, the rarer one at
  the place where the page begins.
- Else the newest runs, until enough of them fit.

For a time the numbers between which runs of it lie are looked up first, and only these runs are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import asyncpg
from msgspec import Struct

from treadle.model.references import spellings_of
from treadle.model.states import RunStatus
from treadle.store.port import RunQuery, RunRow
from treadle.store.postgres.columns import texts
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.values import DATABASE
from treadle.store.rows import each, run_rows
from treadle.store.seals import Tell

_FIELDS = (
    "workflow",
    "idempotency_key",
    "item",
    "run",
    "version",
    "run_ending",
    "tag",
    "parent",
    "shard",
    "started_from",
    "started_until",
)
"""Fields of a query, each with the SQL condition of the same name."""

RARE_MAX = 2_000
"""Runs of a tag that are looked up one by one."""
PROBED = 1_000
"""Of a workflow and a status, the one whose run in this place of its list is farther on is the rarer one."""
EVER = -(1 << 62), 1 << 62


class _Lead(Struct, frozen=True):
    """One value whose index has the order of a list."""

    name: str
    """The condition."""
    column: str
    """What the index has before the number; empty: nothing."""
    values: tuple[str, ...] = ()
    """Before the two numbers."""

    def order(self, direction: str) -> str:
        return f"{self.column} {direction}, created {direction}" if self.column else f"created {direction}"


async def find_runs(connection: asyncpg.Connection, query: RunQuery, tell: Tell) -> list[RunRow]:
    numbers = await _numbers(connection, query)
    if numbers is None:
        return []
    rare = await _rare_tag(connection, query)
    leads = await _leads(connection, query, numbers) if rare is None else []
    sql, given = _runs_query(query, numbers, rare, leads)
    return run_rows(await connection.fetch(sql, *given), DATABASE, tell)


async def _numbers(connection: asyncpg.Connection, query: RunQuery) -> tuple[int, int] | None:
    """The wanted runs have numbers from the first to before the second. None: there are none."""
    first, until = EVER
    if query.started_from is not None or query.started_until is not None:
        begin = query.started_from if query.started_from is not None else EVER[0]
        end = query.started_until if query.started_until is not None else EVER[1]
        if not _is_point(query):
            first, until = await connection.fetchrow(SQL["started_blocks"], begin, end)
    behind = [] if query.beyond is None else [query.beyond]
    if query.after is not None:
        number = await connection.fetchval(SQL["number_of"], query.after)
        if number is None:
            return None
        behind.append(number)
    if query.newest_first:
        until = min([until, *behind])
    else:
        first = max([first, *(number + 1 for number in behind)])
    if query.down_to is not None:
        first = max(first, query.down_to)
    return (first, until) if first < until else None


def _is_point(query: RunQuery) -> bool:
    """Whether an id or a key names the run."""
    return query.run is not None or query.item is not None or query.idempotency_key is not None


async def _rare_tag(connection: asyncpg.Connection, query: RunQuery) -> str | None:
    """The tag that fewest runs have, if they are few."""
    tags = {*query.tags, query.tag} - {None}
    if not tags or _is_point(query):
        return None
    counted = [(await connection.fetchval(SQL["count_tagged"], tag, RARE_MAX), tag) for tag in tags]
    count, tag = min(counted)
    return tag if count < RARE_MAX else None


async def _leads(connection: asyncpg.Connection, query: RunQuery, numbers: tuple[int, int]) -> list[_Lead]:
    """What leads a list: one workflow, or some statuses. None of them: something else has an index, or nothing has."""
    of_few = (query.entity, query.parent, *query.parents)
    if _is_point(query) or query.busy or any(one is not None for one in of_few):
        return []
    statuses = [_lead_of_status(status) for status in sorted(set(query.statuses))]
    if query.workflow is None:
        return statuses
    workflow = _Lead("if_led_by_workflow", "workflow", (query.workflow,))
    if not statuses:
        return [workflow]
    if numbers[1] - numbers[0] <= PROBED:
        return statuses
    by_workflow = await _reach(connection, query, numbers, [workflow])
    return statuses if await _reach(connection, query, numbers, statuses) >= by_workflow else [workflow]


def _lead_of_status(status: RunStatus) -> _Lead:
    if status == RunStatus.COMPLETED:  # it has an index of its own
        return _Lead("if_led_by_completed", "")
    return _Lead("if_led_by_status", "status", (status.value,))


async def _reach(
    connection: asyncpg.Connection, query: RunQuery, numbers: tuple[int, int], leads: Sequence[_Lead]
) -> int:
    """How far a list goes with its first PROBED runs, of several the shortest one: the farther, the rarer."""
    direction = _direction(query)
    reaches = []
    for lead in leads:
        condition, given = SQL[lead.name], [*lead.values, *numbers, PROBED]
        sql = f"{SQL['find_number']} WHERE {condition} ORDER BY {lead.order(direction)} OFFSET ${len(given)} LIMIT 1"
        number = await connection.fetchval(sql, *given)
        reaches.append(EVER[1] if number is None else -number if query.newest_first else number)
    return min(reaches)


def _runs_query(
    query: RunQuery, numbers: tuple[int, int], rare: str | None, leads: Sequence[_Lead]
) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    given: list[Any] = []

    def add(name: str, *values: Any) -> None:
        conditions.append(numbered(SQL[name], len(given)))
        given.extend(values)

    by_key = query.workflow is not None and query.idempotency_key is not None
    if by_key:  # a run found by its key has them already; repeated conditions mislead the planner
        add("if_key", query.workflow, query.idempotency_key)
    if rare is not None:
        add("if_rarely_tagged", rare, RARE_MAX)
    by_workflow = any(lead.column == "workflow" for lead in leads)
    by_status = bool(leads) and not by_workflow
    for name in _FIELDS[2:] if by_key else _FIELDS:
        value = getattr(query, name)
        if value is None or (name == "workflow" and by_workflow):
            continue
        add("if_workflow_too" if name == "workflow" and by_status else f"if_{name}", _given(name, value))
    if query.entity is not None:
        add("if_entity", *spellings_of(query.entity))
    if query.statuses and not by_status:
        add("if_status_among", sorted({status.value for status in query.statuses}))
    if query.tags:
        if len(set(query.tags)) == 1:
            add("if_tag", query.tags[0])
        else:
            add("if_tags", texts(sorted(set(query.tags))))
    if query.text is not None:
        add("if_text", query.text.lower())
    if query.parents:
        add("if_parents", list(query.parents))
    if query.busy is not None:
        add("if_busy" if query.busy else "if_idle")
    if not leads:
        for name, number, never in zip(("if_from_number", "if_until_number"), numbers, EVER, strict=True):
            if number != never:
                add(name, number)
    return _joined(query, conditions, given, [(lead, [*lead.values, *numbers]) for lead in leads])


def _joined(
    query: RunQuery, conditions: list[str], given: list[Any], leads: Sequence[tuple[_Lead, list[Any]]]
) -> tuple[str, list[Any]]:
    """The whole statement: one list for each lead."""
    direction = _direction(query)
    given.append(query.limit)
    end = f"LIMIT ${len(given)}"
    lists = []
    for lead, values in leads:
        where = " AND ".join([numbered(SQL[lead.name], len(given)), *conditions])
        given += values
        lists.append(f"{SQL['find_runs']} WHERE {where} ORDER BY {lead.order(direction)} {end}")
    if not lists:
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        lists.append(f"{SQL['find_runs']}{where} ORDER BY created {direction} {end}")
    if len(lists) == 1:
        return lists[0], given
    together = " UNION ALL ".join(f"({one})" for one in lists)
    return f"{together} ORDER BY created {direction} {end}", given


def _direction(query: RunQuery) -> str:
    return "DESC" if query.newest_first else "ASC"


def _given(name: str, value: Any) -> Any:
    return each(value) if name == "shard" else value


def numbered(condition: str, known: int) -> str:
    """A condition with its parameters numbered after those of the conditions before it."""
    return re.sub(r"\$(\d)", lambda match: f"${known + int(match[1])}", condition)
