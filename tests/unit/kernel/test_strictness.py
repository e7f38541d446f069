"""Commands that may be strict: over HTTP a command that changes nothing is refused, to a program it is accepted."""

from __future__ import annotations

import pytest

from tests.driving import RUN, Driven, graph_of
from treadle.model import commands as c

WAITS = {
    "nodes": {"post": {"action": {"kind": "signal", "name": "post", "key": "$.input.place"}}, "done": {}},
    "transitions": [{"from": "post", "to": "done"}],
}


@pytest.fixture
def driven() -> Driven:
    begun = Driven(graph_of(WAITS))
    begun.do(c.StartRun(RUN, {"place": "hall"}))
    return begun


def test_pausing_and_resuming_again_is_accepted_unless_strict(driven: Driven) -> None:
    assert driven.do(c.ResumeRun()).rejection is None
    assert driven.do(c.ResumeRun(strict=True)).rejection is not None
    assert driven.do(c.PauseRun()).rejection is None
    length = len(driven.history)
    assert driven.do(c.PauseRun()).rejection is None
    refused = driven.do(c.PauseRun(strict=True)).rejection
    assert refused is not None and refused.kind == "INVALID_STATE"
    assert len(driven.history) == length


def test_a_running_run_refuses_a_strict_abort_and_a_paused_one_ends(driven: Driven) -> None:
    refused = driven.do(c.AbortRun(strict=True)).rejection
    assert refused is not None and "cancel it instead" in refused.message
    driven.do(c.PauseRun())
    assert driven.do(c.AbortRun(strict=True)).rejection is None
    assert driven.state.status == "cancelled"


def test_an_awaited_signal_is_taken_or_refused_and_never_kept(driven: Driven) -> None:
    for name, key in (("post", "cellar"), ("parcel", "hall")):
        assert driven.do(c.SendSignal(name, key, awaited=True)).rejection is not None
        assert not driven.state.signals
    assert driven.do(c.SendSignal("post", "hall", awaited=True)).rejection is None
    assert driven.state.status == "completed"
