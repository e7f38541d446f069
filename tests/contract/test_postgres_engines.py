"""Many engines on one database: shards keep them apart, and where they meet one of them is first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from tests.contract.making import ONE, TOKEN, WORK, Spoken, begin, commit, on_postgres, started
from tests.postgres import Database, new_database
from treadle.errors import StoreConflict
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import Batch, InboxAnswer, InboxRequest
from treadle.store.postgres import PostgresStore
from treadle.store.rows import SHARD, shard_of

NAMES = [RunId(f"run-{i}") for i in range(200)]


@pytest.fixture
def store(database: Database, runner: asyncio.Runner) -> Iterator[Any]:
    yield from on_postgres(database, runner)


@pytest.fixture
def spread(runner: asyncio.Runner) -> Iterator[Any]:
    """A store of eight shards."""
    with new_database() as dsn:
        made = Spoken(runner.run(PostgresStore.open(dsn, shards=8)), runner)
        yield made
        made.close()


def test_runs_belong_to_shards_and_a_fence_reaches_no_further(spread: Any) -> None:
    homes = {shard_of(run, 8) for run in NAMES}
    assert homes == set(range(8))
    fences = {shard: spread.lease(shard, "a", 0, 100) for shard in homes}
    for run in NAMES[:20]:
        home = shard_of(run, 8)
        with pytest.raises(StoreConflict, match=f"belongs to shard {home}") as refused:
            spread.commit(begin(run), fences[(home + 1) % 8])
        assert refused.value.kind == "LEASE_CONFLICT"
        (row,) = spread.commit(begin(run, WORK), fences[home])
        assert row in spread.outbox(home)
        spread.submit(InboxRequest(f"q-{run}", run, c.PauseRun(), 0))
        assert f"q-{run}" in [request.id for request in spread.inbox(home)]
    found = [run for shard in homes for run in spread.runs(shard=shard)]
    assert sorted(found) == sorted(NAMES[:20])
    assert spread.runs() == NAMES[:20], "in order of creation, whatever the shard"


def test_of_engines_that_start_one_key_at_once_one_wins(spread: Any, runner: asyncio.Runner) -> None:
    async def race() -> list[Any]:
        store = spread.store
        fences = [await store.lease(shard, "a", 0, 100) for shard in range(8)]
        batches = [(begin(run, key="k"), fences[store.shard_of(run)]) for run in NAMES[:8]]
        return await asyncio.gather(*(store.commit(*batch) for batch in batches), return_exceptions=True)

    outcomes = runner.run(race())
    lost = [outcome for outcome in outcomes if isinstance(outcome, StoreConflict)]
    assert [conflict.kind for conflict in lost] == ["DUPLICATE"] * 7
    assert len(spread.runs()) == len(spread.runs(workflow="w", idempotency_key="k")) == 1


def test_nodes_that_deploy_at_once_agree_on_the_versions(store: Any, runner: asyncio.Runner) -> None:
    async def deploy() -> list[Any]:
        return await asyncio.gather(
            *(store.store.put_document("workflow", "w", f"h{i % 3}", {"i": i}) for i in range(12))
        )

    made = runner.run(deploy())
    versions = {(document.version, document.hash) for document in made}
    assert sorted(version for version, _ in versions) == list(range(1, len(versions) + 1))


def test_an_outbox_read_while_others_commit_misses_nothing(store: Any, runner: asyncio.Runner) -> None:
    """Numbers are given before commit; the lock on the lease puts the commits of a shard in a row all the same."""
    fence = store.held()

    async def tail() -> list[int]:
        writing = asyncio.gather(*(store.store.commit(begin(run, WORK, WORK), fence) for run in NAMES[:40]))
        seen: list[int] = []
        while not writing.done() or len(seen) < 80:
            rows = await store.store.outbox(SHARD, after=seen[-1] if seen else 0)
            seen += [row.id for row in rows]
        await writing
        return seen

    seen = runner.run(tail())
    assert len(seen) == 80
    assert seen == sorted(set(seen))


def test_a_commit_is_one_round_trip_whatever_is_in_it(
    spread: Any, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    fences = [spread.lease(shard, "a", 0, 100) for shard in range(8)]
    spread.submit(InboxRequest("q", NAMES[0], c.PauseRun(), 0))
    asked: list[str] = []
    for verb in ("execute", "executemany", "fetch", "fetchrow", "fetchval", "prepare"):
        real = getattr(asyncpg.Connection, verb)

        async def ask(connection: Any, sql: str, *given: Any, real: Any = real, **named: Any) -> Any:
            asked.append(sql)
            return await real(connection, sql, *given, **named)

        monkeypatch.setattr(asyncpg.Connection, verb, ask)
    effects = (WORK, f.SetTimer(ONE, 5), f.OpenGate(TOKEN, "n"))
    made = [commit(0, started(run, key=run, tags=("t",)), run=run, effects=effects) for run in NAMES]
    rows = spread.commit(Batch(made, answers=[InboxAnswer("q")]), *fences)
    assert len(asked) == 1
    effects = (f.ClearTimer(ONE), f.CloseGate(TOKEN), WORK, f.Publish("x", {"big": "x" * 100_000}))  # type: ignore[assignment]
    moved = [commit(1, e.Custom(2, 1, "x"), run=run, effects=effects) for run in NAMES]
    ids = [row.id for row in rows]
    spread.commit(Batch(moved, done=ids[:100], parked=[(id, "no") for id in ids[100:]], revived=ids[150:]), *fences)
    assert len(asked) == 2
    over = [commit(2, e.RunCompleted(3, 1, {}), run=run, status=RunStatus.COMPLETED) for run in NAMES]
    spread.commit(Batch(over), *fences)
    assert len(asked) == 3
    monkeypatch.undo()
    assert spread.integrity() == []
    assert len(spread.outbox(range(8), parked=True)) == 300
    assert spread.find_gates() == spread.timers(range(8)) == spread.inbox(range(8)) == []
