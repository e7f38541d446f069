"""Gates of a file that an older Treadle has written: their rows have no columns that lists are narrowed down by."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw

from treadle.language import load_text
from treadle.model.references import Person
from treadle.runtime.engine import Engine
from treadle.store.port import GateQuery
from treadle.store.sqlite import SqliteStore

ASKING = "workflow: w\nnodes: {a: {action: {kind: human, title: Sign, assign: {groups: [finance]}}}}\n"


def test_gates_from_before_the_columns_are_found_all_the_same(tmp_path: Path) -> None:
    place = tmp_path / "treadle.db"

    async def play() -> None:
        async with Engine(place) as engine:
            await engine.start(load_text(ASKING, "w").require(), {})
        connection = apsw.Connection(str(place))
        connection.execute("UPDATE gates SET people = NULL, words = NULL")
        connection.close()
        store = await SqliteStore.open(place)
        try:
            for query in (
                GateQuery(mine=Person("ann", ("finance",))),
                GateQuery(assignee="finance"),
                GateQuery(text="SIGN"),
            ):
                assert len(await store.find_gates(query)) == 1
            for query in (GateQuery(mine=Person("finance")), GateQuery(assignee="ann"), GateQuery(text="other")):
                assert await store.find_gates(query) == []
        finally:
            await store.close()

    asyncio.run(play())
