"""The view of an expectation: the runs of a world, by name, and the visits an address means in them.

Owns the rule by which a node ref finds its run (docs/reference/scenarios.md, Addresses). Must not compare anything,
nor change the world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treadle.model.states import Waiting
from treadle.testing.world.address import Address, parse_address
from treadle.testing.world.projection import Projection, Visit

Json = Any


@dataclass(slots=True)
class ObservedRun:
    """One run: its history as visits, and the few things only the engine knows."""

    workflow: str
    refs: frozenset[str]
    """Of the nodes in its definition."""
    projection: Projection
    context: Callable[[], dict[str, Json]]
    """{"state": …, "output": …} of the run's own scope, now."""
    dispatches: Callable[[Visit], int]
    awaiting: Callable[[Visit], int | None]
    """Live branches a visit that waits for siblings still waits for."""
    spent: Callable[[], dict[str, float]] = dict
    """By part of a budget, children included."""

    def waiting(self) -> list[tuple[Visit, Waiting]]:
        return [(visit, visit.waiting) for visit in self.projection.visits.values() if visit.waiting]


@dataclass(slots=True)
class Observed:
    """The run under test and everything beside it."""

    run: ObservedRun
    named: Mapping[str, Sequence[ObservedRun]]
    """By the name a step gave, and by workflow; in order of creation."""
    now: int
    queue: Callable[[], list[str]]
    """Names of the queued runs, in the order in which they will start."""

    def focused(self, run: ObservedRun) -> Observed:
        """The same world with another run under test."""
        return Observed(run, self.named, self.now, self.queue)

    def visits(self, text: str) -> list[tuple[ObservedRun, Visit]]:
        """The visits an address means, oldest first."""
        found = find_runs(text, self.run, self.named)
        return [(run, visit) for run, address in found for visit in run.projection.fitting(address)]


def find_runs(
    text: str, run: ObservedRun, named: Mapping[str, Sequence[ObservedRun]]
) -> list[tuple[ObservedRun, Address]]:
    """The run under test if it has the node; else the runs of the only other workflow that has it."""
    address = parse_address(text, run.refs)
    return [(run, address)] if address is not None else other_runs(text, run, named)


def other_runs(
    text: str, run: ObservedRun, named: Mapping[str, Sequence[ObservedRun]]
) -> list[tuple[ObservedRun, Address]]:
    """The runs beside the run under test that an address may mean: those of the only workflow that has the node."""
    others = {id(other): other for runs in named.values() for other in runs if other is not run}
    found = [(other, parse_address(text, other.refs)) for other in others.values()]
    fitting = [(other, address) for other, address in found if address is not None]
    return fitting if len({other.workflow for other, _address in fitting}) == 1 else []
