"""Queries for runs: a query's conditions as SQL, and the order that leads the planner to their index. Must not write.

Statements are planned once for all values (`force_generic_plan`), so the planner takes every value for a common one and
reads the newest runs until enough of them fit: of a rare value that is the whole table. A list by workflow is therefore
asked as a range of one value, in the order of its index. Runs of a rare tag or of a key are looked up first. For a time
the blocks of runs that have some of it are looked up first, and only these are read.
"""

from __future__ import annotations

import re
from typing import Any

import asyncpg

from treadle.model.references import spellings_of
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
EVER = -(1 << 62), 1 << 62


async def find_runs(connection: asyncpg.Connection, query: RunQuery, tell: Tell) -> list[RunRow]:
    sql, given = _runs_query(query, await _rare(connection, query))
    return run_rows(await connection.fetch(sql, *given), DATABASE, tell)


async def _rare(connection: asyncpg.Connection, query: RunQuery) -> tuple[str, tuple[Any, ...]] | None:
    """The condition of a list that few runs meet, and its values: these runs are looked up first."""
    if query.run is not None or query.item is not None or query.idempotency_key is not None:
        return None
    tags = {*query.tags, query.tag} - {None}
    if tags:
        counted = [(await connection.fetchval(SQL["count_tagged"], tag, RARE_MAX), tag) for tag in tags]
        count, tag = min(counted)
        return ("if_rarely_tagged", (tag, RARE_MAX)) if count < RARE_MAX else None
    if query.started_from is None and query.started_until is None:
        return None
    begin = query.started_from if query.started_from is not None else EVER[0]
    end = query.started_until if query.started_until is not None else EVER[1]
    return "if_within", tuple(await connection.fetchrow(SQL["started_blocks"], begin, end))


def _runs_query(query: RunQuery, rare: tuple[str, tuple[Any, ...]] | None) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    given: list[Any] = []

    def add(name: str, *values: Any) -> None:
        conditions.append(numbered(SQL[name], len(given)))
        given.extend(values)

    by_key = query.workflow is not None and query.idempotency_key is not None
    if by_key:  # a run found by its key has them already; repeated conditions mislead the planner
        add("if_key", query.workflow, query.idempotency_key)
    if rare is not None:
        add(rare[0], *rare[1])
    ordered = _ordered(query) if rare is None else None
    for name in _FIELDS[2:] if by_key else _FIELDS:
        if (value := getattr(query, name)) is not None:
            add(f"if_{name}" if name != ordered else f"if_only_{name}", each(value) if name == "shard" else value)
    if query.entity is not None:
        add("if_entity", *spellings_of(query.entity))
    if query.statuses:
        names = ", ".join(f"'{status.value}'" for status in sorted(set(query.statuses)))
        conditions.append(SQL["if_statuses"].replace("$1", names))
    if query.tags:
        if len(set(query.tags)) == 1:
            add("if_tag", query.tags[0])
        else:
            add("if_tags", texts(sorted(set(query.tags))))
    if query.text is not None:
        add("if_text", query.text.lower())
    if query.beyond is not None:
        add("if_not_beyond" if query.newest_first else "if_beyond", query.beyond)
    if query.down_to is not None:
        add("if_down_to", query.down_to)
    if query.parents:
        add("if_parents", list(query.parents))
    if query.busy is not None:
        add("if_busy" if query.busy else "if_idle")
    if query.after is not None:
        add("if_before" if query.newest_first else "if_after", query.after)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    given.append(query.limit)
    direction = "DESC" if query.newest_first else "ASC"
    first = f"{ordered} {direction}, " if ordered is not None else ""
    return f"{SQL['find_runs']}{where} ORDER BY {first}created {direction} LIMIT ${len(given)}", given


def _ordered(query: RunQuery) -> str | None:
    """The column whose index a list is read in, where it is the only condition that has one."""
    alone = query.newest_first and not (query.tags or query.statuses or query.text or query.shard is not None)
    others = (query.run, query.item, query.idempotency_key, query.tag, query.entity, query.parent, query.started_from)
    if not alone or query.parents or query.started_until is not None or any(one is not None for one in others):
        return None
    return "workflow" if query.workflow is not None else None


def numbered(condition: str, known: int) -> str:
    """A condition with its parameters numbered after those of the conditions before it."""
    return re.sub(r"\$(\d)", lambda match: f"${known + int(match[1])}", condition)
