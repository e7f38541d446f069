"""Callers that were answered together ask again together, and share the next transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.runtime.cores import one
from tests.runtime.executing import DEADLINE_S, on_loop, turns
from treadle.model import commands as c
from treadle.model.ids import RunId
from treadle.runtime.coordinate import hold_back
from treadle.runtime.coordinate.gathering import Decided, Gathering, Item
from treadle.runtime.coordinate.hold_back import LARGE, MOST_S, TURNS, HoldBack
from treadle.runtime.engine import Engine
from treadle.store.port import Commit

CALLERS, ROUNDS = 8, 6
ASKS = one("asks", {"kind": "human"})


async def batches_of(place: Path, apart: int) -> list[int]:
    """Sizes of the batches in which eight callers start runs, round after round. They ask
    at once first, and then one after the other, so many turns of the loop apart."""
    sizes: list[int] = []

    def written(commits: Sequence[Commit], _seconds: float) -> None:
        sizes.append(sum(commit.expected_seq == 0 for commit in commits))

    async with Engine(place / "treadle.db") as engine:
        await engine.deploy(ASKS)
        engine.observe(written)

        async def caller(number: int) -> None:
            for again in range(ROUNDS):
                await turns(number * apart if again else 0)
                await engine.start("asks")

        await asyncio.gather(*map(caller, range(CALLERS)))
    return [size for size in sizes if size]


@on_loop
async def test_callers_who_ask_one_after_the_other_share_a_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold_back, "MOST_S", DEADLINE_S)  # a machine that stalls is not what is tested here
    sizes = await batches_of(tmp_path, apart=2)
    assert sum(sizes) == CALLERS * ROUNDS
    assert sizes[-(ROUNDS - 1) :] == [CALLERS] * (ROUNDS - 1)


@on_loop
async def test_nobody_waits_for_callers_who_do_not_come_back(tmp_path: Path) -> None:
    sizes = await batches_of(tmp_path, apart=20 * TURNS)
    assert sum(sizes) == CALLERS * ROUNDS
    assert max(sizes[1:]) < CALLERS


def asked(loop: asyncio.AbstractEventLoop, callers: int, others: int = 0) -> Gathering:
    """A batch of decisions, so many of them with a caller that waits."""
    run = RunId("r")
    futures = [*(loop.create_future() for _ in range(callers)), *(None for _ in range(others))]
    items = [Item(run, c.PauseRun(), future=future) for future in futures]
    return Gathering(decided=[Decided(item, None, [], None) for item in items])


class Held:
    """A batch held back, on a clock that the test moves."""

    def __init__(self, written: Gathering, gathered: Gathering) -> None:
        self.woken = 0
        self.now = 100.0
        self._hold_back = HoldBack(self._wake, lambda: self.now)
        self._hold_back.answered(written, gathered)

    def _wake(self) -> None:
        self.woken += 1

    def goes_on(self, gathered: Gathering) -> bool:
        return self._hold_back.goes_on(gathered)


@on_loop
async def test_a_batch_waits_until_as_many_have_asked_as_were_answered() -> None:
    loop = asyncio.get_running_loop()
    held = Held(asked(loop, 3, others=2), asked(loop, 0, others=1))
    assert held.goes_on(asked(loop, 3)) and held.woken == 1
    assert not held.goes_on(asked(loop, 4))
    assert not held.goes_on(asked(loop, 1)), "nobody is expected once the batch was sent"


@on_loop
async def test_a_batch_waits_for_a_few_turns_only() -> None:
    loop = asyncio.get_running_loop()
    held = Held(asked(loop, 3), asked(loop, 0))
    assert sum(held.goes_on(asked(loop, 1)) for _ in range(1_000)) == held.woken == TURNS


@on_loop
async def test_a_batch_waits_for_some_milliseconds_only_where_turns_are_long() -> None:
    loop = asyncio.get_running_loop()
    held = Held(asked(loop, 3), asked(loop, 0))
    assert held.goes_on(asked(loop, 1))
    held.now += MOST_S
    assert not held.goes_on(asked(loop, 1)) and held.woken == 1


@on_loop
async def test_a_lone_caller_and_reports_of_work_wait_for_nobody() -> None:
    loop = asyncio.get_running_loop()
    for written in (asked(loop, 1), asked(loop, 1, others=9), asked(loop, 0, others=9), asked(loop, LARGE)):
        assert not Held(written, asked(loop, 0)).goes_on(asked(loop, 0))
