"""Looking into a run: its waits, visits, groups and states, as people and programs ask for them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.driving import RUN, Driven, graph_of
from tests.runtime.executing import on_loop
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine, load_value, task
from treadle.model import commands as c
from treadle.model.ids import GroupId
from treadle.model.states import RunStatus
from treadle.runtime.view.detail import waits_of
from treadle.runtime.view.groups import branches_of, detail_of_group
from treadle.runtime.view.readings import Readings, RunReading

NEWS = {
    "workflow": "news",
    "nodes": {
        "plan": {
            "action": {"kind": "set", "values": {"ideas": ["tea", "rain", "bees"]}},
            "output": {"state.ideas": "$.ideas"},
        },
        "write": {"action": {"kind": "python", "function": "write"}, "input": {"idea": "$.idea"}},
        "gather": {},
        "review": {
            "action": {"kind": "human", "title": "Publish?", "assign": "ana", "due_ms": 3_600_000},
            "output": {"state.go": "$.go"},
        },
        "print": {},
    },
    "transitions": [
        {
            "from": "plan",
            "to": "write",
            "foreach": {"collection": "$.state.ideas", "item_var": "idea"},
            "sibling_group": "ideas",
        },
        {
            "from": "write",
            "to": "gather",
            "synchronization": {"sibling_group": "ideas", "on_branch_failure": "exclude"},
        },
        {"from": "gather", "to": "review"},
        {"from": "review", "to": "print", "condition": "state.go == true"},
    ],
}


@task
def write(idea: str) -> dict[str, Any]:
    if idea == "rain":
        raise ValueError("no umbrella")
    return {"text": f"about {idea}"}


def news() -> Any:
    return load_value(NEWS).require()


async def until_waiting(run: Any) -> Any:
    async with asyncio.timeout(20):
        async for event in run.events():
            if event.type == "gate.opened":
                return event
    raise AssertionError("no gate was opened")


@on_loop
async def test_a_waiting_visit_says_for_what_until_when_and_what_would_end_it() -> None:
    async with Engine(":memory:", functions={"write": write}) as engine:
        run = await engine.start(news(), {"for": "readers"}, key="n1", tags=["daily"])
        gate = await until_waiting(run)
        shown = await run.detail()
        assert (shown.status, shown.key, shown.tags, shown.ended) == ("running", "n1", ("daily",), None)
        assert shown.input == {"for": "readers"}
        assert shown.counts == {"completed": 4, "failed": 1, "waiting": 1}
        (wait,) = shown.waiting
        assert (wait.visit, wait.node, wait.awaits) == (gate.token, "review", "human")
        assert wait.until == gate.due
        assert wait.detail["title"] == "Publish?"
        answer, expiry = wait.ends_by
        assert (answer.by, answer.who, answer.words) == ("answer", "ana", "an answer by ana")
        assert (expiry.by, expiry.at) == ("timer", gate.due)
        await run.pause()
        (wait,) = (await run.detail()).waiting
        assert wait.until is None and wait.ends_by[0].commands == ["resume"]
        await run.resume()
        await run.complete_gate(gate.token, {"go": True})
        await run.wait(20)
        ended = await run.detail()
        assert (ended.status, ended.waiting) == ("completed", [])
        assert ended.ended == ended.changed


@on_loop
async def test_groups_are_shown_with_failed_branches_first_also_after_their_join() -> None:
    async with Engine(":memory:", functions={"write": write}) as engine:
        run = await engine.start(news())
        await until_waiting(run)
        (row,) = await run.groups()
        assert (row.group, row.names, row.node, row.total) == (1, ["ideas", "plan->write"], "plan", 3)
        assert (row.arrived, row.failed, row.live, row.missing, row.ended) == (2, 1, 0, 0, 0)
        (join,) = row.joins
        assert (join.node, join.status, join.strategy) == ("gather", "fired", "all of ideas")
        first = await run.group(1, limit=2)
        assert [(each.branch, each.status, each.item) for each in first.branches] == [
            (1, "failed", "rain"),
            (0, "arrived", "tea"),
        ]
        assert first.branches[0].error is not None and "umbrella" in first.branches[0].error.message
        assert first.next is not None
        rest = await run.group(1, seq=first.next[0], after=first.next[1])
        assert [(each.branch, each.item) for each in rest.branches] == [(2, "bees")] and rest.next is None
        inside = await run.visits(group=1)
        assert [(each.node, each.branches) for each in inside] == [("write", [(1, n)]) for n in range(3)]
        with pytest.raises(CommandRefused, match="no group 7"):
            await run.group(7)


@on_loop
async def test_a_visit_is_shown_with_its_attempts_its_data_and_the_values_that_chose_it() -> None:
    async with Engine(":memory:", functions={"write": write}) as engine:
        run = await engine.start(news())
        gate = await until_waiting(run)
        await run.complete_gate(gate.token, {"go": True})
        await run.wait(20)
        rows = await run.visits()
        failed = next(each for each in rows if each.status == "failed")
        shown = await run.visit(failed.visit)
        assert shown.input == {"idea": "rain"}
        assert shown.scope["idea"] == "rain" and shown.scope["state"]["ideas"] == ["tea", "rain", "bees"]
        (attempt,) = shown.attempted
        assert attempt.outcome == "failed" and attempt.error is not None and attempt.error.traceback
        assert shown.waiting is None
        last = await run.visit(rows[-1].visit)
        assert (last.node, last.why.transition, last.why.origin) == ("print", "review->print", gate.token)
        assert last.why.values == {"state.go": True}
        assert "because" in last.why.words
        answered = await run.visit(gate.token)
        assert answered.output == {"go": True}
        assert [each.node for each in await run.visits(statuses=["failed"])] == ["write"]
        assert [each.visit for each in await run.visits(after=2, limit=2)] == [3, 4]
        with pytest.raises(CommandRefused, match="no visit 99"):
            await run.visit(99)
        with pytest.raises(CommandRefused, match="'broken' is no status"):
            await run.visits(statuses=["broken"])


@on_loop
async def test_the_state_at_an_event_and_the_difference_between_two() -> None:
    async with Engine(":memory:", functions={"write": write}) as engine:
        run = await engine.start(news())
        gate = await until_waiting(run)
        now = await run.snapshot()
        assert now.scope.state["ideas"] == ["tea", "rain", "bees"]
        assert [(each.visit, each.assign) for each in now.gates] == [(gate.token, "ana")]
        assert [each.purpose for each in now.timers] == ["gate_due"]
        first = await run.snapshot(1)
        assert (first.seq, first.scope.state) == (4, {}), "the end of the decision that the event lies in (6.1)"
        assert [visit.status for visit in first.visits] == ["executing"]
        assert (await run.decisions(0, 1)) == [4]
        changed = await run.difference(1, now.seq)
        moves = [(each.node, each.begin, each.end) for each in changed.moved]
        assert moves[0] == ("plan", "executing", "completed")
        assert ("write", None, "failed") in moves
        assert moves[-1] == ("review", None, "waiting")
        assert [(each.place, each.change) for each in changed.data] == [("/state/ideas", "added")]
        assert [each["node"] for each in changed.gates.added] == ["review"]
        assert (await run.difference(now.seq, 1)).data[0].change == "removed"
        for wrong, code in ((0, "BAD_REQUEST"), (now.seq + 1, "NOT_FOUND")):
            with pytest.raises(CommandRefused) as refused:
                await run.snapshot(wrong)
            assert refused.value.kind == code


@pytest.mark.parametrize("way", ["store", "server"])
@on_loop
async def test_a_client_without_an_engine_sees_the_same(tmp_path: Any, way: str) -> None:
    place = tmp_path / "news.db"
    async with Engine(place, functions={"write": write}) as engine:
        run = await engine.start(news())
        await until_waiting(run)
        async with reached(engine, way, place) as client:
            other = client.run(run.id)
            assert await other.detail() == await run.detail()
            assert await other.groups() == await run.groups()
            assert await other.snapshot() == await run.snapshot()
            assert await other.visits() == await run.visits()
            assert await other.visit(1) == await run.visit(1)
            assert await other.difference(1, 4) == await run.difference(1, 4)
            assert await client.runs() == await engine.runs()
            assert await client.workflow_rows() == await engine.workflow_rows()
            assert await client.definition("news") == await engine.definition("news")
            with pytest.raises(CommandRefused) as refused:
                await client.run("nothing").detail()
            assert refused.value.kind == "NOT_FOUND"


@on_loop
async def test_a_reading_continues_where_it_was_and_old_ones_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.runtime.view.readings.READINGS_MAX", 2)
    async with Engine(":memory:", functions={"write": write}) as engine:
        runs = [await engine.start(news()) for _ in range(3)]
        for run in runs:
            await until_waiting(run)
            await run.detail()
        readings: Readings = runs[0]._readings
        assert list(readings._kept) == [runs[1].id, runs[2].id]
        before = readings._kept[runs[2].id]
        await runs[2].cancel("enough")
        assert (await runs[2].detail()).status == RunStatus.CANCELLED
        assert readings._kept[runs[2].id] is before


def test_many_branches_are_paged_without_a_long_stall() -> None:
    wide = {
        "limits": {"max_tokens_per_run": 400_000, "max_spawn_count": 400_000},
        "nodes": {"all": {}, "each": {"action": {"kind": "human"}}, "done": {}},
        "transitions": [
            {"from": "all", "to": "each", "spawn_count": 10_000},
            {"from": "each", "to": "done", "synchronization": {"sibling_group": "all->each"}},
        ],
    }
    driven = Driven(graph_of(wide))
    driven.do(c.StartRun(RUN, {}))
    reading = RunReading(driven.graph)
    reading.apply(driven.history)
    record = reading.log.groups[GroupId(1)]
    began = time.perf_counter()
    page, following = branches_of(record, reading.seq, 9_000, 100)
    shown = detail_of_group(reading, record, page, (reading.seq, following or 0), {})
    assert time.perf_counter() - began < 1
    assert [each.branch for each in shown.branches] == list(range(9_000, 9_100))
    assert (shown.live, shown.missing, following) == (10_000, 10_000, 9_100)
    waits, more = waits_of(reading)
    assert (len(waits), more) == (1_000, 9_000)


@on_loop
async def test_a_run_without_a_history_is_not_shown_as_if_it_had_not_begun() -> None:
    async with Engine(":memory:", functions={"write": write}) as engine:
        run = await engine.start(news())
        await until_waiting(run)
        store = run._commander.store

        async def nothing(*_asked: object) -> list[object]:
            return []

        store.history = nothing  # type: ignore[method-assign,assignment]
        with pytest.raises(CommandRefused):
            await run.detail()
