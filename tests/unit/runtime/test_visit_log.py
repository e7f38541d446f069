"""What the time of a visit is counted as."""

from __future__ import annotations

import pytest

from treadle.model.states import TokenState, Waiting
from treadle.runtime.view.visit_log import Spent, spend


@pytest.mark.parametrize(
    ("status", "waiting", "counted"),
    [
        (TokenState.PENDING, None, Spent(queue_ms=7)),
        (TokenState.DISPATCHED, None, Spent(queue_ms=7)),
        (TokenState.WAITING, Waiting.QUEUE, Spent(queue_ms=7)),
        (TokenState.EXECUTING, None, Spent(run_ms=7)),
        (TokenState.WAITING, Waiting.TIMER, Spent(wait_ms=7)),
        (TokenState.WAITING, Waiting.HUMAN, Spent(wait_ms=7)),
        (TokenState.WAITING, Waiting.MUTEX, Spent(wait_ms=7)),
        (TokenState.WAITING, Waiting.SIBLINGS, Spent(held_ms=7)),
        (TokenState.COMPLETED, None, Spent()),
        (TokenState.FAILED, None, Spent()),
    ],
)
def test_time_in_a_state_is_added_to_its_kind(status: TokenState, waiting: Waiting | None, counted: Spent) -> None:
    spent = Spent()
    spend(spent, status, waiting, 7)
    assert spent == counted
