"""What is done about a schedule: starts, what is left out and why, what is cancelled, what waits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.model.ids import RunId
from treadle.runtime.schedule.definition import Schedule
from treadle.runtime.schedule.plan import (
    LATE_MS,
    QUEUE_MAX,
    CancelPrevious,
    ScheduleState,
    SkipOccurrence,
    StartOccurrence,
    plan,
    resume,
)

HOUR = 3_600_000
OLD = RunId("old")


def hourly(**fields: Any) -> Schedule:
    return Schedule(name="h", workflow="w", cron="@hourly", **fields)


def starts(actions: Any) -> list[int]:
    return [action.due for action in actions if isinstance(action, StartOccurrence)]


def skips(actions: Any) -> list[tuple[int, int]]:
    return [(action.due, action.count) for action in actions if isinstance(action, SkipOccurrence)]


def test_before_its_time_nothing_happens_and_the_wake_is_its_time() -> None:
    decided = plan(hourly(), ScheduleState(0), [], HOUR - 1)
    assert (decided.actions, decided.state, decided.wake) == ((), ScheduleState(0), HOUR)


def test_at_its_time_it_starts_once_with_the_key_of_its_occurrence() -> None:
    decided = plan(hourly(), ScheduleState(0), [], HOUR + 5)
    assert decided.actions == (StartOccurrence(HOUR, f"schedule:h:{HOUR}"),)
    assert decided.wake == 2 * HOUR
    assert plan(hourly(), decided.state, [], HOUR + 6).actions == ()


def test_a_moment_late_is_on_time_also_where_nothing_is_caught_up() -> None:
    assert starts(plan(hourly(catch_up="none"), ScheduleState(0), [], HOUR + LATE_MS).actions) == [HOUR]
    late = plan(hourly(catch_up="none"), ScheduleState(0), [], HOUR + LATE_MS + 1)
    assert (starts(late.actions), skips(late.actions)) == ([], [(HOUR, 1)])


@pytest.mark.parametrize(
    ("catch_up", "started", "skipped"),
    [
        ("none", [], [(5 * HOUR, 5)]),
        ("last", [5 * HOUR], [(4 * HOUR, 4)]),
        ("all", [HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR, 5 * HOUR], []),
    ],
)
def test_what_was_missed_is_caught_up_as_the_schedule_says(
    catch_up: Any, started: list[int], skipped: list[tuple[int, int]]
) -> None:
    decided = plan(hourly(catch_up=catch_up, overlap="allow"), ScheduleState(0), [], 5 * HOUR + HOUR // 2)
    assert (starts(decided.actions), skips(decided.actions)) == (started, skipped)
    assert decided.state.last == 5 * HOUR


def test_the_one_that_is_on_time_is_catching_up_enough() -> None:
    decided = plan(hourly(catch_up="last", overlap="allow"), ScheduleState(0), [], 3 * HOUR)
    assert (starts(decided.actions), skips(decided.actions)) == ([3 * HOUR], [(2 * HOUR, 2)])


def test_catching_up_with_everything_has_an_end() -> None:
    decided = plan(hourly(catch_up="all", overlap="allow"), ScheduleState(0), [], 1_000 * HOUR)
    assert len(starts(decided.actions)) == 100
    assert "too many" in str(decided.actions[0])


@pytest.mark.parametrize(
    ("overlap", "actions"),
    [
        ("skip", (SkipOccurrence(HOUR, "the run before it is still running"),)),
        ("queue", ()),
        ("allow", (StartOccurrence(HOUR, f"schedule:h:{HOUR}"),)),
        (
            "cancel_previous",
            (CancelPrevious(OLD, "schedule 'h': the next run is due"), StartOccurrence(HOUR, f"schedule:h:{HOUR}")),
        ),
    ],
)
def test_a_run_that_still_lives_meets_the_overlap_policy(overlap: Any, actions: Any) -> None:
    assert plan(hourly(overlap=overlap), ScheduleState(0), [OLD], HOUR).actions == actions


def test_what_is_queued_starts_when_the_run_before_it_has_ended() -> None:
    one = hourly(overlap="queue")
    waiting = plan(one, ScheduleState(0), [OLD], HOUR)
    assert waiting.state.queued == (HOUR,)
    second = plan(one, waiting.state, [OLD], 2 * HOUR)
    assert second.state.queued == (HOUR, 2 * HOUR)
    freed = plan(one, second.state, [], 2 * HOUR + 5)
    assert (starts(freed.actions), freed.state.queued) == ([HOUR], (2 * HOUR,))


def test_the_queue_has_an_end() -> None:
    full = ScheduleState(HOUR * 500, tuple(range(QUEUE_MAX)))
    decided = plan(hourly(overlap="queue"), full, [OLD], HOUR * 501)
    assert len(decided.state.queued) == QUEUE_MAX
    assert skips(decided.actions) == [(HOUR * 501, 1)]


def test_of_several_that_would_cancel_each_other_only_the_newest_starts() -> None:
    decided = plan(hourly(overlap="cancel_previous", catch_up="all"), ScheduleState(0), [], 3 * HOUR)
    assert (starts(decided.actions), skips(decided.actions)) == ([3 * HOUR], [(2 * HOUR, 2)])


def test_a_paused_schedule_sleeps_and_what_passed_meanwhile_is_not_made_up_for() -> None:
    asleep = plan(hourly(paused=True), ScheduleState(0), [], 5 * HOUR)
    assert (asleep.actions, asleep.wake) == ((), None)
    awake = plan(hourly(catch_up="all"), resume(asleep.state, 5 * HOUR + 1), [], 5 * HOUR + 1)
    assert (awake.actions, awake.wake) == ((), 6 * HOUR)


def test_jitter_delays_the_start_and_not_the_key() -> None:
    one = hourly(jitter_ms=HOUR // 2)
    first = plan(one, ScheduleState(0), [], 1)
    assert first.wake is not None
    assert HOUR < first.wake < 2 * HOUR
    assert plan(one, first.state, [], first.wake - 1).actions == ()
    assert plan(one, first.state, [], first.wake).actions == (StartOccurrence(HOUR, f"schedule:h:{HOUR}"),)


@given(
    overlap=st.sampled_from(["skip", "queue", "allow", "cancel_previous"]),
    catch_up=st.sampled_from(["none", "last", "all"]),
    jitter=st.sampled_from([0, HOUR // 3]),
    moves=st.lists(st.tuples(st.integers(0, 6 * HOUR), st.booleans()), max_size=15),
)
def test_every_due_time_is_started_waits_or_is_left_out_exactly_once(
    overlap: Any, catch_up: Any, jitter: int, moves: list[tuple[int, bool]]
) -> None:
    one = hourly(overlap=overlap, catch_up=catch_up, jitter_ms=jitter)
    state, now, started, skipped = ScheduleState(0), 0, [], 0
    for ahead, busy in moves:
        now += ahead
        decided = plan(one, state, [OLD] if busy else [], now)
        assert decided.state.last >= state.last
        assert decided.wake is not None
        assert decided.wake > now or decided.wake == now
        started += starts(decided.actions)
        skipped += sum(count for _, count in skips(decided.actions))
        state = decided.state
    assert len(started) == len(set(started))
    assert len(started) + skipped + len(state.queued) == state.last // HOUR
