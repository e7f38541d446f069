"""Living through days on a database: the calendar turns when a test says so."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from typing import Any

import asyncpg

from tests.contract.making import RUN, Spoken, commit
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import Batch
from treadle.store.postgres import PostgresStore, days

BEFORE = 5


class Life:
    """A database whose history began five days ago, and a way to live through the days since."""

    def __init__(self, dsn: str, runner: asyncio.Runner) -> None:
        self.dsn = dsn
        self._runner = runner
        self.run = runner.run
        today = datetime.now(UTC).date()
        self.day = today - timedelta(days=BEFORE)
        bounds = f"FROM (MINVALUE) TO ('{self.day + days.DAY}')"
        self.store: Any = self.open()
        self.ask("ALTER TABLE history DETACH PARTITION history_first")
        self.ask(f"ALTER TABLE history ATTACH PARTITION history_first FOR VALUES {bounds}")
        self.ask(f"UPDATE calendar SET day = '{self.day}'")
        self.store.store._days._look_at = float("inf")  # midnight comes when the test says so

    def open(self) -> Any:
        opening = PostgresStore.open(self.dsn, shards=1, payload_max=200, connections_max=4)
        return Spoken(self._runner.run(opening), self._runner)

    def ask(self, question: str) -> list[Any]:
        async def asked() -> list[Any]:
            connection = await asyncpg.connect(self.dsn)
            try:
                return [tuple(row) for row in await connection.fetch(question)]
            finally:
                await connection.close()

        return self._runner.run(asked())

    def next_day(self) -> date:
        async def turn() -> None:
            connection = await asyncpg.connect(self.dsn)
            async with connection.transaction():
                await days.make_partition(connection, self.day)
                await connection.execute("UPDATE calendar SET day = $1", self.day)
            await connection.close()

        self.day += days.DAY
        self._runner.run(turn())
        return self.day

    def partitions(self) -> list[str]:
        found = self.ask("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'history'::regclass")
        return sorted(name for (name,) in found)

    def places(self, run: RunId) -> list[str]:
        return [
            name
            for (name,) in self.ask(f"SELECT tableoid::regclass::text FROM history WHERE run = '{run}' ORDER BY seq")
        ]

    def sweep(self) -> None:
        self.store.store._days._sweep_at = 0.0
        self._runner.run(self.store.store._days.sweep())


def step(seq: int, run: RunId = RUN, status: RunStatus = RunStatus.RUNNING) -> Batch:
    return Batch([commit(seq, e.Custom(seq + 1, seq, "x"), run=run, status=status)])


def name_of(day: date) -> str:
    return f"history_{day:%Y%m%d}"
