"""The generator reaches what matters: a fixed batch must leave no important cell empty.

A simulator that never compensates proves nothing about compensation. When a cell here stays empty the generator or the
world has lost something; make it likely again rather than taking the cell off the list.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable

import pytest

from tests.simulator import batch
from tests.simulator.coverage import Coverage
from tests.simulator.plan import FAULTS
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.definition import Merge, NodeJoin, Strategy, Synchronization

SEEDS = range(1_800, 2_700)
"""A batch in which no cell hangs on a single seed: the rarest kind of error comes five times."""

ERRORS = (
    *("NO_MATCHING_TRANSITION", "INVALID_COLLECTION", "INVALID_SPAWN_COUNT", "SYNC_TIMEOUT", "QUORUM_UNREACHABLE"),
    *("MIN_SUCCESS_NOT_MET", "NO_SUCCESSFUL_BRANCH", "BRANCH_FAILED", "SCHEMA", "TASK_FAILED", "TASK_TIMEOUT"),
    *("SUBWORKFLOW_FAILED", "LIMIT_EXCEEDED"),
)
STATES = (
    *("running", "paused", "completed", "failed", "cancelled", "timed_out"),
    *("compensating", "compensated", "compensation_failed"),
)
VISITS = (
    "FinishAttempt task executing",
    "FinishAttempt queue executing",
    "FinishAttempt slot executing",
    "FailAttempt task executing",
    "StartAttempt queue dispatched{queue}",
    "LoseWorker task executing",
    "CompleteGate human waiting{human}",
    "ReceiveCallback webhook waiting{external}",
    "EndChild workflow_call waiting{subworkflow}",
    "CancelToken task executing",
    "RetryToken task failed",
    "SkipToken task executing",
    "SkipToken task failed",
    "SkipToken human waiting{human}",
    "JumpToken task executing",
    "JumpToken task failed",
    "SetInput task failed",
)
FLOW = ("concurrency", "rate", "debounce", "batch")


@pytest.fixture(scope="module")
def seen() -> Coverage:
    return batch.play(SEEDS).coverage


def structs(module: object, root: type) -> list[type]:
    return [
        kind for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, root) and kind is not root
    ]


def choices(struct: type, field: str) -> Iterable[str]:
    """The values a definition's field may have."""
    return inspect.get_annotations(struct, eval_str=True)[field].__args__  # type: ignore[no-any-return]


def missing(wanted: Iterable[str], cells: Iterable[str]) -> list[str]:
    """What no cell begins with."""
    return [name for name in wanted if not any(f"{cell} ".startswith(f"{name} ") for cell in cells)]


@pytest.mark.slow
def test_every_type_of_event_happens(seen: Coverage) -> None:
    types = [str(kind.__struct_config__.tag) for kind in structs(e, e.Event)]  # type: ignore[attr-defined]
    assert not missing(types, seen.events)


@pytest.mark.slow
def test_every_command_changes_something_and_meets_every_state_of_a_run(seen: Coverage) -> None:
    names = [kind.__name__ for kind in structs(c, c.Command)]
    changing = [cell.rpartition(" ")[0].split()[0] for cell in seen.commands if cell.endswith("changed")]
    long = {"ExtendLease"}  # work that outlasts a third of a hand-over's lease: ten seconds, and none here does
    assert not missing([name for name in names if name not in long], changing)
    rare = {"CompensateRun", "SkipCompensation"}
    rare |= {"AdmitRun", "JoinBatch", "ForkRun"}  # sent to runs that are queued, or that do not exist yet
    rare |= {"ReportSpending"}  # sent by children to a run that waits for them
    cells = [f"{name} {state}" for name in names if name not in rare for state in ("running", "completed", "failed")]
    assert not missing(cells, seen.commands)
    assert not missing([f"SendSignal {state}" for state in STATES], seen.commands)


@pytest.mark.slow
def test_starts_wait_for_every_reason_and_queued_runs_are_changed(seen: Coverage) -> None:
    assert not missing(FLOW, seen.queued)
    assert not missing(
        [f"{name} queued changed" for name in ("AdmitRun", "JoinBatch", "CancelRun", "MigrateRun")], seen.commands
    )
    refused = ("StartRun DUPLICATE", "StartRun RATE_LIMITED")
    assert not missing(refused, seen.answers)


@pytest.mark.slow
def test_commands_meet_visits_in_the_states_that_matter(seen: Coverage) -> None:
    assert not missing(VISITS, seen.visits)


@pytest.mark.slow
def test_every_kind_of_join_fires_and_fails_in_every_way(seen: Coverage) -> None:
    strategies = list(choices(Strategy, "kind"))
    fired = [cell.split()[0] for cell in seen.joins if cell.endswith("join.fired")]
    early = [cell.split()[1] for cell in seen.joins if cell.endswith("join.fired")]
    assert not missing(strategies, fired)
    assert not missing(choices(Synchronization, "on_early_complete"), early)
    assert not missing(choices(Synchronization, "on_branch_failure"), [cell.split()[2] for cell in seen.joins])
    assert not missing(choices(NodeJoin, "kind"), seen.node_joins)
    assert not missing(choices(Merge, "strategy"), seen.merges)


@pytest.mark.slow
def test_every_fault_strikes_and_zombies_are_refused(seen: Coverage) -> None:
    assert not missing(FAULTS, seen.faults)
    assert seen.faults["refused LEASE_CONFLICT"] > 0


@pytest.mark.slow
def test_every_wait_timer_error_and_ending_occurs(seen: Coverage) -> None:
    waits = ("siblings", "timer", "human", "signal", "subworkflow", "external", "trigger", "mutex")
    timers = ("wait", "retry", "attempt", "lease", "trigger", "gate_due", "gate_remind", "gate_escalate", "sync", "run")
    assert not missing(waits, seen.waits)
    assert not missing(timers, seen.timers)
    assert not missing(ERRORS, seen.errors)
    assert not missing([f"run.{state}" for state in STATES if state != "running"], seen.endings)
