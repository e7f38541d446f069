"""Choose the visit that a step means (docs/reference/scenarios.md, Addresses).

A step takes the one live visit that fits. Several live ones are an error of the scenario unless `visit: n`
says which (1 = oldest). With none that fits the step goes to the latest visit there is: a late or wrong
answer has to be sent to somebody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from treadle.model.errors import Rejection
from treadle.model.ids import RunId
from treadle.testing.scenario.observed import Observed, ObservedRun, find_runs, other_runs
from treadle.testing.scenario.place import ValuePlace
from treadle.testing.world.address import Address
from treadle.testing.world.projection import Visit


class Chosen(NamedTuple):
    """A visit and the run it belongs to."""

    run: RunId
    visit: Visit


class VisitChoice(NamedTuple):
    """What a step asks for."""

    address: str
    place: ValuePlace
    visit: int | None
    within: ObservedRun | None
    """The run a step names by `run:`; None: the run under test, or the run that has the node."""


Fits = Callable[[Chosen], bool]


def candidates(choice: VisitChoice, observed: Observed) -> list[Chosen] | Rejection:
    """Every visit the address means, oldest first; a node nobody has is not found.

    A recursive run may wait below itself: where the run under test has not been, its node may be another run's.
    """
    named = {} if choice.within else observed.named
    run = choice.within or observed.run
    found = find_runs(choice.address, run, named)
    if not found:
        return Rejection("NOT_FOUND", f"no run here has a node {choice.address!r}")
    return _visits(found) or _visits(other_runs(choice.address, run, named))


def _visits(found: list[tuple[ObservedRun, Address]]) -> list[Chosen]:
    return [Chosen(run.projection.run, visit) for run, address in found for visit in run.projection.fitting(address)]


def choose(choice: VisitChoice, observed: Observed, fits: Fits) -> Chosen | Rejection:
    """The visit a step goes to."""
    found = candidates(choice, observed)
    if isinstance(found, Rejection):
        return found
    if not found:
        return Rejection("INVALID_STATE", f"{choice.address} has not been visited")
    live = [chosen for chosen in found if chosen.visit.live and fits(chosen)]
    if choice.visit is not None:
        return _numbered(choice, live if len(live) > 1 else found)
    if len(live) > 1:
        names = ", ".join(f"{chosen.visit} on {chosen.visit.path}" for chosen in live)
        choice.place.refuse(f"{choice.address} means {len(live)} live visits ({names}); say `visit: n`")
    fitting = live or [chosen for chosen in found if fits(chosen)]
    return fitting[-1] if fitting else _latest(found)


def _numbered(choice: VisitChoice, found: list[Chosen]) -> Chosen:
    assert choice.visit is not None
    if choice.visit > len(found):
        choice.place.refuse(f"{choice.address} has {len(found)} visits, there is no number {choice.visit}")
    return found[choice.visit - 1]


def _latest(found: list[Chosen]) -> Chosen:
    live = [chosen for chosen in found if chosen.visit.live]
    return (live or found)[-1]
