"""Words of the contract's tests: decisions, and a store that can be spoken to without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.model.references import EntityRef, ParentLink
from treadle.model.states import RunStatus
from treadle.store.port import Batch, Commit, Fence, InboxRequest, RunQuery, Store
from treadle.store.rows import SHARD
from treadle.store.sqlite import SqliteStore

RUN, OTHER = RunId("r1"), RunId("r2")
ONE, TWO, THREE = TimerId(1), TimerId(2), TimerId(3)
TOKEN = TokenId(1)
WORK = f.RunTask(TOKEN, 1, "a", {"x": 1})


class Spoken:
    """A store whose verbs return their results."""

    def __init__(self, store: Any, runner: asyncio.Runner) -> None:
        self.store: Store = store
        self._runner = runner

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        spoken = getattr(self.store, verb)

        async def speak(*given: Any, **named: Any) -> Any:
            return await spoken(*given, **named)

        return lambda *given, **named: self._runner.run(speak(*given, **named))

    def held(self) -> Fence:
        """The store's shard, leased for 100 ms from 0."""
        fence: Fence | None = self.lease(SHARD, "a", 0, 100)
        assert fence is not None
        return fence

    def runs(self, **conditions: Any) -> list[RunId]:
        """Ids of the runs a query finds."""
        return [row.run for row in self.find_runs(RunQuery(**conditions))]


def on_postgres(database: Any, runner: asyncio.Runner) -> Iterator[Spoken]:
    """A store with nothing in it on a `tests.postgres.Database`, sound when it is left."""
    made = Spoken(runner.run(database.open(payload_max=200)), runner)
    yield made
    assert made.integrity() == []
    made.close()


class Opener:
    """Opens the same file again and again."""

    def __init__(self, place: Path, runner: asyncio.Runner) -> None:
        self._place = place
        self._runner = runner
        self.opened: list[Spoken] = []

    def __call__(self, **options: Any) -> Any:
        store = Spoken(self._runner.run(SqliteStore.open(self._place, **options)), self._runner)
        self.opened.append(store)
        return store


def started(
    run: RunId = RUN,
    at: int = 0,
    key: str | None = None,
    workflow: str = "w",
    tags: tuple[str, ...] = (),
    entity: str | None = None,
    parent: RunId | None = None,
    input: Any = None,
) -> e.RunStarted:
    return e.RunStarted(
        1,
        at,
        run,
        workflow,
        1,
        "hash",
        input,
        entity=EntityRef(entity, "order") if entity else None,
        parent=ParentLink(parent, TOKEN) if parent else None,
        idempotency_key=key,
        tags=tags,
    )


def commit(
    seq: int,
    *events: e.Event,
    run: RunId = RUN,
    effects: tuple[f.Effect, ...] = (),
    status: RunStatus = RunStatus.RUNNING,
    busy: bool = False,
) -> Commit:
    return Commit(run, seq, events, effects, status, busy)


def begin(run: RunId = RUN, *effects: f.Effect, busy: bool = False, **given: Any) -> Batch:
    """A run that starts and asks for these effects."""
    return Batch([commit(0, started(run, **given), run=run, effects=effects, busy=busy)])


def ended(run: RunId = RUN, status: RunStatus = RunStatus.COMPLETED, **given: Any) -> Batch:
    """A run that starts and ends."""
    over = e.RunCompleted(2, 9, {"answer": 42})
    return Batch([commit(0, started(run, **given), over, run=run, status=status)])


def request(id: str, run: RunId = RUN, at: int = 0) -> InboxRequest:
    return InboxRequest(id, run, c.SendSignal("go", data={"a": [1, None]}), at)
