"""Results and progress of workers whose lease has run out: they count until another worker begins the work."""

from __future__ import annotations

from tests.driving import TASK
from tests.unit.kernel.test_answers import refused, run_of
from treadle.model import commands as c
from treadle.model.events import TokenProgress
from treadle.model.ids import TokenId


def test_a_result_under_a_lease_that_ran_out_counts_while_nobody_else_has_the_work() -> None:
    driven = run_of(TASK, queue="q")
    driven.do(c.StartAttempt(TokenId(1), 1, "w1", driven.now + 50))
    driven.fire("lease")
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {"x": 1}, worker="w1"))) is None
    assert TokenId(1) not in driven.state.tokens
    again = driven.do(c.FinishAttempt(TokenId(1), 1, {"x": 2}, worker="w1"))
    assert refused(again) == "LATE_RESULT"


def test_a_result_of_a_lost_worker_is_refused_once_another_has_begun() -> None:
    driven = run_of(TASK, queue="q")
    driven.do(c.StartAttempt(TokenId(1), 1, "w1", driven.now + 50))
    driven.fire("lease")
    driven.do(c.StartAttempt(TokenId(1), 1, "w2", driven.now + 50))
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="w1"))) == "LEASE_CONFLICT"
    driven.fire("lease")
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="w1"))) == "LEASE_CONFLICT"
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="w2"))) is None


def test_progress_of_a_worker_that_has_lost_the_work_is_refused() -> None:
    driven = run_of(TASK, queue="q")
    driven.do(c.StartAttempt(TokenId(1), 1, "w1", driven.now + 50))
    for share in (0.25, 0.5):
        told = driven.do(c.ReportProgress(TokenId(1), 1, 0, "share", share, worker="w1"))
        assert [event.type for event in told.events] == ["token.progress"]
    assert driven.token("a").progress == (1, 0, 2)
    driven.fire("lease")
    assert refused(driven.do(c.ReportProgress(TokenId(1), 1, 0, "share", 0.9, worker="w1"))) == "LATE_RESULT"


def test_what_an_attempt_has_used_up_is_kept_with_it() -> None:
    driven = run_of(TASK, queue="q")
    driven.do(c.StartAttempt(TokenId(1), 1, "w1", driven.now + 50))
    done = driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="w1", spent={"cost": 0.25}))
    spent = done.events[0]
    assert isinstance(spent, TokenProgress)
    assert (spent.name, spent.data) == ("spent", {"cost": 0.25})
