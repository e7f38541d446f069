"""What the auditor asks of whole runs: fences, folds, invariants, status, families."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.driving import RUN, TASK, Driven, graph_of
from tests.sim.forgeries_of_visits import CHILD, calling, child
from tests.simulator.audit.auditor import Auditor
from tests.simulator.audit.complaint import Violation
from tests.simulator.audit.journal import check_families
from tests.simulator.catalog import Deployment
from treadle.model import events as e
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus, TokenState
from treadle.store.port import Commit, Fence

GRAPH = graph_of({"nodes": {"a": TASK, "b": TASK}, "transitions": [{"from": "a", "to": "b"}]})
FENCE = Fence("engine-1", 0, 2)


def audited(
    *, fence: Fence = FENCE, status: RunStatus = RunStatus.RUNNING, extra: e.Event | None = None
) -> tuple[Auditor, Driven]:
    """A run's start, committed honestly but for what is given."""
    driven = Driven(GRAPH).start()
    auditor = Auditor(Deployment([GRAPH.definition]))
    auditor.committed(Commit(RUN, 0, driven.history, driven.outside.said, RunStatus.RUNNING), None, FENCE, 1_000, 0)
    decision = driven.finish("a")
    events = [*decision.events, *([extra] if extra is not None else [])]
    events[-1].seq = events[0].seq + len(events) - 1
    auditor.committed(
        Commit(RUN, events[0].seq - 1, events, decision.effects, status), driven.commands[-1][1], fence, 1_000, 0
    )
    return auditor, driven


def test_honest_commits_give_no_cause_for_complaint() -> None:
    auditor, driven = audited()
    auditor.compare(RUN, driven.state)
    auditor.conclude([])


@pytest.mark.parametrize(
    ("rule", "lie"),
    [
        ("fence", lambda: audited(fence=Fence("engine-2", 0, 1))),
        ("fence", lambda: audited(fence=Fence("engine-1", 1, 3))),
        ("status", lambda: audited(status=RunStatus.PAUSED)),
        ("fold", lambda: audited(extra=e.TimerFired(0, 1_000, 9, "wait"))),  # type: ignore[arg-type]
    ],
)
def test_a_commit_that_must_not_be_is_noticed(rule: str, lie: Callable[[], object]) -> None:
    with pytest.raises(Violation) as found:
        lie()
    assert found.value.rule == rule


def test_a_state_that_is_not_the_fold_of_the_history_is_noticed() -> None:
    auditor, driven = audited()
    driven.state.visits += 1
    with pytest.raises(Violation, match="visits"):
        auditor.compare(RUN, driven.state)


def test_a_state_that_breaks_an_invariant_is_noticed() -> None:
    auditor, _ = audited()
    auditor.runs[RUN].state.tokens[TokenId(2)].state = TokenState.COMPLETED
    with pytest.raises(Violation) as found:
        auditor.committed(Commit(RUN, 0, [], [], RunStatus.RUNNING), None, FENCE, 1_000, 0)
    assert found.value.rule.startswith("invariant")


def test_a_history_that_folds_to_another_state_in_the_end_is_noticed() -> None:
    auditor, _ = audited()
    auditor.runs[RUN].state.visits += 1
    with pytest.raises(Violation, match="another state"):
        auditor.conclude([])


def test_a_child_that_outlives_the_end_and_a_parent_that_waits_for_it_are_noticed() -> None:
    parent, below = calling(), child()
    parent.record.visits[1].child = below.record.run = CHILD
    check_families({RunId("run-1"): parent.record, CHILD: below.record})
    texts = [text for _, text in below.record.complaints]
    assert len(texts) == 2 and "child running" in texts[0] and "still waits" in texts[1]
