"""Columns that travel as the text of an array arrive as they were."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import asyncpg
import pytest

from tests.contract.making import OTHER, RUN, begin, commit, on_postgres
from tests.postgres import Database
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId, TimerId
from treadle.store.port import Batch
from treadle.store.postgres.columns import handed, literal
from treadle.store.postgres.connect import prepare, reach

ODD = [
    *("", " ", "a b", "NULL", "null", "{}", "{a,b}", "a,b", ",", '"', '""', "\\", '\\"', "\\\\", "\\n", "'", "''"),
    *("line\nline", "\t", "\r\n", "\x07", "\x7f", "\0", "a\0b", "\1", "\1\2", "\0\0\1", "→", "\u2028", "😀", "é"),
]


@pytest.fixture
def store(database: Database, runner: asyncio.Runner) -> Iterator[Any]:
    yield from on_postgres(database, runner)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", ODD),
        *(("text", [odd]) for odd in ODD),
        ("text", ["plain", "as", "ids", "are"]),
        ("text", [None, "a", None]),
        ("text", [None, '"\n', None]),
        ("bigint", [0, -1, 2**63 - 1, -(2**63), None]),
        ("integer", [0, -1, 2**31 - 1, None]),
        ("boolean", [True, False, None]),
        ("text", []),
    ],
)
def test_a_literal_is_read_as_what_was_written(
    kind: str, values: Sequence[Any], database: Database, runner: asyncio.Runner
) -> None:
    async def back() -> list[Any]:
        connection = await reach(database.dsn)
        try:
            await prepare(connection)
            question = f"SELECT one FROM unnest($1::text::{kind}[]) WITH ORDINALITY AS them (one, place) ORDER BY place"
            return [row[0] for row in await connection.fetch(question, literal(values))]
        finally:
            await connection.close()

    assert runner.run(back()) == values


def test_a_statement_says_which_columns_it_wants_as_text() -> None:
    statement = "INSERT INTO t SELECT * FROM unnest($1::text::text[], $2::bytea[], $3::text[], $10::text::bigint[])"
    rows = [("a", None, "b", 1), ("c", b"d", "e\0", 2)]
    assert handed(statement, rows) == ['{"a","c"}', (None, b"d"), ["b", "e\1\2"], (1, 2)]
    assert handed(statement.replace("$10", "$4"), rows)[3] == "{1,2}"


def test_a_batch_of_odd_names_is_written_and_moved_on(store: Any) -> None:
    fence = store.held()
    runs = [RunId(f"r{odd}") for odd in ODD]
    born = [begin(run, entity=odd, tags=(odd,), key=odd).commits[0] for run, odd in zip(runs, ODD, strict=True)]
    store.commit(Batch(born), fence)
    store.commit(Batch([commit(1, e.Custom(2, 7, "x"), run=run) for run in runs]), fence)
    for run, odd in zip(runs, ODD, strict=True):
        assert store.runs(tag=odd) == store.runs(workflow="w", idempotency_key=odd) == [run]
        assert not odd or store.runs(entity=f"order/{odd}") == [run]
        assert [event.seq for event in store.history(run)] == [1, 2]


def test_a_number_no_database_can_keep_refuses_its_batch_and_nothing_else(store: Any) -> None:
    fence = store.held()
    store.commit(Batch([*begin(RUN).commits, *begin(OTHER).commits]), fence)
    beyond = commit(1, e.Custom(2, 7, "x"), effects=(f.SetTimer(TimerId(1), 2**70),))
    with pytest.raises(asyncpg.DataError):
        store.commit(Batch([beyond, commit(1, e.Custom(2, 7, "x"), run=OTHER)]), fence)
    assert [len(store.history(run)) for run in (RUN, OTHER)] == [1, 1]
    store.commit(Batch([commit(1, e.Custom(2, 7, "x"), run=run) for run in (RUN, OTHER)]), fence)
