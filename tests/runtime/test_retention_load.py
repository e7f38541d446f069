"""Retention under load: it keeps up, asks little, and does not turn in circles where nothing can be dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.executing import VirtualClock, on_loop
from tests.runtime.keeping import DAY, keeping, watched
from treadle.model.ids import RunId
from treadle.runtime.operate import retention as r
from treadle.runtime.operate import retention_queries as families
from treadle.runtime.operate.retention_setting import Keep


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return None if request.param == "memory" else tmp_path / "treadle.db"


@pytest.mark.parametrize(("usual", "kept_by_rule"), [(Keep(age_ms=4_000), 40), (Keep(count=40), 40)])
@on_loop
async def test_runs_that_end_faster_than_a_sweep_drops_do_not_pile_up(
    usual: Keep, kept_by_rule: int, place: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(r, "AT_ONCE", 20)
    monkeypatch.setattr(r, "CROWD_MIN", 10)
    a_second = 10
    async with watched(place) as store, keeping(store, usual) as kept:
        most = 0
        for _ in range(40):
            for run in [await kept.here.client.start("other") for _ in range(a_second)]:
                await run.wait()
            await kept.pass_ms(1_000)
            most = max(most, len(await kept.left()))
        assert kept_by_rule - a_second <= most <= 2 * kept_by_rule
        await kept.pass_ms(2 * r.PAUSE_MS)
        assert len(await kept.left()) == (usual.count or 0)


@pytest.mark.parametrize("usual", [Keep(age_ms=DAY), Keep(history_age_ms=DAY)])
@on_loop
async def test_a_sweep_asks_about_many_runs_at_once(usual: Keep, place: Path | None) -> None:
    clock = VirtualClock()
    async with watched(place) as store:
        async with keeping(store, Keep(), clock=clock) as kept:
            for run in [await kept.here.client.start("other") for _ in range(100)]:
                await run.wait()
            await kept.pass_ms(DAY)
        before = store.looks
        async with keeping(store, usual, clock=clock):
            assert len({run for runs in store.dropped for run in runs}) == 100
            assert store.looks - before < 20


@on_loop
async def test_a_sweep_that_can_drop_nothing_of_what_is_old_is_not_followed_at_once(
    place: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_given: Any) -> list[RunId]:
        return []

    monkeypatch.setattr(r, "AT_ONCE", 2)
    monkeypatch.setattr(families.RetentionQueries, "whole", nothing)  # something that they have started lives
    async with watched(place) as store, keeping(store, Keep(age_ms=DAY)) as kept:
        for _ in range(3):
            await kept.finished()
        await kept.pass_ms(DAY)
        before = kept.store.looks
        await kept.pass_ms(4 * r.PAUSE_MS)
        assert 1 <= kept.store.looks - before <= 20
