"""A recorded run that is read event by event into steps: what `steps` and `changes` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.model.states import TokenState
from treadle.testing.recorded.past import RecordedRun
from treadle.testing.world.projection import Projection, Visit

Json = Any
Step = dict[str, Json]
FAILED = (TokenState.FAILED, TokenState.TIMED_OUT)


def has_failed(visit: Visit) -> bool:
    """Whether the visit has failed or timed out."""
    return visit.state in FAILED


class ScenarioVersions:
    """The versions of workflows, numbered as a scenario deploys them."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}

    def begin(self, workflow: str, version: int) -> None:
        """A run begins under a version: it is the first of the scenario, if no other is."""
        if not any(name == workflow for name, _version in self._numbers):
            self._numbers[workflow, version] = 1

    def number(self, workflow: str, version: int) -> tuple[int, bool]:
        """The number of a version, and whether it has to be deployed first."""
        known = self._numbers.get((workflow, version))
        if known is None:
            known = sum(name == workflow for name, _version in self._numbers) + 1
            self._numbers[workflow, version] = known
            return known, True
        return known, False


class RecordedReading:
    """A run, and how it stands before the event that is read."""

    def __init__(self, recorded: RecordedRun, versions: ScenarioVersions) -> None:
        self.recorded = recorded
        self.projection = Projection()
        self.versions = versions
        versions.begin(recorded.workflow.workflow, recorded.started.version)

    def addressed(self, verb: str, token: int, fits: Callable[[Visit], bool], inside: str | None = None) -> Step:
        """A step about a visit, with its number where the address alone means another one. `inside`: the verb has a map
        with the address under this key."""
        visits = self.projection.visits
        visit = visits[token]  # type: ignore[index]
        alike = [other for other in visits.values() if str(other) == str(visit)]
        live = [other for other in alike if other.live and fits(other)]
        number: Step = {}
        if len(live) > 1 and visit in live:
            number = {"visit": live.index(visit) + 1}
        elif len(live) <= 1 and (live or [other for other in alike if fits(other)] or alike)[-1] is not visit:
            number = {"visit": alike.index(visit) + 1}
        return {verb: {inside: str(visit)} if inside is not None else str(visit), **number}
