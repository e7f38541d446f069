"""What becomes of finished runs: by age, by number, without history; children with their parents; no idle work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.runtime.cores import Running, chain, running
from tests.runtime.executing import VirtualClock, on_loop
from treadle.language import load_value
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime import retention as r
from treadle.runtime.keep import Keep, Rules
from treadle.store.memory import MemoryStore
from treadle.store.port import RunQuery, RunRow

DAY = 86_400_000


class Watched(MemoryStore):
    """Counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.dropped: list[tuple[RunId, ...]] = []

    async def find_runs(self, query: RunQuery) -> list[RunRow]:
        self.looks += 1
        return await super().find_runs(query)

    async def forget(self, runs: Any, fence: Any, history: bool = True) -> None:
        self.dropped.append(tuple(runs))
        await super().forget(runs, fence, history)


class Kept:
    """An engine's parts on a virtual clock, with retention."""

    def __init__(self, store: Watched, clock: VirtualClock, here: Running, tidy: r.Retention) -> None:
        self.store, self.clock, self.here, self.tidy = store, clock, here, tidy

    async def quiet(self) -> None:
        await self.here.core.coordinator.wait_quiet()

    async def finished(self, workflow: str = "chain", **options: Any) -> str:
        run = await self.here.client.start(workflow, **options)
        await run.wait()
        await self.quiet()
        return str(run.id)

    async def pass_ms(self, ms: int) -> None:
        await self.clock.advance(ms)
        await self.quiet()

    async def left(self) -> set[str]:
        return {str(row.run) for row in await self.here.client.runs(limit=10_000)}


@asynccontextmanager
async def keeping(
    usual: Keep, *, store: Watched | None = None, clock: VirtualClock | None = None, **of: Keep
) -> AsyncIterator[Kept]:
    store, clock = store or Watched(), clock or VirtualClock()

    async def nothing() -> dict[str, Any]:
        return {}

    async with running(store, {"a": nothing, "b": nothing}, clock) as here:
        coordinator = here.core.coordinator
        await here.client.deploy(chain("a", "b"))
        await here.client.deploy(chain("a", name="other"))
        tidy = r.Retention(
            store, coordinator.fence, clock, coordinator.feed, Rules(usual, of), here.core.library.names,
            coordinator.spawn,
        )  # fmt: skip
        await tidy.open()
        await clock.advance(0)
        kept = Kept(store, clock, here, tidy)
        await kept.pass_ms(r.PAUSE_MS)
        try:
            yield kept
        finally:
            tidy.close()


@on_loop
async def test_a_run_goes_when_it_has_been_over_for_so_long_and_not_before() -> None:
    async with keeping(Keep(age_ms=DAY)) as kept:
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
async def test_age_counts_from_the_end_of_a_run_not_from_its_start() -> None:
    ask = {"workflow": "asks", "nodes": {"g": {"task": {"steps": [{"ref": "q", "action": {"kind": "human"}}]}}}}
    async with keeping(Keep(age_ms=DAY)) as kept:
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
async def test_of_each_workflow_the_newest_are_kept() -> None:
    async with keeping(Keep(count=2), other=Keep(count=1)) as kept:
        chains = [await kept.finished() for _ in range(4)]
        others = [await kept.finished("other") for _ in range(3)]
        await kept.pass_ms(2 * r.PAUSE_MS)
        assert await kept.left() == {*chains[-2:], others[-1]}


@on_loop
async def test_a_workflow_with_a_rule_of_its_own_has_only_that() -> None:
    async with keeping(Keep(age_ms=DAY), other=Keep()) as kept:
        await kept.finished()
        other = await kept.finished("other")
        await kept.pass_ms(10 * DAY)
        assert await kept.left() == {other}


@on_loop
async def test_history_is_shortened_to_how_a_run_began_and_ended() -> None:
    async with keeping(Keep(history_age_ms=DAY)) as kept:
        run = await kept.finished()
        whole = await kept.store.history(RunId(run))
        await kept.pass_ms(DAY - 1)
        assert await kept.store.history(RunId(run)) == whole
        await kept.pass_ms(1)
        assert await kept.store.history(RunId(run)) == [whole[0], whole[-1]]
        ended = await kept.here.client.run(run).wait()
        assert (ended.status, ended.output) == (RunStatus.COMPLETED, whole[-1].output)  # type: ignore[attr-defined]


@on_loop
async def test_what_was_shortened_is_not_shortened_again_by_the_next_engine() -> None:
    store, clock = Watched(), VirtualClock()
    async with keeping(Keep(history_age_ms=DAY), store=store, clock=clock) as kept:
        for _ in range(3):
            await kept.finished()
        await kept.pass_ms(2 * DAY)
        assert len({run for runs in store.dropped for run in runs}) == 3
        store.dropped.clear()
        await kept.finished()
        await kept.pass_ms(DAY // 2)
    async with keeping(Keep(history_age_ms=DAY), store=store, clock=clock) as kept:
        await kept.pass_ms(DAY // 4)
        assert store.dropped == []
        await kept.pass_ms(DAY)
        assert sum(map(len, store.dropped)) == 1


@on_loop
async def test_children_go_with_the_run_that_started_them_and_not_alone() -> None:
    ask = {"ref": "q", "action": {"kind": "human"}}
    call = {"ref": "do", "action": {"kind": "workflow_call", "workflow": "chain"}}
    nodes = {"call": {"task": {"steps": [call]}}, "ask": {"task": {"steps": [ask]}}}
    parent = load_value({"workflow": "parent", "nodes": nodes, "transitions": [{"from": "call", "to": "ask"}]})
    async with keeping(Keep(age_ms=DAY, count=0, history_age_ms=1)) as kept:
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
async def test_nothing_is_asked_of_the_store_while_nothing_can_expire() -> None:
    async with keeping(Keep(age_ms=7 * DAY, count=10, history_age_ms=DAY)) as kept:
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


@on_loop
async def test_many_runs_are_dropped_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(r, "PAGE", 7)
    monkeypatch.setattr(r, "AT_ONCE", 20)
    async with keeping(Keep(age_ms=DAY)) as kept:
        for _ in range(50):
            await kept.here.client.start("other")
        await kept.quiet()
        assert len(await kept.left()) == 50
        await kept.pass_ms(DAY + 5 * r.PAUSE_MS)
        assert await kept.left() == set()


@on_loop
async def test_runs_that_were_over_before_the_engine_began_are_found() -> None:
    store, clock = Watched(), VirtualClock()
    async with keeping(Keep(), store=store, clock=clock) as kept:
        for _ in range(3):
            await kept.finished()
        await kept.pass_ms(2 * DAY)
        assert len(await kept.left()) == 3, "without a limit everything stays"
        assert clock.pending == []
    async with keeping(Keep(age_ms=DAY), store=store, clock=clock) as kept:
        assert await kept.left() == set()


def test_a_limit_cannot_be_negative() -> None:
    with pytest.raises(ValueError, match=r"Keep\.count cannot be negative"):
        Keep(count=-1)
