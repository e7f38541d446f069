"""One performance of a scenario on a fresh world, under one order of events.

Owns the sequence: start, settle, each step settled before and after, the end, what is expected. After every
step the invariants are checked in every run, and folding each history must give the state the engine decided
on. What does not hold raises `ScenarioFailure` with the histories as they are at that moment.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from treadle.errors import ScenarioError
from treadle.model.definition import Workflow
from treadle.model.errors import Error, Rejection
from treadle.model.states import RunStatus
from treadle.testing.scenario.acting import act
from treadle.testing.scenario.expectations import differences
from treadle.testing.scenario.form import CrashStep, Expectation, ExpectStep, MigrateStep, Scenario, ScenarioStep
from treadle.testing.scenario.observed import Observed, ObservedRun
from treadle.testing.scenario.report import ScenarioFailure, histories
from treadle.testing.scenario.stage import Stage
from treadle.testing.world.new_world import make_world
from treadle.testing.world.projection import Projection
from treadle.testing.world.store_names import StoreName


class Performance:
    """See the module's docstring."""

    def __init__(
        self, scenario: Scenario, workflows: Sequence[Workflow], seed: int | None = None, store: StoreName = "memory"
    ) -> None:
        self._scenario = scenario
        self._seed = seed
        self._first = workflows[0].workflow
        self._refs = frozenset(ref for workflow in workflows for ref in workflow.nodes)
        self._workflows = workflows
        self.world = make_world(store, {mock.address: mock.outcomes for mock in scenario.mocks}, seed)

    def play(self) -> list[str]:
        """The warnings of a performance that held."""
        with self.world:
            return self.perform()

    def perform(self) -> list[str]:
        """As `play`; the world stays open to be looked at."""
        versions: dict[str, int] = {}
        for workflow in self._workflows:
            versions.setdefault(workflow.workflow, self.world.deploy(workflow).version)
        start = self._scenario.start
        name = start.workflow or self._first
        with self._reporting("start"):
            run = self.world.start(
                name,
                start.input,
                version=versions[name],
                entity=start.entity,
                idempotency_key=start.idempotency_key,
            )
            if isinstance(run, Rejection):
                return self._refused(run)
            stage = Stage(self.world, run)
            self._settle("start")
        for number, step in enumerate(self._scenario.steps or (), 1):
            self._step(stage, number, step)
        with self._reporting("the end"):
            if self._scenario.steps is None:
                self.world.drive()
            self._settle("the end")
            if self._scenario.expect is not None:
                self._expect("expect", self._scenario.expect, stage.observed())
        return self._warnings()

    def _step(self, stage: Stage, number: int, step: ScenarioStep) -> None:
        label = f"step {number} (line {step.place.line})"
        with self._reporting(label):
            if isinstance(step, ExpectStep):
                self._expect(label, step.expectation, stage.observed())
                return
            rejection = act(stage, step)
            if not (isinstance(step, CrashStep) and step.at):
                self._settle(label)
            self._judge(label, step, rejection)

    def _judge(self, label: str, step: ScenarioStep, rejection: Rejection | None) -> None:
        """Whether a step was refused exactly if it was to be, and for the reasons that were given."""
        wanted = step.refused is not None or bool(step.expect_refused)
        if rejection is None:
            if wanted:
                reasons = step.refused or ", ".join(map(repr, step.expect_refused))
                raise self._failure(label, f"expected to be refused with {reasons}, was accepted")
            return
        got = f"{rejection.kind}: {rejection.message}"
        if not wanted:
            raise self._failure(label, f"expected to be accepted, was refused with {got}")
        if step.refused is not None and rejection.kind != step.refused:
            raise self._failure(label, f"expected to be refused with {step.refused}, was refused with {got}")
        missing = _unsaid(step, rejection, got)
        if missing:
            raise self._failure(label, f"expected the refusal to say {missing}, it says {got}")

    def _expect(self, label: str, expectation: Expectation, observed: Observed) -> None:
        found = differences(expectation, observed)
        if found:
            raise self._failure(label, "\n".join(str(difference) for difference in found))

    def _settle(self, label: str) -> None:
        self.world.settle()
        problems = self.world.check()
        if problems:
            raise self._failure(label, "an invariant does not hold\n" + "\n".join(problems))

    def _refused(self, rejection: Rejection) -> list[str]:
        """The run was never begun: an expectation sees a failed run without visits, and why."""
        expect = self._scenario.expect
        if expect is None or self._scenario.steps:
            raise self._failure("start", f"the run was refused with {rejection.kind}: {rejection.message}")
        projection = Projection()
        projection.status = RunStatus.FAILED
        projection.error = Error(rejection.kind, rejection.message)
        nobody = ObservedRun(
            workflow=self._first,
            refs=self._refs,
            projection=projection,
            context=lambda: {"state": {}, "output": {}},
            dispatches=lambda _visit: 0,
            awaiting=lambda _visit: None,
        )
        self._expect("expect", expect, Observed(nobody, {}, self.world.clock.now, list))
        return []

    def _warnings(self) -> list[str]:
        if self.world.crash_is_due:
            return ["a crash point was never reached"]
        return []

    @contextmanager
    def _reporting(self, label: str) -> Iterator[None]:
        """An engine that breaks is a failure of the scenario, with its history; a broken file is not."""
        try:
            yield
        except (ScenarioFailure, ScenarioError):
            raise
        except Exception as problem:
            where = "".join(traceback.format_exception(problem)[-4:]).rstrip()
            raise self._failure(label, f"the engine broke\n{where}") from problem

    def _failure(self, label: str, what: str) -> ScenarioFailure:
        order = f" (shuffle seed {self._seed})" if self._seed is not None else ""
        lines = "\n".join(f"  {line}" for line in what.splitlines())
        return ScenarioFailure(f"{label}{order}:\n{lines}", histories(self.world))


def _unsaid(step: ScenarioStep, rejection: Rejection, got: str) -> list[str]:
    """The texts that the refusal does not say. Of a migration's plan each text needs an entry of its own."""
    if not isinstance(step, MigrateStep) or not rejection.problems:
        return [text for text in step.expect_refused if text not in got]
    entries = [f"{entry.place}: {entry.message}" for entry in rejection.problems]
    return unmatched(step.expect_refused, entries)


def unmatched(texts: Sequence[str], entries: Sequence[str]) -> list[str]:
    """The texts for which no entry is left, if every text is given an entry that says it and no entry twice: an
    augmenting-path matching, because a text may fit several entries."""
    places: dict[int, int] = {}

    def placed(number: int, seen: set[int]) -> bool:
        for entry, said in enumerate(entries):
            if texts[number] in said and entry not in seen:
                seen.add(entry)
                if entry not in places or placed(places[entry], seen):
                    places[entry] = number
                    return True
        return False

    return [text for number, text in enumerate(texts) if not placed(number, set())]
