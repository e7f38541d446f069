"""A mixed load on a store that loses commits, hides them and cannot be read now and then: everything once.

Seeds are numbers: one that fails is played again by its number.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.runtime.cores import FaultyStore, calls, chain, running
from tests.runtime.executing import on_loop, turns
from treadle.actions.protocol import AttemptFacts
from treadle.errors import StoreUnavailable
from treadle.language import load_value
from treadle.model.definition import Workflow
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.surroundings import patience
from treadle.store.port import Batch, Fence, OutboxRow
from treadle.store.rows import SHARD

SEEDS = range(25)
STEPS = 1 + 4 + 4 + 2 + 1
"""Of one run: the first, four in a slot, four behind them, two of a child, the last."""


class Moody(FaultyStore):
    """Every seventh commit fails, or is not heard of; every twentieth history cannot be read."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random

    async def commit(self, batch: Batch, fence: Fence) -> list[OutboxRow]:  # type: ignore[override]
        await turns(self._random.randrange(4))
        if batch.commits and self._random.random() < 0.15:
            self.faults = [self._random.choice(["lost", "unseen"])]
        return await super().commit(batch, fence)

    async def history(self, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
        if self._random.random() < 0.05:
            raise StoreUnavailable("busy")
        return await super().history(run, after, limit)


def mixed() -> Workflow:
    """A fan-out through a slot, a join, a child run, a timer."""
    document: dict[str, Any] = {
        "workflow": "mixed",
        "nodes": {
            "begin": calls("f"),
            "slot": calls("f", concurrency={"limit": 2}),
            "behind": calls("f"),
            "join": {},
            "call": {"task": {"steps": [{"ref": "do", "action": {"kind": "workflow_call", "workflow": "child"}}]}},
            "wait": {"task": {"steps": [{"ref": "do", "action": {"kind": "wait", "ms": 1}}]}},
            "end": calls("f"),
        },
        "transitions": [
            {"id": "fan", "from": "begin", "to": "slot", "spawn_count": 4},
            {"from": "slot", "to": "behind"},
            {"from": "behind", "to": "join", "synchronization": {"sibling_group": "fan"}},
            {"from": "join", "to": "call"},
            {"from": "call", "to": "wait"},
            {"from": "wait", "to": "end"},
        ],
    }
    return load_value(document).require()


@pytest.mark.parametrize("seed", SEEDS)
@on_loop
async def test_everything_is_done_once_whatever_becomes_of_commits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "RETRY_FIRST_S", 0.001)
    random, ran = Random(seed), Counter[str]()
    store = Moody(random)

    async def works(facts: AttemptFacts) -> dict[str, Any]:
        ran[facts.key] += 1
        await turns(random.randrange(3))
        return {}

    async with running(store, {"f": works, "g": works}) as here:  # type: ignore[arg-type]
        await here.client.deploy(chain("f", "g", name="child"))
        await here.client.deploy(mixed())
        store.faults = [random.choice(["lost", "unseen"])]  # one for certain, others as they come
        started = await asyncio.gather(*(here.client.start("mixed", key=f"k{i % 6}") for i in range(8)))
        ended = await asyncio.gather(*(run.wait(20) for run in started))
        assert {end.status for end in ended} == {RunStatus.COMPLETED}
        await here.core.wait_quiet()
        assert len(await here.client.runs(workflow="mixed")) == 6, "one for each key"
        assert await store.outbox(SHARD) == []
        assert await store.timers(SHARD) == []
    assert set(ran.values()) == {1}, "nothing twice"
    assert len(ran) == 6 * STEPS, "nothing lost"
