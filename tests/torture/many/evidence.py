"""Gathers what the judge looks at, from the database itself, after everything has stopped."""

from __future__ import annotations

from pathlib import Path

from tests.torture import journal
from tests.torture.engine import CLIENT, WORK
from tests.torture.evidence import damage_of, runs_of
from tests.torture.journal import Line
from tests.torture.many.replaying import REPLAYS
from tests.torture.many.roles import FAULTS
from tests.torture.verdict import Evidence
from treadle.store.port import Store
from treadle.store.postgres import PostgresStore


class ManyEvidence(Evidence, kw_only=True):
    """Beside what every judge looks at: what was done to whom."""

    faults: list[Line]
    replays: int
    ahead: int
    """The database's time minus the clock all processes share, in milliseconds."""


async def gather(place: Path, database: str, ahead: int) -> ManyEvidence:
    """Of a torture that has ended; `database` leads there without the proxy."""
    async with await PostgresStore.open(database) as store:
        runs = await runs_of(store)
        return ManyEvidence(
            client=journal.read(place / CLIENT),
            work=journal.read(place / WORK),
            deaths={},
            runs=runs,
            histories={run: await store.history(row.run) for run, row in runs.items()},
            left=await left_over(store),
            damage=await damage_of(store),
            faults=journal.read(place / FAULTS),
            replays=len(journal.read(place / REPLAYS)),
            ahead=ahead,
        )


async def left_over(store: Store) -> dict[str, int]:
    """Rows that should be gone when every run has ended."""
    shards = range(store.shards)
    return {
        "the outbox": len(await store.outbox(shards)),
        "the dead letters": len(await store.outbox(shards, parked=True)),
        "the inbox": len(await store.inbox(shards)),
        "the timers": len(await store.timers(shards)),
        "the gates": len(await store.find_gates()),
    }
