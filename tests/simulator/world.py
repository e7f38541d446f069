"""A simulated world: engines, workers and people around one store, from one seed, in virtual time.

Owns the two phases. In the *safety phase* faults strike and nothing wrong may ever be committed. Then faults stop,
every process is brought up again and everybody becomes helpful: in the *liveness phase* every run must end, within a
bound. The auditor watches all along and is asked for the whole picture at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.simulator.audit import Auditor
from tests.simulator.audit.complaint import Violation
from tests.simulator.catalog import Deployment
from tests.simulator.coverage import Coverage
from tests.simulator.crew import Crew
from tests.simulator.draw import Draw
from tests.simulator.faults import Faults
from tests.simulator.hub import Ear, Hub
from tests.simulator.line import LEASE_MS, SLOW_MS, Line
from tests.simulator.logs import ERRORS, listening
from tests.simulator.node import Engine, NodeClock, Worker
from tests.simulator.people import People
from tests.simulator.plan import Plan
from tests.simulator.post import Post
from tests.simulator.schedule import Host, Schedule
from tests.simulator.shelves import OBSERVER, ShelfName, make_shelves
from treadle.kernel.decide import decide
from treadle.kernel.state import RunState
from treadle.model.commands import CancelRun, Command
from treadle.model.decision import Decision
from treadle.model.definition import Node, Workflow
from treadle.model.effects import Effect
from treadle.model.events import Event, RunStarted, TokenDispatched
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED
from treadle.runtime.command import presence
from treadle.runtime.command.commander import Remote
from treadle.runtime.coordinate import coordinator, library
from treadle.runtime.coordinate.library import KIND, as_document
from treadle.store.port import Batch, Fence, StoredDocument
from treadle.store.rows import shard_of
from treadle.testing.world.clock import EPOCH_MS

HELP_MS = 40
LIVENESS_MS = 60_000
CROWD = 200
AHEAD_MS = 2 * SLOW_MS
"""An engine's idea of the store's time may be ahead of it by as long as asking takes."""
STEPS_MAX = 400_000


class KernelRaised(Exception):
    """The kernel broke down on a command: whatever the reason, it must never."""

    def __init__(self, run: RunId, command: object, problem: BaseException) -> None:
        super().__init__(f"deciding {command} raised {type(problem).__name__}: {problem}")
        self.run = run


class _Crowded(Exception):
    """There are more runs than the steps suffice for."""


class World:
    """See the module's docstring."""

    def __init__(
        self, plan: Plan, workflows: Sequence[Workflow], coverage: Coverage, store: ShelfName = "memory"
    ) -> None:
        self.plan = plan
        self.draw = Draw(plan.seed, "world")
        self.coverage = coverage
        self.faults = Faults(plan)
        self.schedule = Schedule(Draw(plan.seed, "order"), EPOCH_MS)
        self.shelves = make_shelves(store, plan.shards, lambda: self.schedule.now, Random(f"{plan.seed}/store"))
        self.catalog = Deployment(workflows)
        for workflow in workflows:
            graph = self.catalog.lookup(workflow.workflow, None)
            assert graph is not None
            self._ask("put_document", KIND, workflow.workflow, graph.hash, as_document(workflow))
        self.documents: dict[tuple[Any, ...], list[StoredDocument]] = {}
        self.epochs: dict[int, int] = {}
        """The newest lease of each shard that the store has given."""
        self.hub = Hub()
        self.auditor = Auditor(self.catalog)
        self.causes: dict[int, tuple[Any, Command, list[Effect]]] = {}
        """By identity of a decision's events: what caused it, what it asks for."""
        self.crew = Crew(self)
        self.people = People(self)
        self.post = Post(self)
        self.runs: list[RunId] = []
        self.probe = RunId("probe")
        self._serial = 0
        self._steps_max = STEPS_MAX
        self.outside = Host("outside", self.schedule)
        self.outside.boot(self._go_out)
        self.engines = [Engine(f"engine-{number}", self) for number in range(plan.engines if plan.shards > 1 else 1)]
        self.workers = [Worker("worker-0", self)] if plan.shards > 1 and plan.has("queue") else []

    async def _go_out(self) -> None:
        line, ear = Line(self, self.outside, "outside"), Ear(self, self.outside)
        clock = NodeClock(self.outside, 0)
        alone = presence.Alone(line, self._owner, lambda: self.schedule.now)  # type: ignore[arg-type]
        there = presence.Shared(line) if self.plan.shards > 1 else alone  # type: ignore[arg-type]
        self.post.remote = Remote(line, clock, ear, there)  # type: ignore[arg-type]
        await instantly_refreshed(self.post.remote)
        for work in (self.people.start_runs(), self.people.send_signals(), self.people.operate()):
            self.outside.spawn(work)

    def _owner(self) -> tuple[str, int] | None:
        """Of a store that nobody shares: the process that has it open, as the operating system tells."""
        engine = self.engines[0]
        return (engine.owner, 0) if engine.core is not None else None

    def _ask(self, verb: str, *arguments: Any) -> Any:
        """The store itself, which no fault hides from the observer."""
        return self.shelves.ask(getattr(self.shelves.of(OBSERVER), verb), *arguments)

    def history(self, run: RunId) -> list[Event]:
        """What the store has of a run."""
        history: list[Event] = self._ask("history", run)
        return history

    def serial(self) -> int:
        self._serial += 1
        return self._serial

    def state(self, run: RunId) -> RunState:
        """A run as its committed history has it: what an omniscient observer knows."""
        return self.auditor.runs[run].state

    def node(self, run: RunId, ref: str) -> Node:
        return self.state(run).graph.nodes[ref].definition

    # What production code does is seen here

    def decide(self, graph: Any, state: RunState, command: Command, now: int, catalog: Any) -> Decision:
        """The kernel's, with everything about it noted."""
        from treadle.runtime.coordinate.library import VersionMissing

        situation = self.coverage.situation(state, command)
        run = getattr(command, "run", state.run) if state.seq == 0 else state.run
        try:
            decision = decide(graph, state, command, now, catalog)
        except VersionMissing:
            raise
        except Exception as problem:
            raised = KernelRaised(run, command, problem)
            raised.__cause__ = problem
            self.schedule.problem = self.schedule.problem or raised
            raise
        self.coverage.decided(situation, decision)
        self.causes[id(decision.events)] = (decision.events, command, list(decision.effects))
        return decision

    def witness(self, host: Host, batch: Batch, fences: Sequence[Fence]) -> None:
        by_shard = {fence.shard: fence for fence in fences}
        try:
            for commit in batch.commits:
                _, cause, effects = self.causes.pop(id(commit.events))
                if commit.events and isinstance(commit.events[0], RunStarted):
                    self.runs.append(commit.run)
                shard = shard_of(commit.run, self.plan.shards)
                if by_shard[shard].epoch < self.epochs[shard]:
                    text = f"{by_shard[shard]} has written, and epoch {self.epochs[shard]} of its shard is given away"
                    raise Violation(commit.run, "fence", text)
                self.auditor.committed(commit, cause, by_shard[shard], self.schedule.now + AHEAD_MS, shard, effects)
                self.coverage.committed(commit, self.state(commit.run).graph.definition)
                self._compare(host, commit.run)
        except Violation as violation:
            self.schedule.problem = self.schedule.problem or violation

    def _compare(self, host: Host, run: RunId) -> None:
        """The idea of a run that the engine has which has just written it is the fold of its history, unless it has
        decided more since."""
        assert isinstance(host, Engine)
        state = host.state(run)
        if state is not None and state.seq == self.auditor.runs[run].state.seq:
            self.auditor.compare(run, state)

    def close(self) -> None:
        self.schedule.close()
        self.shelves.close()

    # The two phases

    def live(self) -> bool:
        """Both phases, and the final audit. Raises Violation or KernelRaised. False: it had to be thinned out."""
        honest = coordinator.decide, library.compile_graph  # type: ignore[attr-defined]
        coordinator.decide, library.compile_graph = self.decide, self.catalog.compile  # type: ignore[attr-defined]
        try:
            with listening():
                try:
                    self._live()
                except _Crowded:
                    self._thin_out()
                    return False
        finally:
            coordinator.decide, library.compile_graph = honest  # type: ignore[attr-defined]
        return True

    def _live(self) -> None:
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
        self._check_executions()

    def _check_executions(self) -> None:
        """An engine's own work is executed only when it was handed out, and once each time."""
        handed_out = Counter(
            (run, event.token, event.attempt)
            for run, watched in self.auditor.runs.items()
            for event in watched.events
            if isinstance(event, TokenDispatched)
        )
        for attempt, begun in self.crew.begun.items():
            if begun > handed_out[attempt]:
                text = f"attempt {attempt} was executed {begun} times and handed out {handed_out[attempt]} times"
                raise Violation(attempt[0], "executions", text)

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

    def _pass(self, ms: int) -> None:
        is_over = self.schedule.run_for(ms, self._steps_max)
        if self.schedule.problem is not None:
            raise self.schedule.problem
        if ERRORS:
            raise Violation(self.probe, "logged", ERRORS[0])
        if not is_over:
            if len(self.runs) > CROWD:
                raise _Crowded
            unfinished = self._unfinished() or self.runs
            raise Violation(unfinished[0], "liveness", f"{self._steps_max} steps and no rest: somebody spins")

    def _calm_down(self) -> None:
        self.faults.calm = True
        for process in (*self.engines, *self.workers):
            if process.is_up and process.stalled_until > self.schedule.time():
                process.die()
            process.come_back()

    def _at_rest(self) -> bool:
        rested = not self._unfinished() and not self.people.needed() and self.probe in self.auditor.runs
        shards = range(self.plan.shards)
        return rested and not self._ask("outbox", shards) and not self._ask("inbox", shards)

    def _unfinished(self) -> list[RunId]:
        return [run for run in self.runs if self.state(run).status not in RUN_ENDED]

    def _stuck(self) -> str:
        lines = []
        for run in self._unfinished():
            state = self.state(run)
            waits = [f"{t.id} {t.node} {t.state} {t.waiting or ''}".strip() for t in state.tokens.values()]
            lines.append(f"{run} is {state.status}; visits: {', '.join(waits)}; timers: {list(state.timers.values())}")
        shards = range(self.plan.shards)
        rows, requests = self._ask("outbox", shards), self._ask("inbox", shards)
        return (
            "\n".join(lines) or f"outbox: {rows[:3]}, inbox: {requests[:3]}, probe: {self.probe in self.auditor.runs}"
        )


async def instantly_refreshed(remote: Remote) -> None:
    from treadle.errors import StoreUnavailable

    while True:
        try:
            await remote.library.refresh()
        except StoreUnavailable:
            continue
        return
