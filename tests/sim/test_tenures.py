"""The simulator's check that nothing is acknowledged before it is written: it notices a start that no history shows."""

from __future__ import annotations

import pytest

from tests.simulator.audit.complaint import Violation
from tests.simulator.post import Letter, stands_in
from tests.simulator.tenures import Tenures
from treadle.model.commands import StartRun
from treadle.model.events import RunStarted
from treadle.model.ids import RunId

RUN, TWIN = RunId("run-0"), RunId("run-0-again")
START = StartRun(run=TWIN, input={}, idempotency_key="key-0")
LOOP = object()


def told() -> Tenures:
    """A process has decided the start of the twin, and nothing of it is written."""
    tenures = Tenures(lambda _run: 0, lambda _owner: True, is_sound=True)
    tenures.decided(START, LOOP, has_events=True)
    return tenures


def test_a_start_that_no_run_shows_was_acknowledged_too_early() -> None:
    with pytest.raises(Violation, match="before anything of it was written"):
        told().check_told(stands_in(Letter(1, TWIN, START), TWIN), START, LOOP, [])


def test_a_start_that_was_answered_with_the_run_of_its_key_is_held_against_that_run() -> None:
    run = stands_in(Letter(1, TWIN, START), RUN)
    assert run == RUN
    told().check_told(run, START, LOOP, [RunStarted(1, 0, RUN, "main", 1, "", {})])
    with pytest.raises(Violation, match="before anything of it was written"):
        told().check_told(run, START, LOOP, [])
