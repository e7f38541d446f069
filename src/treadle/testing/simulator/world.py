"""A simulated world: engines, workers and people around one store, from one seed, in virtual time.

Owns the two phases. In the *safety phase* faults strike and nothing wrong may ever be committed. Then faults stop,
every engine is brought up again and everybody becomes helpful: in the *liveness phase* every run must end, within a
bound. The auditor watches all along and is asked for the whole picture at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.kernel.state import RunState
from treadle.model.commands import CancelRun, Command
from treadle.model.definition import Node, Workflow
from treadle.model.events import RunStarted
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import Commit, Fence
from treadle.testing.clock import EPOCH_MS
from treadle.testing.simulator.audit import Auditor
from treadle.testing.simulator.audit.complaint import Violation
from treadle.testing.simulator.catalog import Deployment
from treadle.testing.simulator.coverage import Coverage
from treadle.testing.simulator.crew import Crew
from treadle.testing.simulator.depot import LEASE_MS, Depot
from treadle.testing.simulator.draw import Draw
from treadle.testing.simulator.engine import Engine
from treadle.testing.simulator.faults import Faults
from treadle.testing.simulator.people import People
from treadle.testing.simulator.plan import Plan
from treadle.testing.simulator.post import Post
from treadle.testing.simulator.schedule import Schedule
from treadle.testing.simulator.shelves import Shelves

HELP_MS = 40
"""Between two rounds of helpfulness in the liveness phase."""
LIVENESS_MS = 40_000
"""By then everything has ended: twenty times the longest timer, and no fault has delayed anything."""
CROWD = 200
"""Runs. Recursion in wide fan-outs breeds children by the hundred, in one seed of 50,000: nobody waits for such a world
when its steps are used up. It is thinned out instead: every run is cancelled, and all of them have to end of that."""
STEPS_MAX = 400_000
"""A seed takes a few thousand; one that takes this many spins."""
OVER = frozenset(
    {
        RunStatus.COMPLETED,
        RunStatus.FAILED,
        RunStatus.CANCELLED,
        RunStatus.TIMED_OUT,
        RunStatus.COMPENSATED,
        RunStatus.COMPENSATION_FAILED,
    }
)


class _Crowded(Exception):
    """There are more runs than the steps suffice for."""


class World:
    """See the module's docstring."""

    def __init__(
        self, plan: Plan, workflows: Sequence[Workflow], coverage: Coverage, shelves: Shelves | None = None
    ) -> None:
        self.plan = plan
        self.draw = Draw(plan.seed, "world")
        self.coverage = coverage
        self.schedule = Schedule(Draw(plan.seed, "order"), EPOCH_MS)
        self.faults = Faults(plan)
        self.depot = Depot(plan.shards, self.schedule, self.faults, shelves)
        self.depot.witness = self._witness
        self.post = Post(Draw(plan.seed, "post"), self.schedule, self.faults)
        self.catalog = Deployment(workflows)
        self.auditor = Auditor(self.catalog)
        self.crew = Crew(self)
        self.people = People(self)
        self.runs: list[RunId] = []
        self.probe = RunId("probe")
        """A run started when faults are over and leases have settled: whatever happened before, new work goes well."""
        self._serial = 0
        self._steps_max = STEPS_MAX
        self.engines = [Engine(f"engine-{number}", self) for number in range(plan.engines)]
        self.post.engines = self.engines

    def serial(self) -> int:
        """A number nobody else has."""
        self._serial += 1
        return self._serial

    def state(self, run: RunId) -> RunState:
        """A run as its committed history has it: what an omniscient observer knows."""
        return self.auditor.runs[run].state

    def node(self, run: RunId, ref: str) -> Node:
        return self.state(run).graph.nodes[ref].definition

    def compare(self, run: RunId, state: RunState | None) -> None:
        """An engine's idea of a run must be the fold of its history."""
        if state is not None:
            self.auditor.compare(run, state)

    def _witness(self, commits: Sequence[Commit], causes: Sequence[Command], fence: Fence) -> None:
        for commit, cause in zip(commits, causes, strict=True):
            if commit.events and isinstance(commit.events[0], RunStarted):
                self.runs.append(commit.run)
            self.auditor.committed(commit, cause, fence, self.depot.now, self.depot.shard_of(commit.run))
            self.coverage.committed(commit, self.state(commit.run).graph.definition)

    def live(self) -> bool:
        """Both phases, and the final audit. Raises Violation or KernelRaised. False: it had to be thinned out."""
        try:
            self._live()
        except _Crowded:
            self._thin_out()
            return False
        return True

    def _thin_out(self) -> None:
        """Within as many steps again everything is over that somebody wants over."""
        self._steps_max += STEPS_MAX
        self._calm_down()
        end = self.schedule.now + LIVENESS_MS
        while unfinished := self._unfinished():
            if self.schedule.now > end:
                raise Violation(unfinished[0], "liveness", f"cancelled and not over:\n{self._stuck()}")
            for run in unfinished:
                self.post.send(run, CancelRun(), tries=3)
            self.people.help_out()
            try:
                self._pass(2 * LEASE_MS)
            except _Crowded:
                raise Violation(unfinished[0], "liveness", "runs are cancelled and more come: no rest") from None
        self.auditor.conclude(self.post.letters)

    def _live(self) -> None:
        for process in (self.people.start_runs(), self.people.send_signals(), self.people.operate()):
            self.schedule.spawn(process)
        self._pass(self.plan.safety_ms)
        self._calm_down()
        self._pass(2 * LEASE_MS)
        self.people.start(self.probe, None)
        end = self.schedule.now + LIVENESS_MS
        while not self._at_rest():
            if self.schedule.now > end:
                raise Violation((self._unfinished() or self.runs)[-1], "liveness", self._stuck())
            self.people.help_out()
            self._pass(HELP_MS)
        self.auditor.conclude(self.post.letters)

    def _pass(self, ms: int) -> None:
        if not self.schedule.run_until(self.schedule.now + ms, self._steps_max):
            if len(self.runs) > CROWD:
                raise _Crowded
            unfinished = self._unfinished() or self.runs
            raise Violation(unfinished[0], "liveness", f"{self._steps_max} steps and no rest: somebody spins")

    def _calm_down(self) -> None:
        self.faults.calm = True
        for engine in self.engines:
            engine.skew = 0
            if engine.up and engine.stalled_until > self.schedule.now:
                engine.die()
            if not engine.up:
                engine.restart()

    def _at_rest(self) -> bool:
        rested = not self._unfinished() and not self.people.needed() and self.probe in self.auditor.runs
        return rested and not self.depot.outbox(range(self.plan.shards))

    def _unfinished(self) -> list[RunId]:
        return [run for run in self.runs if self.state(run).status not in OVER]

    def _stuck(self) -> str:
        lines = []
        for run in self._unfinished():
            state = self.state(run)
            waits = [f"{t.id} {t.node} {t.state} {t.waiting or ''}".strip() for t in state.tokens.values()]
            lines.append(f"{run} is {state.status}; visits: {', '.join(waits)}; timers: {list(state.timers.values())}")
        rows = self.depot.outbox(range(self.plan.shards))
        return "\n".join(lines) or f"{len(rows)} outbox rows are never delivered: {rows[:3]}"
