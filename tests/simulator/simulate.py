"""One seed, from its plan to its verdict. Also how a failing seed is made smaller."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.simulator.audit.complaint import Violation
from tests.simulator.coverage import Coverage
from tests.simulator.generator import generate
from tests.simulator.plan import Plan, plan_of
from tests.simulator.shelves import ShelfName
from tests.simulator.world import KernelRaised, World
from treadle.model.definition import Workflow
from treadle.model.events import Event
from treadle.model.ids import RunId

NOTHING: frozenset[str] = frozenset()


@dataclass(slots=True)
class Failure:
    """What went wrong, and everything needed to see why."""

    rule: str
    text: str
    run: RunId | None
    workflows: Sequence[Workflow]
    history: Sequence[Event]
    trace: str = ""


@dataclass(slots=True)
class Outcome:
    """Of one seed."""

    seed: int
    plan: Plan
    without: frozenset[str]
    coverage: Coverage
    failure: Failure | None = None
    steps: int = 0
    runs: int = 0
    completed_runs: int = 0
    completed_visits: int = 0
    store: ShelfName = "memory"


def simulate(seed: int, without: frozenset[str] = NOTHING, store: ShelfName = "memory") -> Outcome:
    """Play a seed; `without` switches features and faults of its plan off."""
    plan = plan_of(seed).without(without)
    if store == "sqlite":
        plan = replace(plan, shards=1)  # a file has one owner at a time
    workflows = generate(plan)
    world = World(plan, workflows, Coverage(), store)
    outcome = Outcome(seed, plan, without, world.coverage, store=store)
    try:
        if world.live():
            _check_meaning(world)
    except Violation as violation:
        outcome.failure = _failure(world, workflows, violation.rule, violation.text, violation.run)
    except Exception as raised:  # what production code lets through is a defect, too
        cause = raised.__cause__ if isinstance(raised, KernelRaised) else raised
        run = raised.run if isinstance(raised, KernelRaised) else None
        outcome.failure = _failure(world, workflows, f"raised {type(cause).__name__}", str(raised), run)
        outcome.failure.trace = "".join(traceback.format_exception(cause))
    finally:
        world.close()
    _count(world, outcome)
    return outcome


def _failure(world: World, workflows: Sequence[Workflow], rule: str, text: str, run: RunId | None) -> Failure:
    watched = world.auditor.runs.get(run) if run is not None else None
    return Failure(rule, text, run, workflows, list(watched.events) if watched is not None else [])


def _check_meaning(world: World) -> None:
    """A seed in which nothing can succeed proves nothing: the run started last, without faults, does its first task
    (unless the definition itself ends the run before: another start node fails, or terminates)."""
    first = world.auditor.runs[world.probe].record.visits.get(1)
    if first is None:
        return  # a limit on starts was in the way: it failed at once, or gave way to another
    if first.state in ("failed", "timed_out"):
        raise Violation(world.probe, "vacuous", f"the first visit of a run without faults is {first.state}")


def _count(world: World, outcome: Outcome) -> None:
    outcome.steps = world.schedule.steps
    outcome.runs = len(world.runs)
    outcome.completed_runs = sum(1 for watched in world.auditor.runs.values() if watched.state.status == "completed")
    outcome.completed_visits = world.coverage.events["token.completed"]
    world.coverage.faults.update(world.faults.seen)


def shrink(failed: Outcome) -> Outcome:
    """The same failure with as few features and faults as possible: switched off one by one, as long as it stays."""
    assert failed.failure is not None
    smallest = failed
    names = ["one_run", *sorted(failed.plan.faults), *sorted(failed.plan.features)]
    for _ in range(2):
        for name in names:
            if name in smallest.without:
                continue
            tried = simulate(failed.seed, smallest.without | {name}, failed.store)
            if tried.failure is not None and tried.failure.rule == failed.failure.rule:
                smallest = tried
    return smallest
