"""Runs that go on under another version (6.5): reports, what readers see, and a new owner of the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.executing import on_loop
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine, load_value
from treadle.model.states import RunStatus

FORM = {"type": "object", "required": ["ok"]}


def first() -> Any:
    nodes = {
        "draft": {},
        "approve": {"action": {"kind": "human", "form": FORM}, "output_mapping": {"state.ok": "$.ok"}},
        "ship": {},
    }
    edges = [{"from": "draft", "to": "approve"}, {"from": "approve", "to": "ship"}]
    return load_value({"workflow": "orders", "nodes": nodes, "transitions": edges}).require()


def second(**fields: Any) -> Any:
    nodes = {"draft": {}, "review": {"action": {"kind": "human"}}, "check": {}, "ship": {}}
    edges = [
        {"from": "draft", "to": "review"},
        {"from": "review", "to": "check"},
        {"from": "check", "to": "ship"},
    ]
    return load_value({"workflow": "orders", "nodes": nodes, "transitions": edges, **fields}).require()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "store.db")
    else:
        yield request.getfixturevalue("dsn")


async def answered(engine: Any, run: Any, data: Any) -> None:
    (gate,) = await engine.gates(run=run.id)
    await run.complete_gate(gate.token, data)


@on_loop
async def test_a_new_owner_of_the_store_goes_on_under_the_version_a_run_was_migrated_to(place: str) -> None:
    async with Engine(place) as engine:
        run = await engine.start(first())
        await engine.deploy(second())
        await run.migrate(2, {"approve": "review"})
        assert [gate.node for gate in await engine.gates(node="review", text="REVIEW")] == ["review"]
        assert await engine.gates(text="approve") == []
    async with Engine(place) as engine:
        run = engine.run(run.id)
        state = await run.state()
        (token,) = state.tokens.values()
        assert (state.version, token.node, token.under) == (2, "review", (1, "approve"))
        with pytest.raises(CommandRefused, match="SCHEMA"):
            await answered(engine, run, {})
        await answered(engine, run, {"ok": True})
        assert (await run.wait(20)).status is RunStatus.COMPLETED
        visits = [visit.node for visit in await run.visits()]
        assert visits == ["draft", "review", "check", "ship"]
        assert (await run.state()).context()["state"] == {"ok": True}
        assert [row.version for row in await engine.runs(version=2)] == [2]
        assert (await engine.fsck()).findings == []


@pytest.mark.parametrize("way", ["itself", "store", "server"])
@on_loop
async def test_everything_in_the_way_is_reported_and_nothing_has_changed(way: str, tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    async with Engine(place) as owner, reached(owner, way, place) as client:
        run = await owner.start(first())
        await owner.deploy(second())
        run = client.run(run.id)
        plan = await run.migrate(2, dry_run=True)
        assert (plan.outcome, plan.from_, plan.to, plan.ok) == ("refused", 1, 2, False)
        assert [entry.place for entry in plan.obstacles] == ["node approve"]
        with pytest.raises(CommandRefused, match="'approve'") as refused:
            await run.migrate(2)
        assert [entry.message for entry in refused.value.problems] == [entry.message for entry in plan.obstacles]
        assert (await run.info()).version == 1
        assert (await run.migrate(2, {"approve": "review"}, dry_run=True)).outcome == "possible"
        assert (await run.info()).version == 1
        assert (await run.migrate(2, {"approve": "review"})).outcome == "migrated"
        assert (await run.migrate(2)).outcome == "unchanged"
        assert (await run.info()).version == 2


@pytest.mark.parametrize("way", ["itself", "server"])
@on_loop
async def test_many_runs_are_migrated_with_a_report_for_each(way: str) -> None:
    async with Engine(":memory:") as owner, reached(owner, way) as client:
        waiting = [await owner.start(first()) for _ in range(3)]
        await owner.deploy(second())
        newer = await owner.start("orders")
        await answered(owner, waiting[2], {"ok": 1})
        await waiting[2].wait(20)
        reports = await client.migrate({"workflow": "orders"}, 2, {"approve": "review"})
        assert [(one.run, one.outcome) for one in reports] == [(run.id, "migrated") for run in waiting[:2]]
        named = await client.migrate([waiting[2].id, newer.id, "nobody"], 2)
        assert [one.outcome for one in named] == ["refused", "unchanged", "refused"]
        assert [one.kind for one in named] == ["INVALID_STATE", None, "NOT_FOUND"]
        with pytest.raises(ValueError, match="workflow"):
            await client.migrate({"version": 1}, 2)


@on_loop
async def test_a_migration_that_is_asked_for_again_is_reported_as_it_was_the_first_time(place: str) -> None:
    async with Engine(place) as engine:
        run = await engine.start(first())
        await engine.deploy(second())
        for _ in range(2):
            with engine.once("m", "f"):
                (report,) = await engine.migrate([run.id], 2, {"approve": "review"})
            assert report.outcome == "migrated"
        for _ in range(2):
            with engine.once("n", "f"):
                (report,) = await engine.migrate([run.id], 2)
            assert report.outcome == "unchanged"


@on_loop
async def test_deploying_a_version_migrates_live_runs_if_it_says_so_and_nothing_is_in_the_way() -> None:
    async with Engine(":memory:") as engine:
        held = await engine.start(first())
        deployed = await engine.deploy(second(on_deploy="migrate_if_safe"))
        assert [(one.run, one.outcome) for one in deployed.migrated] == [(held.id, "refused")]
        free = await engine.start("orders")
        third = second(on_deploy="migrate_if_safe", description="the same", timeout_ms=1_000_000)
        deployed = await engine.deploy(third)
        assert [(one.run, one.outcome) for one in deployed.migrated] == [(held.id, "refused"), (free.id, "migrated")]
        assert (await free.info()).version == 3
        migrated = [event for event in await free.history() if event.type == "run.migrated"]
        assert [(event.from_, event.to, event.by) for event in migrated] == [(2, 3, "deploy")]  # type: ignore[attr-defined]


@on_loop
async def test_the_past_of_a_migrated_run_is_that_of_its_old_version() -> None:
    async with Engine(":memory:") as engine:
        run = await engine.start(first())
        await engine.deploy(second())
        seq = (await run.info()).seq
        await run.migrate(2, {"approve": "review"})
        assert (await run.state(seq)).version == 1
        assert (await run.state(seq + 1)).version == 2
        await answered(engine, run, {"ok": 1})
        await run.wait(20)
        assert (await run.state(seq)).graph.version == 1
