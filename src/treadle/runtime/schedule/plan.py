"""Decides what to do about a schedule now: a pure function of the due times, the running runs and the stored state.

    plan(schedule, state, running, now) → SchedulePlan(actions, state, wake)

The engine carries the actions out, stores `state`, and asks again at `wake`, when a run of the schedule ends, and when
the schedule is changed. Invariants:
  1. `state.last` only grows, and every due time at or before it was started, queued or left out, with a reason.
  2. A start carries the key of its occurrence, so deciding twice after a crash starts one run.
  3. Nothing here grows without bound: neither the times to catch up with nor the queue.

An occurrence is *late* if the engine did not ask within `late_ms` of its start: only then does `catch_up` matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.model.ids import RunId
from treadle.runtime.schedule.definition import Schedule
from treadle.runtime.schedule.times import missed, next_due, occurrence_key, starts_at

LATE_MS = 30_000
"""Half of cron's finest grain: a busy engine is still on time, one that was down is not."""
QUEUE_MAX = 100
"""As many as are ever caught up with; a schedule that is further behind will not recover by itself."""


class ScheduleState(Struct, frozen=True, omit_defaults=True):
    """The state of a schedule between two decisions."""

    last: int
    """The newest due time that was handled; at first, the moment the schedule was created."""
    queued: tuple[int, ...] = ()
    """Due times that wait for the end of the run before them, oldest first."""


class StartOccurrence(Struct, frozen=True, tag="start"):
    """Start the workflow for an occurrence."""

    due: int
    key: str


class SkipOccurrence(Struct, frozen=True, tag="skip"):
    """Leave out an occurrence, or several up to this one."""

    due: int
    reason: str
    count: int = 1
    """How many at least."""


class CancelPrevious(Struct, frozen=True, tag="cancel"):
    """Cancel an earlier run of the schedule, so that the next can start."""

    run: RunId
    reason: str


Action = StartOccurrence | SkipOccurrence | CancelPrevious


class SchedulePlan(Struct, frozen=True):
    """The actions in order, the state to store, and when to ask again (None: only when something changes)."""

    actions: tuple[Action, ...]
    state: ScheduleState
    wake: int | None


def plan(schedule: Schedule, state: ScheduleState, running: Sequence[RunId], now: int) -> SchedulePlan:
    """Decides. `running` are the runs of this schedule that have not ended, oldest first."""
    if schedule.paused:
        return SchedulePlan((), state, None)
    dues, skipped = _due(schedule, state, now)
    last = max([state.last, *dues, *(skip.due for skip in skipped)])
    actions, queued = _overlapped(schedule, state.queued, dues, running)
    following = next_due(schedule, last)
    wake = None if following is None else starts_at(schedule, following)
    return SchedulePlan((*skipped, *actions), ScheduleState(last, queued), wake)


def resume(state: ScheduleState, now: int) -> ScheduleState:
    """The state of a schedule that is resumed: times that passed while it was paused are not made up for."""
    return replace(state, last=max(state.last, now))


def start_key(schedule: Schedule, due: int) -> str:
    """The idempotency key of an occurrence's run."""
    return occurrence_key(schedule.name, due)


def late_ms(schedule: Schedule) -> int:
    """How long after its due time an occurrence is still on time."""
    return LATE_MS if schedule.every_ms is None else min(LATE_MS, schedule.every_ms)


def _due(schedule: Schedule, state: ScheduleState, now: int) -> tuple[list[int], list[SkipOccurrence]]:
    """The due times to start, oldest first, and the late ones to leave out."""
    passed = missed(schedule, state.last, now)
    ready: list[int] = []
    for due in passed.dues:
        if starts_at(schedule, due) > now:  # delayed by jitter; later ones must not overtake it
            break
        ready.append(due)
    if not ready:
        return [], []
    late = [due for due in ready if now - starts_at(schedule, due) > late_ms(schedule)]
    dropped: list[int] = []
    if schedule.catch_up == "none":
        dropped = late
    elif schedule.catch_up == "last":
        dropped = [due for due in late if due != ready[-1]]
    kept = [due for due in ready if due not in set(dropped)]
    skips = _skipped(dropped, f"missed; catch_up is {schedule.catch_up}")
    if passed.more and schedule.catch_up == "all":
        skips = [SkipOccurrence(ready[0], "missed; too many to catch up with all", 1)]
    return kept, skips


def _skipped(dues: list[int], reason: str) -> list[SkipOccurrence]:
    return [SkipOccurrence(dues[-1], reason, len(dues))] if dues else []


def _overlapped(
    schedule: Schedule, queued: tuple[int, ...], dues: list[int], running: Sequence[RunId]
) -> tuple[list[Action], tuple[int, ...]]:
    """The actions for the due times, and the new queue."""
    if schedule.overlap == "queue":
        return _queued(schedule, [*queued, *dues], bool(running))
    waiting = [*queued, *dues]  # times queued under an earlier `overlap` are due, too
    if not waiting:
        return [], ()
    if schedule.overlap == "allow":
        return [_start(schedule, due) for due in waiting], ()
    if schedule.overlap == "cancel_previous":
        *older, newest = waiting
        skips: list[Action] = list(_skipped(older, "overtaken by a later time before it could start"))
        cancels = [CancelPrevious(run, f"schedule {schedule.name!r}: the next run is due") for run in running]
        return [*skips, *cancels, _start(schedule, newest)], ()
    if running:
        return list(_skipped(waiting, "the run before it is still running")), ()
    first, *others = waiting
    return [_start(schedule, first), *_skipped(others, "the run before it is still running")], ()


def _queued(schedule: Schedule, waiting: list[int], busy: bool) -> tuple[list[Action], tuple[int, ...]]:
    actions: list[Action] = []
    if waiting and not busy:
        actions.append(_start(schedule, waiting.pop(0)))
    actions += _skipped(waiting[QUEUE_MAX:], f"{QUEUE_MAX} are waiting already")
    return actions, tuple(waiting[:QUEUE_MAX])


def _start(schedule: Schedule, due: int) -> StartOccurrence:
    return StartOccurrence(due, start_key(schedule, due))
