"""Queries for runs: a query's conditions as SQL. Must not write, and must not know threads."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from treadle.model.references import spellings_of
from treadle.store.port import RunQuery, RunRow
from treadle.store.rows import SHARD, each, run_rows
from treadle.store.seals import Tell
from treadle.store.sqlite.queries import SQL

NEVER = (1 << 63) - 1
RARE_MAX = 1_000
"""Runs of a tag that are looked at one by one."""
_FIELDS = (
    "run",
    "run_ending",
    "workflow",
    "idempotency_key",
    "item",
    "version",
    "tag",
    "parent",
    "started_from",
    "started_until",
)
"""Fields of a query, each with the SQL condition of the same name."""


def find_runs(connection: apsw.Connection, query: RunQuery, tell: Tell) -> list[RunRow]:
    if query.shard is not None and SHARD not in each(query.shard):
        return []
    key = query.idempotency_key
    of_item = key is not None and bool(connection.execute(SQL["has_item_with_key"], (key,)).get)
    sql, given = _runs_query(query, _rarest(connection, query), of_item)
    return run_rows(connection.execute(sql, given), connection.filename, tell)


def is_point(query: RunQuery) -> bool:
    """Whether at most one run can match, which one index finds in one step."""
    by_key = query.workflow is not None and query.idempotency_key is not None
    return query.run is not None or query.item is not None or by_key


def _rarest(connection: apsw.Connection, query: RunQuery) -> str | None:
    """Of several tags the one that fewest runs have, if it is rare: only its runs are looked at."""
    if len(set(query.tags)) < 2:
        return None
    counted = [(connection.execute(SQL["count_tagged"], (tag, RARE_MAX)).get, tag) for tag in query.tags]
    count, tag = min(counted)
    return tag if count < RARE_MAX else None


def _name_of(field: str, query: RunQuery, of_item: bool) -> str:
    """The condition of a field. By time alone there are better ones than beside other conditions. `of_item`: the key is
    one of an item of a batch."""
    if of_item and field == "idempotency_key":
        return "if_key_of_item"
    if field.startswith("started_") and query == RunQuery(
        version=query.version,
        started_from=query.started_from,
        started_until=query.started_until,
        newest_first=query.newest_first,
        beyond=query.beyond,
        down_to=query.down_to,
        text=query.text,
        limit=query.limit,
    ):
        return f"if_{field.removeprefix('started_')}_bounded"
    return f"if_{field}"


def _runs_query(query: RunQuery, rarest: str | None, of_item: bool) -> tuple[str, dict[str, Any]]:
    given = {name: value for name in _FIELDS if (value := getattr(query, name)) is not None}
    conditions = [SQL[_name_of(name, query, of_item)] for name in given]
    if query.entity is not None:
        conditions.append(SQL["if_entity"])
        given["entity"], given["entity_id"] = spellings_of(query.entity)
    if len(set(query.statuses)) == 1:  # an index gives them in order
        conditions.append(SQL["if_status"])
        given["status"] = query.statuses[0].value
    elif query.statuses:
        conditions.append(SQL["if_statuses"])
        given["statuses"] = msgspec.json.encode(query.statuses).decode()
    if len(set(query.tags)) == 1 and query.tag is None:
        is_all = query.newest_first and query == RunQuery(
            tags=query.tags, newest_first=True, beyond=query.beyond, limit=query.limit
        )
        conditions.append(SQL["if_newest_tagged" if is_all else "if_tag"])
        given["tag"] = query.tags[0]
        if is_all:
            given.setdefault("beyond", NEVER)
    elif query.tags:
        conditions.append(SQL["if_tags"])
        given["tags"] = msgspec.json.encode(query.tags).decode()
        if rarest is not None and query.tag is None:
            conditions.append(SQL["if_tag"])
            given["tag"] = rarest
    if query.text is not None:
        conditions.append(SQL["if_text" if query.text.isascii() else "if_text_beyond_ascii"])
        given["text"] = query.text.lower()
    if query.beyond is not None:
        conditions.append(SQL["if_not_beyond" if query.newest_first else "if_beyond"])
        given["beyond"] = query.beyond
    if query.down_to is not None:
        conditions.append(SQL["if_down_to"])
        given["down_to"] = query.down_to
    if query.parents:
        conditions.append(SQL["if_parents"])
        given["parents"] = msgspec.json.encode(query.parents).decode()
    if query.busy is not None:
        conditions.append(SQL["if_busy" if query.busy else "if_idle"])
    if query.after is not None:
        conditions.append(SQL["if_before" if query.newest_first else "if_after"])
        given["after"] = query.after
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    direction = "DESC" if query.newest_first else "ASC"
    given["limit"] = query.limit
    return f"{SQL['find_runs']}{where} ORDER BY id {direction} LIMIT :limit", given
