"""The world with the real engine in it: what it promises beyond `World`, and that a broken engine is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from treadle.kernel.state import RunState
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model.definition import Workflow
from treadle.model.errors import Rejection
from treadle.model.ids import RunId
from treadle.runtime.deliver.recovery import Recovery
from treadle.runtime.deliver.timers import Timers
from treadle.store.port import Batch
from treadle.testing.scenario.runner import run_text
from treadle.testing.world.engine import WorldEngine
from treadle.testing.world.outcomes import CrashPoint, Outcome
from treadle.testing.world.stores import MemoryPlace, SqlitePlace
from treadle.testing.world.world import World

CRASHING = """
scenario: work is done again after a crash
definitions: [{workflow: w, nodes: {a: {}, b: {}}, transitions: [{from: a, to: b}]}]
mocks: {a: {after_ms: 10}, b: {}}
steps: [{crash: true}, {advance_ms: 10}]
expect: {status: completed, dispatches: {a: 2, b: 1}}
"""
WAITING = """
scenario: a timer fires
definitions: [{workflow: w, nodes: {a: {action: {kind: wait, ms: 50}}}}]
steps: [{advance_ms: 50}]
expect: {status: completed}
"""


def chain(*nodes: str) -> Workflow:
    document: dict[str, Any] = {"workflow": "w", "nodes": {node: {} for node in nodes}}
    document["transitions"] = [{"from": source, "to": target} for source, target in pairwise(nodes)]
    return load_value(document).require()


@pytest.fixture(params=[MemoryPlace, SqlitePlace])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    mocks = {"a": [Outcome(after_ms=10)], "b": [Outcome(after_ms=10)]}
    with World(mocks, place=request.param()) as world:
        world.deploy(chain("a", "b"))
        yield world


def started(world: World, **options: Any) -> RunId:
    run = world.start("w", **options)
    assert not isinstance(run, Rejection), run
    return run


def test_a_run_goes_through_the_engine_to_its_end(world: World) -> None:
    run = started(world)
    world.drive()
    assert world.projection(run).status == "completed"
    assert world.check() == []
    assert [world.workers.dispatches[key] for key in sorted(world.workers.dispatches)] == [1, 1]


@pytest.mark.parametrize("point", ["before_commit", "after_commit", "after_dispatch"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_run_survives_a_crash_at_every_point(world: World, point: CrashPoint, count: int) -> None:
    world.crash_at(point, count)
    run = started(world)
    world.drive()
    assert world.projection(run).status == "completed"
    assert world.check() == []
    assert world.crash_is_due is (point == "after_dispatch" and count == 3), "two nodes, two dispatches"


def test_a_dead_engine_writes_nothing_any_more(world: World) -> None:
    run = started(world)
    dead = world.engine
    assert isinstance(dead, WorldEngine)
    world.crash()
    before = len(world.projection(run).events)
    late = dead.around.loop.create_task(dead.store.commit(Batch(), *dead.core.shards.fences.values()))  # type: ignore[arg-type, var-annotated]
    dead.core.coordinator.tell(run, c.CancelRun())
    world.settle()
    assert not late.done()
    assert world.projection(run).status == "running"
    assert len(world.projection(run).events) >= before


def test_the_same_key_gives_the_same_run_also_after_a_crash(world: World) -> None:
    first = started(world, idempotency_key="k")
    assert started(world, idempotency_key="k") == first
    world.crash()
    assert started(world, idempotency_key="k") == first
    assert world.runs == [first]


def test_what_nobody_knows_is_refused(world: World) -> None:
    refused = world.start("nothing")
    assert isinstance(refused, Rejection)
    assert refused.kind == "NOT_FOUND"
    unknown = world.send(RunId("nobody"), c.CancelRun())
    assert unknown is not None
    assert unknown.kind == "NOT_FOUND"


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_an_engine_that_does_not_recover_is_noticed(monkeypatch: pytest.MonkeyPatch, store: Any) -> None:
    assert [result.verdict for result in run_text(CRASHING, store=store)] == ["passed"]

    async def forget(_self: Recovery, *_given: object) -> None:
        return

    monkeypatch.setattr(Recovery, "_replace_workers", forget)
    assert [result.verdict for result in run_text(CRASHING, store=store)] == ["failed"]


def test_an_engine_that_forgets_timers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [result.verdict for result in run_text(WAITING, store="sqlite")] == ["passed"]
    monkeypatch.setattr(Timers, "set", lambda *_arguments: None)
    assert [result.verdict for result in run_text(WAITING, store="sqlite")] == ["failed"]


def test_a_state_that_is_not_what_its_history_says_is_noticed(world: World) -> None:
    run = started(world)
    state: RunState = world.state(run)
    state.last_token += 1
    assert any("last_token" in problem for problem in world.check())
