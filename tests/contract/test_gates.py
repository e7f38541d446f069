"""Open gates: rows beside the runs, for every store there is."""

from __future__ import annotations

from typing import Any

from tests.contract.making import OTHER, RUN, TOKEN, begin, commit, started
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RUN_GATE
from treadle.model.states import RunStatus
from treadle.store.port import Batch


def test_an_open_gate_is_found_until_it_closes(store: Any) -> None:
    fence = store.held()
    opened = e.GateOpened(2, 40, TOKEN, {"a": 1}, "Sign", {"fields": []}, {"to": ["ann"]}, 900)
    (row,) = store.commit(Batch([commit(0, started(), opened, effects=(f.OpenGate(TOKEN, "sign"),))]), fence)
    assert row.effect == f.OpenGate(TOKEN, "sign"), "somebody has to be told"
    store.commit(Batch([commit(0, started(OTHER), run=OTHER, effects=(f.OpenGate(TOKEN, "n"),))]), fence)
    first, second = store.find_gates()
    assert (first.run, second.run) == (OTHER, RUN), "longest open first"
    assert (second.node, second.workflow, second.opened, second.title) == ("sign", "w", 40, "Sign")
    assert (second.assign, second.due) == ({"to": ["ann"]}, 900)
    assert store.find_gates(RUN) == [second]
    assert store.find_gates(limit=1) == [first]
    assert store.commit(Batch([commit(2, effects=(f.NoteClaim(TOKEN, "ann"),))]), fence) == []
    assert [(row.run, row.claimed_by) for row in store.find_gates()] == [(OTHER, None), (RUN, "ann")]
    noted = [commit(2, effects=(f.NoteClaim(TOKEN, "bob"),)), commit(2, effects=(f.NoteClaim(TOKEN),))]
    store.commit(Batch(noted), fence)
    assert store.find_gates(RUN) == [second], "given back"
    assert store.commit(Batch([commit(2, effects=(f.CloseGate(TOKEN),))]), fence) == []
    assert store.find_gates(RUN) == []


def test_a_claim_in_the_transaction_that_opens_or_closes_the_gate_is_part_of_it(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN, f.OpenGate(TOKEN, "n"), f.NoteClaim(TOKEN, "ann")), fence)
    assert [row.claimed_by for row in store.find_gates()] == ["ann"]
    store.commit(Batch([commit(1, effects=(f.NoteClaim(TOKEN, "bob"), f.CloseGate(TOKEN)))]), fence)
    assert store.find_gates() == []
    store.commit(Batch([commit(1, effects=(f.NoteClaim(TOKEN, "eve"), f.OpenGate(TOKEN, "n")))]), fence)
    assert [row.claimed_by for row in store.find_gates()] == [None], "a gate that opens again is nobody's"


def test_the_gate_of_a_run_says_what_may_be_done(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN, f.OpenGate(RUN_GATE, "", "out of time"), f.OpenGate(TOKEN, "n")), fence)
    runs, visits = store.find_gates()
    assert (runs.visit, runs.node, runs.title, runs.can) == (0, "", "out of time", ("extend", "abort"))
    assert visits.can[0] == "answer"


def test_the_end_of_a_run_closes_its_gates(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN, f.OpenGate(TOKEN, "n")), fence)
    store.commit(begin(OTHER, f.OpenGate(TOKEN, "n")), fence)
    store.commit(Batch([commit(1, e.RunCancelled(2, 5, "ann"), status=RunStatus.CANCELLED)]), fence)
    assert [row.run for row in store.find_gates()] == [OTHER]
