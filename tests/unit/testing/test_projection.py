"""A history, read as visits."""

from __future__ import annotations

from tests.unit.testing.histories import begun, completed, created, read, started
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import RecordId, TokenId
from treadle.model.states import Mode, Waiting
from treadle.testing.world.address import Address, path_order

ONE = TokenId(1)
ERROR = Error("TASK_FAILED", "no", attempts=2, retryable=True)


def test_a_visit_begins_when_it_starts_and_ends_with_its_output() -> None:
    projection = read(started(), created(1, "ask"), *begun(1), completed(1, {"v": 1}))
    visit = projection.visits[ONE]
    assert (visit.state, visit.attempts, visit.output, visit.begun) == ("completed", 1, {"v": 1}, 4)
    assert not visit.live


def test_a_visit_that_was_not_admitted_has_not_begun() -> None:
    projection = read(started(), created(1, "ask"), e.TokenWaiting(0, 0, ONE, Waiting.MUTEX))
    assert projection.begun() == []
    assert projection.visits[ONE].waiting is Waiting.MUTEX


def test_attempts_count_node_attempts_and_task_retries_but_not_recoveries() -> None:
    projection = read(
        started(),
        created(1, "ask"),
        *begun(1),
        *begun(1, recovery=1),
        e.TokenRetryScheduled(0, 0, ONE, 2, 50, ERROR, tries=1),
        e.TokenResumed(0, 0, ONE, "retry"),
        *begun(1, attempt=2),
        completed(1, tries=2),
    )
    assert projection.visits[ONE].attempts == 5
    assert projection.visits[ONE].attempt == 2


def test_a_backoff_is_a_wait_for_a_timer() -> None:
    retry = e.TokenRetryScheduled(0, 0, ONE, 2, 50, ERROR)
    projection = read(started(), created(1, "ask"), *begun(1), retry)
    assert projection.visits[ONE].waiting is Waiting.TIMER


def test_visits_of_one_dispatch_are_in_path_order() -> None:
    branches = [created(token, "judge", f"root.ask.{11 - token}", origin=ONE) for token in range(2, 12)]
    begins = [event for token in range(2, 12) for event in begun(token)]
    projection = read(started(), created(1, "ask"), *begun(1), *branches, *begins)
    paths = [visit.path for visit in projection.begun()]
    assert paths == ["root", *(f"root.ask.{index}" for index in range(10))]
    assert path_order("root.a.2") < path_order("root.a.10")


def test_visits_of_different_dispatches_stay_in_the_order_of_history() -> None:
    projection = read(
        started(),
        created(1, "judge", "root.b.1", origin=TokenId(8)),
        created(2, "ask", "root.a.0", origin=TokenId(9)),
        *begun(1),
        *begun(2),
    )
    assert [visit.node for visit in projection.begun()] == ["judge", "ask"]


def test_the_run_ends_and_may_be_reopened() -> None:
    failed = e.RunFailed(0, 7, ERROR)
    assert read(started(), failed).error == ERROR
    reopened = read(started(), failed, e.RunResumed(0, 9, "ann", reopened=True))
    assert (reopened.status, reopened.error, reopened.ended_at) == ("running", None, None)


def test_a_compensation_is_a_visit_with_a_name_of_its_own() -> None:
    record = RecordId(1)
    projection = read(
        started(),
        created(1, "ask", frames=((1, 2),)),
        *begun(1),
        completed(1),
        e.CompensationRecorded(0, 0, record, ONE, "ask", "root", ((1, 2),)),  # type: ignore[arg-type]
        e.CompensationStarted(0, 0, record, "ask"),
        created(2, "ask", mode=Mode.COMPENSATION, record=record),
        *begun(2),
        e.CompensationFailed(0, 0, record, ERROR),
    )
    undo = projection.visits[TokenId(2)]
    assert (undo.name, str(undo)) == ("compensate(ask)", "compensate(ask[2])")
    assert projection.fitting(Address("ask", (2,), compensation=True)) == [undo]
    assert projection.records[record].status == "failed"


def test_a_projection_may_be_fed_in_pieces() -> None:
    whole = read(started(), created(1, "ask"), *begun(1), completed(1))
    pieces = read(started())
    pieces.apply(whole.events[1:2])
    pieces.apply(whole.events[2:])
    assert pieces.visits == whole.visits
