"""A simulated world: engines, workers and people around one store, from one seed, in virtual time.

Owns the two phases. In the *safety phase* faults strike and nothing wrong may ever be committed. Then faults stop,
every process is brought up again and everybody becomes helpful: in the *liveness phase* every run must end, within a
bound. The auditor watches all along and is asked for the whole picture at the end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.simulator.audit import Auditor
from tests.simulator.audit.complaint import Violation
from tests.simulator.catalog import Deployment
from tests.simulator.coverage import Coverage
from tests.simulator.crew import Crew
from tests.simulator.draw import Draw
from tests.simulator.faults import Faults
from tests.simulator.generator.generate import MAIN
from tests.simulator.generator.versions import Upgrade, upgrades
from tests.simulator.hub import Ear, Hub
from tests.simulator.line import LEASE_MS, SLOW_MS, Line
from tests.simulator.logs import ERRORS, listening
from tests.simulator.node import Engine, NodeClock, Worker
from tests.simulator.people import People
from tests.simulator.plan import Plan
from tests.simulator.post import Letter, Post, refreshed
from tests.simulator.schedule import Host, Schedule
from tests.simulator.shelves import OBSERVER, ShelfName, make_shelves
from tests.simulator.tenures import Tenures
from treadle.kernel.decide import decide, decide_fork
from treadle.kernel.migration_outputs import HistoryNeeded
from treadle.kernel.placing import placed
from treadle.kernel.points import Past
from treadle.kernel.state import RunState
from treadle.model.commands import CancelRun, Command, ForkRun
from treadle.model.decision import Decision
from treadle.model.definition import Node, Workflow
from treadle.model.effects import Effect, MarkStart
from treadle.model.events import Event, TokenDispatched
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED
from treadle.runtime.command import presence
from treadle.runtime.command.commander import Remote
from treadle.runtime.coordinate import coordinator, library
from treadle.runtime.coordinate.library import KIND, VersionMissing, as_document
from treadle.store.notices import CHANGED
from treadle.store.port import Batch, Fence, OutboxRow, StoredDocument
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
        self.documents: dict[tuple[Any, ...], list[StoredDocument]] = {}
        self.upgrades = upgrades(plan, list(workflows))
        self.catalog = Deployment([*workflows, *(upgrade.workflow for upgrade in self.upgrades)])
        self.deployed: dict[str, int] = {}
        """By name of a workflow: its newest version."""
        for workflow in workflows:
            self._put(workflow)
        self.forks = 0
        self._ear: Ear | None = None
        is_sound = not plan.faults & {"unknown_done", "unknown_lost", "stall", "cut_off"}
        self.tenures = Tenures(lambda run: shard_of(run, plan.shards), self._is_alive, is_sound=is_sound)
        self.hub = Hub()
        self.auditor = Auditor(self.catalog)
        self.causes: dict[int, tuple[Any, Command, list[Effect]]] = {}
        """By identity of a decision's events: what caused it, what it asks for."""
        self.crew = Crew(self)
        self.people = People(self)
        self.post = Post(self)
        self.runs: list[RunId] = []
        self.probe = self.place("probe", MAIN)
        self._probing: Letter | None = None
        self._serial = 0
        self._steps_max = STEPS_MAX
        self.outside = Host("outside", self.schedule)
        self.outside.boot(self._go_out)
        self.engines = [Engine(f"engine-{number}", self) for number in range(plan.engines if plan.shards > 1 else 1)]
        self.workers = [Worker("worker-0", self)] if plan.shards > 1 and plan.has("queue") else []

    async def _go_out(self) -> None:
        line, ear = Line(self, self.outside, "outside"), Ear(self, self.outside)
        self._ear = ear
        clock = NodeClock(self.outside, 0)
        alone = presence.Alone(line, self._owner, lambda: self.schedule.now)  # type: ignore[arg-type]
        there = presence.Shared(line) if self.plan.shards > 1 else alone  # type: ignore[arg-type]
        self.post.remote = Remote(line, clock, ear, there)  # type: ignore[arg-type]
        await refreshed(self.post.remote)
        for work in (self.people.start_runs(), self.people.send_signals(), self.people.operate(), self.people.deploy()):
            self.outside.spawn(work)

    # Workflows

    def _put(self, workflow: Workflow) -> int:
        """A new version of a workflow is in the store."""
        name = workflow.workflow
        self.deployed[name] = version = self.deployed.get(name, 0) + 1
        graph = self.catalog.lookup(name, version)
        assert graph is not None
        self._ask("put_document", KIND, name, graph.hash, as_document(workflow))
        self.documents.clear()
        return version

    def deploy(self, upgrade: Upgrade) -> int:
        """Somebody deploys a further version, and says so; which one it is."""
        version = self._put(upgrade.workflow)
        assert self._ear is not None
        self._ear.say(CHANGED)
        return version

    def mapping(self, name: str, before: int, to: int) -> dict[str, str]:
        """Which nodes of a version have which names in another one."""
        steps = [upgrade.nodes for upgrade in self.upgrades if upgrade.workflow.workflow == name]
        graph, nodes = self.catalog.lookup(name, before), {}
        for ref in graph.nodes if graph is not None else ():
            now = ref
            for step in steps[before - 1 : to - 1]:
                now = step.get(now, now)
            for step in reversed(steps[to - 1 : before - 1]):
                now = {after: first for first, after in step.items()}.get(now, now)
            if now != ref:
                nodes[ref] = now
        return nodes

    def place(self, name: str, workflow: str) -> RunId:
        """An id for a new run: one in the home of its workflow, if that limits its starts."""
        graph = self.catalog.lookup(workflow, None)
        limits = graph is not None and graph.flow is not None
        return placed(RunId(name), workflow, self.plan.shards) if limits else RunId(name)

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
        """Of the run's version, or of another one: work that is under way keeps the name it was begun with."""
        graph = self.state(run).graph
        return next(other.nodes[ref].definition for other in (graph, *graph.versions.values()) if ref in other.nodes)

    # What production code does is seen here

    def decide(self, graph: Any, state: RunState, command: Command, now: int, catalog: Any) -> Decision:
        """The kernel's, with everything about it noted."""
        return self._noted(state, command, lambda: decide(graph, state, command, now, catalog))

    def decide_fork(
        self, graph: Any, state: RunState, command: ForkRun, past: Past, now: int, catalog: Any
    ) -> Decision:
        return self._noted(state, command, lambda: decide_fork(graph, state, command, past, now, catalog))

    def _noted(self, state: RunState, command: Command, decide: Callable[[], Decision]) -> Decision:
        situation = self.coverage.situation(state, command)
        run = getattr(command, "run", state.run) if state.seq == 0 else state.run
        try:
            decision = decide()
        except (VersionMissing, HistoryNeeded):
            raise
        except Exception as problem:
            raised = KernelRaised(run, command, problem)
            raised.__cause__ = problem
            self.schedule.problem = self.schedule.problem or raised
            raise
        self.coverage.decided(situation, decision)
        self.causes[id(decision.events)] = (decision.events, command, list(decision.effects))
        self.tenures.decided(command, asyncio.get_running_loop(), has_events=bool(decision.events))
        return decision

    def witness(self, host: Host, batch: Batch, fences: Sequence[Fence]) -> None:
        by_shard = {fence.shard: fence for fence in fences}
        try:
            self.tenures.check_fences(batch.commits[0].run if batch.commits else self.probe, fences)
            for commit in batch.commits:
                _, cause, effects = self.causes.pop(id(commit.events))
                shard = shard_of(commit.run, self.plan.shards)
                known = self.auditor.runs.get(commit.run)
                before = known.state if known is not None else None
                if known is None:
                    self.runs.append(commit.run)
                self.tenures.check_commit(commit, cause, by_shard[shard], before, host.loop)
                self.auditor.committed(commit, cause, by_shard[shard], self.schedule.now + AHEAD_MS, shard, effects)
                self.coverage.committed(self.auditor.runs[commit.run].newest, self.state(commit.run).graph.definition)
                self._compare(host, commit.run)
        except Violation as violation:
            self.schedule.problem = self.schedule.problem or violation

    def _is_alive(self, owner: str) -> bool:
        return any(engine.is_up and engine.owner == owner for engine in self.engines)

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
        ours: Any = coordinator
        honest = ours.decide, ours.decide_fork, library.compile_graph  # type: ignore[attr-defined]
        ours.decide, ours.decide_fork = self.decide, self.decide_fork
        library.compile_graph = self.catalog.compile  # type: ignore[attr-defined]
        try:
            with listening():
                try:
                    self._live()
                except _Crowded:
                    self._thin_out()
                    return False
        finally:
            ours.decide, ours.decide_fork, library.compile_graph = honest  # type: ignore[attr-defined]
        return True

    def _live(self) -> None:
        self._pass(self.plan.safety_ms)
        self._calm_down()
        self._pass(2 * LEASE_MS)
        self._probing = self.people.start("probe", None)
        end = self.schedule.now + LIVENESS_MS
        while not self._at_rest():
            if self.schedule.now > end:
                raise Violation((self._unfinished() or self.runs)[-1], "liveness", self._stuck())
            self.people.help_out()
            self._pass(HELP_MS)
        self.auditor.conclude(self.post.letters)
        self._check_executions()

    def _check_executions(self) -> None:
        """An engine's own work is executed only when it was handed out, and once each time; what a fork inherits was
        handed out in another run."""
        handed_out = Counter(
            (run, event.token, event.attempt)
            for run, watched in self.auditor.runs.items()
            for event in watched.events[watched.inherited :]
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
            unfinished = self._unfinished() or self.runs or [self.probe]  # the last: not even one has started so far
            raise Violation(unfinished[0], "liveness", f"{self._steps_max} steps and no rest: somebody spins")

    def _calm_down(self) -> None:
        self.faults.calm = True
        for process in (*self.engines, *self.workers):
            if process.is_up and process.stalled_until > self.schedule.time() and self.draw.chance(0.5):
                process.die()  # the others wake up, and go on as if nothing had happened
            process.come_back()

    def _at_rest(self) -> bool:
        rested = not self._unfinished() and not self.people.needed() and self._is_probed()
        shards = range(self.plan.shards)
        return rested and not self._undelivered() and not self._ask("inbox", shards)

    def _undelivered(self) -> list[OutboxRow]:
        """Marks of starts under a rate are kept until another start finds that they count no longer."""
        rows: list[OutboxRow] = self._ask("outbox", range(self.plan.shards))
        return [row for row in rows if not isinstance(row.effect, MarkStart)]

    def _is_probed(self) -> bool:
        """Whether the last start has become a run, or an item of one. One that a limit refuses is asked for again."""
        letter = self._probing
        if letter is None or letter.answered_at is None:
            return False
        if letter.rejection is not None and letter.rejection.kind in ("DUPLICATE", "RATE_LIMITED"):
            if self.schedule.now - letter.answered_at > LEASE_MS:
                self._probing = self.people.start(f"probe-{self.serial()}", None)
            return False
        self.probe = letter.result or letter.run
        return self.probe in self.auditor.runs

    def _unfinished(self) -> list[RunId]:
        return [run for run in self.runs if self.state(run).status not in RUN_ENDED]

    def _stuck(self) -> str:
        lines = []
        for run in self._unfinished():
            state = self.state(run)
            waits = [f"{t.id} {t.node} {t.state} {t.waiting or ''}".strip() for t in state.tokens.values()]
            lines.append(f"{run} is {state.status}; visits: {', '.join(waits)}; timers: {list(state.timers.values())}")
        rows, requests = self._undelivered(), self._ask("inbox", range(self.plan.shards))
        return (
            "\n".join(lines) or f"outbox: {rows[:3]}, inbox: {requests[:3]}, probe: {self.probe in self.auditor.runs}"
        )
