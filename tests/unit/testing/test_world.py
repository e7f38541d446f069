"""Worlds: virtual time, hand-outs, crashes that lose exactly what a crash loses."""

from __future__ import annotations

import pytest

from tests.unit.testing.workflows import CHAIN, FAIL, HOLD, PANEL, WAIT, workflow, world
from treadle.model.codec import pack_events
from treadle.model.commands import PauseRun, ResumeRun, SendSignal
from treadle.model.errors import Rejection
from treadle.model.ids import RunId, TokenId
from treadle.testing import Outcome, World
from treadle.testing.world.outcomes import CrashPoint
from treadle.testing.world.world import Restless

FIRST = TokenId(1)


def quick(output: object = None) -> Outcome:
    return Outcome(output=output if output is not None else {})


def slow(ms: int, output: object = None) -> Outcome:
    return Outcome(output=output if output is not None else {}, after_ms=ms)


def test_time_passes_only_when_told_and_things_happen_at_their_instant() -> None:
    made, run = world(WAIT)
    made.settle()
    assert made.projection(run).status == "running"
    made.advance(999)
    assert made.projection(run).status == "running"
    made.advance(1)
    projection = made.projection(run)
    assert projection.status == "completed" and projection.ended_at == made.clock.now


def test_driving_jumps_over_waits_and_stops_where_nothing_happens_by_itself() -> None:
    made, run = world(CHAIN, {"a": [slow(5_000)], "b": [HOLD]})
    began = made.clock.now
    made.drive()
    assert made.projection(run).status == "running"
    assert made.clock.now == began + 5_000


def test_the_same_commands_write_the_same_history() -> None:
    def history(seed: int | None) -> bytes:
        made, run = world(PANEL, {"judge": [slow(1, {"v": 1})]}, seed=seed)
        made.drive()
        return pack_events(made.projection(run).events)

    assert history(None) == history(None)
    assert history(4) == history(4)
    assert len({history(seed) for seed in range(12)}) > 1, "a seed permutes what happens at one instant"


def test_an_answer_at_the_deadline_is_in_time() -> None:
    document = {**CHAIN, "nodes": {"a": {"timeout_ms": 100}, "b": {}}}
    made, run = world(document, {"a": [slow(100)]})
    made.drive()
    assert made.projection(run).status == "completed"


def test_work_is_counted_when_it_is_handed_out() -> None:
    made, run = world(CHAIN, {"a": [FAIL]})
    assert made.workers.dispatches[run, FIRST] == 0
    made.settle()
    assert made.workers.dispatches[run, FIRST] == 1


def test_a_crash_loses_work_in_flight_and_the_next_engine_hands_it_out_again() -> None:
    made, run = world(CHAIN, {"a": [slow(100, {"n": 1}), quick({"n": 2})]})
    made.advance(50)
    made.crash()
    made.advance(99)
    assert made.projection(run).status == "running"
    made.advance(1)
    projection = made.projection(run)
    assert projection.status == "completed"
    assert projection.visits[FIRST].output == {"n": 1}, "the lost outcome is repeated, the list does not move on"
    assert (projection.visits[FIRST].attempts, made.workers.dispatches[run, FIRST]) == (1, 2)
    assert made.check() == []


def test_a_crash_keeps_timers_and_overdue_ones_fire_at_once() -> None:
    made, run = world(WAIT)
    made.settle()
    made.crash(down_ms=5_000)
    made.settle()
    projection = made.projection(run)
    assert projection.status == "completed" and projection.ended_at == made.clock.now
    assert [event.type for event in projection.events].count("timer.fired") == 1


@pytest.mark.parametrize("point", ["before_commit", "after_commit", "after_dispatch"])
@pytest.mark.parametrize("count", range(1, 9))
def test_a_panel_survives_a_crash_at_any_point(point: CrashPoint, count: int) -> None:
    mocks = {f"judge[{index}]": [slow(10 * index, {"v": index})] for index in range(3)}
    made = World(mocks)
    made.deploy(workflow(PANEL))
    made.crash_at(point, count)
    run = made.start("w", {})
    assert not isinstance(run, Rejection)
    made.drive()
    assert made.projection(run).status == "completed"
    assert made.state(run).context()["state"]["votes"] == [0, 1, 2]
    assert [visit.node for visit in made.projection(run).begun()].count("judge") == 3
    assert made.check() == []


def test_what_was_committed_but_not_told_is_delivered_once_by_the_next_engine() -> None:
    made = World({"a": [quick()]})
    made.deploy(workflow(CHAIN))
    made.crash_at("after_commit", 1)
    run = made.start("w", {})
    assert not isinstance(run, Rejection)
    made.drive()
    assert made.workers.dispatches[run, FIRST] == 1
    assert made.projection(run).status == "completed"


def test_a_crash_that_is_not_reached_stays_due() -> None:
    made, _run = world(CHAIN)
    made.crash_at("after_dispatch", 99)
    made.drive()
    assert made.crash_is_due


def test_a_released_result_that_is_lost_in_a_crash_comes_again() -> None:
    made, run = world(CHAIN, {"a": [HOLD]})
    made.settle()
    made.crash_at("before_commit")
    assert made.release(run, FIRST, quick({"n": 7})) is None
    made.drive()
    assert made.projection(run).status == "completed"
    assert made.projection(run).visits[FIRST].output == {"n": 7}
    assert made.workers.dispatches[run, FIRST] == 2


def test_a_paused_run_keeps_its_timers_still_also_over_a_crash() -> None:
    made, run = world(WAIT)
    made.advance(400)
    assert made.send(run, PauseRun()) is None
    made.advance(10_000)
    made.crash()
    made.advance(10_000)
    assert made.send(run, ResumeRun()) is None
    made.advance(599)
    assert made.projection(run).status == "running"
    made.advance(1)
    assert made.projection(run).status == "completed"


def test_an_idempotency_key_starts_one_run() -> None:
    made, run = world(CHAIN, idempotency_key="k")
    assert made.start("w", {}, idempotency_key="k") == run
    assert made.start("w", {}, idempotency_key="other") != run
    assert len(made.runs) == 2


def test_a_command_to_nobody_is_refused() -> None:
    made, _run = world(CHAIN)
    rejection = made.send(RunId("nobody"), SendSignal("go"))
    assert rejection is not None and rejection.kind == "NOT_FOUND"
    unknown = made.start("nothing", {})
    assert isinstance(unknown, Rejection) and unknown.kind == "NOT_FOUND"


def test_a_world_that_never_rests_says_so() -> None:
    document = {
        "workflow": "w",
        "start": "a",
        "nodes": {"a": {}, "b": {}},
        "limits": {"max_tokens_per_run": 1_000_000},
        "transitions": [{"from": "a", "to": "b"}, {"from": "b", "to": "a", "condition": "true"}],
    }
    made, _run = world(document, {"a": [slow(1)], "b": [slow(1)]})
    with pytest.raises(Restless), pytest.MonkeyPatch.context() as patch:
        patch.setattr("treadle.testing.world.world.HAPPENINGS_MAX", 500)
        made.drive()


def test_a_state_that_is_not_the_fold_of_its_history_is_reported() -> None:
    made, run = world(CHAIN)
    made.drive()
    made.state(run).visits += 1
    made._checked.clear()
    assert any("visits" in problem for problem in made.check())
