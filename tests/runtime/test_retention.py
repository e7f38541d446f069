"""What becomes of finished runs: by age, by number, without history; children with their parents; no idle work."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.runtime.executing import VirtualClock, on_loop
from tests.runtime.keeping import DAY, keeping, watched
from treadle.errors import StoreUnavailable
from treadle.language import load_value
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.operate import retention as r
from treadle.runtime.operate import retention_queries as families
from treadle.runtime.operate.retention_setting import Keep
from treadle.store.rows import SHARD


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return None if request.param == "memory" else tmp_path / "treadle.db"


@on_loop
async def test_a_run_goes_when_it_has_been_over_for_so_long_and_not_before(place: Path | None) -> None:
    async with watched(place) as store, keeping(store, Keep(age_ms=DAY)) as kept:
        first = await kept.finished()
        await kept.pass_ms(DAY // 2)
        second = await kept.finished()
        await kept.pass_ms(DAY // 2 - 1)
        assert await kept.left() == {first, second}
        await kept.pass_ms(1)
        assert await kept.left() == {second}
        await kept.pass_ms(DAY)
        assert await kept.left() == set()
        assert await kept.store.history(RunId(first)) == []


@on_loop
async def test_age_counts_from_the_end_of_a_run_not_from_its_start(place: Path | None) -> None:
    ask = {"workflow": "asks", "nodes": {"g": {"task": {"steps": [{"ref": "q", "action": {"kind": "human"}}]}}}}
    async with watched(place) as store, keeping(store, Keep(age_ms=DAY)) as kept:
        run = await kept.here.client.start(load_value(ask))
        await kept.finished()
        await kept.pass_ms(3 * DAY)
        assert await kept.left() == {run.id}, "an open run stays, however old"
        [gate] = await kept.here.client.gates()
        await run.complete_gate(gate.token, {})
        await kept.pass_ms(DAY - 1)
        assert await kept.left() == {run.id}
        await kept.pass_ms(1)
        assert await kept.left() == set()


@on_loop
async def test_of_each_workflow_the_newest_are_kept(place: Path | None) -> None:
    async with watched(place) as store, keeping(store, Keep(count=2), other=Keep(count=1)) as kept:
        chains = [await kept.finished() for _ in range(4)]
        others = [await kept.finished("other") for _ in range(3)]
        await kept.pass_ms(2 * r.PAUSE_MS)
        assert await kept.left() == {*chains[-2:], others[-1]}


@on_loop
async def test_a_workflow_with_a_rule_of_its_own_has_only_that(place: Path | None) -> None:
    async with watched(place) as store, keeping(store, Keep(age_ms=DAY), other=Keep()) as kept:
        await kept.finished()
        other = await kept.finished("other")
        await kept.pass_ms(10 * DAY)
        assert await kept.left() == {other}


@on_loop
async def test_a_rule_for_a_workflow_that_nobody_has_deployed_is_told(place: Path | None) -> None:
    with capture_logs() as logged:
        async with watched(place) as store, keeping(store, Keep(age_ms=DAY), other=Keep(), othre=Keep()):
            pass
    assert [one["workflow"] for one in logged if "not deployed" in one["event"]] == ["othre"]


@on_loop
async def test_history_is_shortened_to_how_a_run_began_and_ended(place: Path | None) -> None:
    async with watched(place) as store, keeping(store, Keep(history_age_ms=DAY)) as kept:
        run = await kept.finished()
        whole = await kept.store.history(RunId(run))
        await kept.pass_ms(DAY - 1)
        assert await kept.store.history(RunId(run)) == whole
        await kept.pass_ms(1)
        assert await kept.store.history(RunId(run)) == [whole[0], whole[-1]]
        ended = await kept.here.client.run(run).wait()
        assert (ended.status, ended.output) == (RunStatus.COMPLETED, whole[-1].output)


@on_loop
async def test_what_was_shortened_is_not_shortened_again_by_the_next_engine(place: Path | None) -> None:
    clock, usual = VirtualClock(), Keep(history_age_ms=DAY)
    async with watched(place) as store:
        async with keeping(store, usual, clock=clock) as kept:
            for _ in range(3):
                await kept.finished()
            await kept.pass_ms(2 * DAY)
            assert len({run for runs in store.dropped for run in runs}) == 3
            store.dropped.clear()
            await kept.finished()
            await kept.pass_ms(DAY // 2)
        async with keeping(store, usual, clock=clock) as kept:
            await kept.pass_ms(DAY // 4)
            assert store.dropped == []
            await kept.pass_ms(DAY)
            assert sum(map(len, store.dropped)) == 1


@on_loop
async def test_children_go_with_the_run_that_started_them_and_not_alone(place: Path | None) -> None:
    ask = {"ref": "q", "action": {"kind": "human"}}
    call = {"ref": "do", "action": {"kind": "workflow_call", "workflow": "chain"}}
    nodes = {"call": {"task": {"steps": [call]}}, "ask": {"task": {"steps": [ask]}}}
    parent = load_value({"workflow": "parent", "nodes": nodes, "transitions": [{"from": "call", "to": "ask"}]})
    async with watched(place) as store, keeping(store, Keep(age_ms=DAY, count=0, history_age_ms=1)) as kept:
        run = await kept.here.client.start(parent)
        async for event in run.events():
            if event.type == "gate.opened":
                break
        await kept.pass_ms(3 * DAY)
        [child] = await kept.here.client.runs(parent=run.id)
        assert child.status is RunStatus.COMPLETED
        assert len(await kept.store.history(child.run)) > 2, "its parent may still want it undone"
        assert kept.clock.pending == [], "nothing can expire while the parent lives"
        [gate] = await kept.here.client.gates()
        await run.complete_gate(gate.token, {})
        await kept.pass_ms(2 * r.PAUSE_MS)
        assert await kept.left() == set()


@on_loop
async def test_nothing_is_asked_of_the_store_while_nothing_can_expire(place: Path | None) -> None:
    async with watched(place) as store, keeping(store, Keep(age_ms=7 * DAY, count=10, history_age_ms=DAY)) as kept:
        assert kept.clock.pending == []
        await kept.finished()
        await kept.pass_ms(r.PAUSE_MS)
        before = kept.store.looks
        assert kept.clock.pending, "the run will expire"
        await kept.pass_ms(DAY - 2 * r.PAUSE_MS)
        assert kept.store.looks == before
        await kept.pass_ms(7 * DAY)
        await kept.pass_ms(r.PAUSE_MS)
        assert await kept.left() == set()
        assert kept.clock.pending == []


@pytest.mark.parametrize("usual", [Keep(age_ms=DAY), Keep(count=0)])
@on_loop
async def test_many_runs_are_dropped_in_pages(usual: Keep, place: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "PAGE", 7)
    monkeypatch.setattr(r, "AT_ONCE", 20)
    clock = VirtualClock()
    async with watched(place) as store:
        async with keeping(store, Keep(), clock=clock) as kept:
            for run in [await kept.here.client.start("other") for _ in range(50)]:
                await run.wait()
            await kept.pass_ms(DAY)
            assert len(await kept.left()) == 50
        async with keeping(store, usual, clock=clock) as kept:
            await kept.pass_ms(3 * r.PAUSE_MS)
            assert await kept.left() == set()
            assert max(map(len, store.dropped)) == families.PAGE


@on_loop
async def test_runs_that_were_over_before_the_engine_began_are_found(place: Path | None) -> None:
    clock = VirtualClock()
    async with watched(place) as store:
        async with keeping(store, Keep(), clock=clock) as kept:
            for _ in range(3):
                await kept.finished()
            await kept.pass_ms(2 * DAY)
            assert len(await kept.left()) == 3, "without a limit everything stays"
            assert clock.pending == []
        async with keeping(store, Keep(age_ms=DAY), clock=clock) as kept:
            assert await kept.left() == set()


@on_loop
async def test_a_store_that_cannot_be_reached_is_tried_again(place: Path | None) -> None:
    async with watched(place) as store, keeping(store, Keep(age_ms=DAY)) as kept:
        run = await kept.finished()
        store.faults = [StoreUnavailable("disk full")]
        await kept.pass_ms(DAY)
        assert await kept.left() == {run}
        await kept.pass_ms(r.AGAIN_MS)
        assert await kept.left() == set()


@on_loop
async def test_whoever_lost_the_store_leaves_it_alone(place: Path | None) -> None:
    async with watched(place) as store, keeping(store, Keep(age_ms=DAY, count=0)) as kept:
        await kept.finished()
        await store.lease(SHARD, "other", 0, 1 << 50, evict=True)
        await kept.pass_ms(10 * DAY)
        assert len(await kept.left()) == 1
        assert kept.clock.pending == []


def test_a_limit_cannot_be_negative() -> None:
    with pytest.raises(ValueError, match=r"Keep\.count cannot be negative"):
        Keep(count=-1)
