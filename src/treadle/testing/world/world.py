"""A world for tests: a store, the production engine and scripted workers, in one thread on a virtual clock.

Owns the agenda of happenings and the event loop of the engine. Promises determinism: the same commands under the same
seed write the same histories, byte for byte; and that a crash loses exactly what a real crash loses. Must not decide or
store anything itself, nor know scenario files; `runner` plays those on a world.

    world = World({"judge[0]": [Outcome(output={"v": "aye"}, after_ms=300)]})
    world.deploy(workflow)
    run = world.start("panel", {"topic": "x"})
    world.drive()
    assert world.projection(run).status == "completed" and not world.check()
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import chain, count
from random import Random
from typing import Any, Self, cast

from msgspec.structs import replace

from treadle.errors import TreadleError
from treadle.kernel.evolve import replay
from treadle.kernel.invariants import violations
from treadle.kernel.placing import placed
from treadle.kernel.state import RunState
from treadle.model.commands import Command, ForkRun, StartRun
from treadle.model.definition import Workflow
from treadle.model.errors import Rejection
from treadle.model.events import Event
from treadle.model.ids import RunId, TokenId
from treadle.model.references import EntityRef
from treadle.runtime.execute.answer import result_command
from treadle.store.service import ServiceStore
from treadle.testing.world.catalog import MockedVersion, WorldCatalog
from treadle.testing.world.clock import FakeClock
from treadle.testing.world.engine import WorldEngine
from treadle.testing.world.fuse import Crashed
from treadle.testing.world.mocks import Script
from treadle.testing.world.outcomes import CrashPoint, Outcome
from treadle.testing.world.projection import Projection
from treadle.testing.world.stores import MemoryPlace, StorePlace
from treadle.testing.world.surroundings import Surroundings
from treadle.testing.world.workers import Workers

HAPPENINGS_MAX = 200_000
"""A world that has not come to rest after so many happenings never will: twenty times the largest test we have."""


class Restless(TreadleError):
    """The runs of a world loop for ever."""


class World:
    """See the module's docstring.

    `mocks` are outcomes by address, those of successive executions in order; `seed` permutes the order of things that
    happen at one instant; `place` is where its store is, in memory unless told otherwise.
    """

    def __init__(
        self,
        mocks: Mapping[str, Sequence[Outcome]] | None = None,
        seed: int | None = None,
        place: StorePlace | None = None,
    ) -> None:
        self._place = place or MemoryPlace()
        self._projections: dict[RunId, Projection] = {}
        self._checked: dict[RunId, int] = {}
        self._heads: dict[RunId, int] = {}
        """Run → its newest durable sequence number."""
        self._happened = 0
        self._joined: set[RunId] = set()  # ids of starts that became items of a batch: no other start may have them
        loop = self._place.loop or asyncio.new_event_loop()
        store = loop.run_until_complete(self._place.open())
        self._around = Surroundings(Script(mocks), Random(seed) if seed is not None else None, store, loop)
        self.engine = self._opened()

    def _opened(self) -> WorldEngine:
        """Makes an engine and lets it recover; one that crashes meanwhile is replaced."""
        while True:
            engine = WorldEngine(self._around, self._heads)
            try:
                engine.open()
            except Crashed as crash:
                engine.die()
                self.clock.advance(crash.down_ms)
            else:
                return engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases everything outside this process's memory."""
        self.engine.die()
        self._around.wait(self._place.close(self._around.store))
        if self._place.loop is None:
            self._around.loop.close()

    @property
    def clock(self) -> FakeClock:
        return self._around.clock

    @property
    def catalog(self) -> WorldCatalog:
        return self._around.catalog

    @property
    def workers(self) -> Workers:
        return self._around.workers

    @property
    def runs(self) -> list[RunId]:
        """Every run there is, in order of creation."""
        return list(self._around.runs)

    def deploy(self, workflow: Workflow) -> MockedVersion:
        deployed = self._around.catalog.deploy(workflow)
        self.engine.look()
        return deployed

    def start(
        self,
        workflow: str,
        input: Any = None,
        *,
        version: int = 0,
        entity: EntityRef | None = None,
        idempotency_key: str | None = None,
        name: str | None = None,
    ) -> RunId | Rejection:
        """Starts a run of a version, 0 for the newest; the same idempotency key gives the same run again.

        Its id is its name, else its workflow's, numbered where that is taken: tasks of other runs can send to it.
        """
        run = self._placed(self._free_id(name or workflow), workflow)
        command = StartRun(run=run, input=input, version=version, entity=entity, idempotency_key=idempotency_key)
        rejection = self._ask(lambda: self.engine.start(workflow, command))
        if rejection is not None:
            return rejection
        if self.engine.started not in (None, run):
            self._joined.add(run)
        return self.engine.started or run

    def queue(self, workflow: str) -> list[RunId]:
        """The queued runs of a workflow, in the order in which they will start."""
        return self.engine.queue(workflow)

    def fork(self, command: ForkRun, name: str | None = None) -> RunId | Rejection:
        """Forks a run; the id of the new one is its name, else the old one's, numbered where that is taken."""
        workflow = self.state(command.origin).graph.workflow_name
        run = self._placed(self._free_id(name or command.origin), workflow)
        rejection = self._ask(lambda: self.engine.start(workflow, replace(command, run=run)))
        return rejection if rejection is not None else self.engine.started or run

    def _placed(self, run: RunId, workflow: str) -> RunId:
        deployed = self.catalog.find(workflow)
        limited = deployed is not None and deployed.graph.flow is not None
        return placed(run, workflow, self._around.store.shards) if limited else run

    def _free_id(self, name: str) -> RunId:
        taken = {*self._around.runs, *self._joined}
        numbered = (RunId(f"{name}-{number}") for number in count(2))
        return next(run for run in chain([RunId(name)], numbered) if run not in taken)

    def send(self, run: RunId, command: Command) -> Rejection | None:
        """Sends one command from outside and waits for its commit; None if it was accepted."""
        return self._ask(lambda: self.engine.handle(run, command))

    def settle(self) -> None:
        """Runs until nothing more can happen without time passing."""
        self._live_until(self.clock.now)

    def advance(self, ms: int) -> None:
        """Lets time pass; everything due meanwhile happens at its instant."""
        until = self.clock.now + ms
        self._live_until(until)
        self.clock.advance_to(max(until, self.clock.now))  # a crash may have taken more time than that

    def drive(self) -> None:
        """Runs to the end: the clock jumps from one happening to the next until none is left."""
        self._live_until(None)

    def release(self, run: RunId, token: TokenId, outcome: Outcome) -> Rejection | None:
        """Gives a held attempt of this visit its outcome."""
        attempt, result, elapsed_ms = self.workers.release(run, token, outcome)
        if result is None:
            return None
        command = result_command(token, attempt, result)
        if elapsed_ms:
            self.engine.answer_later(run, command, elapsed_ms)
            return None
        return self.answer(run, command)

    def answer(self, run: RunId, command: Command) -> Rejection | None:
        """Sends a worker's report. If the engine crashes before it is durable, report and worker are lost."""
        try:
            return self.engine.handle(run, command)
        except Crashed as crash:
            self.crash(crash.down_ms)
            return None

    def crash(self, down_ms: int = 0) -> None:
        """Crashes the engine; after `down_ms` a new one takes over."""
        self.clock.advance(down_ms)
        self.engine.die()
        self.workers.lose_everything()
        self._around.store = self._around.wait(self._place.reopen(self._around.store))
        self.engine = self._opened()

    def crash_at(self, point: CrashPoint, count: int = 1, down_ms: int = 0) -> None:
        """Arms a crash at the n-th such point from here."""
        self._around.fuse.arm(point, count, down_ms)

    @property
    def crash_is_due(self) -> bool:
        """Whether an armed crash has not happened yet."""
        return self._around.fuse.armed

    def state(self, run: RunId) -> RunState:
        """The state of a run, for reading only."""
        state = self.engine.state(run)
        assert state is not None, f"there is no run {run}"
        assert state.seq == self._heads[run], f"{run} is at {state.seq} in memory, at {self._heads[run]} in the store"
        return state

    def projection(self, run: RunId) -> Projection:
        """A run's history so far, as visits; the same object every time, brought up to date."""
        projection = self._projections.setdefault(run, Projection())
        projection.apply(self._history(run, len(projection.events)))
        return projection

    def _history(self, run: RunId, after: int = 0) -> list[Event]:
        if after >= self._heads[run]:
            return []
        return self._around.wait(self._around.store.history(run, after))

    def decisions(self, run: RunId) -> list[int]:
        """The sequence numbers at which the decisions about a run end."""
        return self._around.wait(cast(ServiceStore, self._around.store).decisions(run))

    def check(self) -> list[str]:
        """Violated invariants in every run that has changed since the last check."""
        changed = [run for run in self._around.runs if self._checked.get(run) != self._heads[run]]
        found = [f"{run}: {problem}" for run in changed for problem in self._check_run(run)]
        complaints, self.engine.doorway.complaints = self.engine.doorway.complaints, []
        return found + complaints

    def _check_run(self, run: RunId) -> list[str]:
        state = self.state(run)
        self._checked[run] = state.seq
        problems = violations(state.graph, state)
        folded = replay(state.graph, self._history(run))
        if folded != state:
            problems += differing_fields(folded, state)
        return problems

    def _live_until(self, until: int | None) -> None:
        while (instant := self.engine.agenda.next_instant()) is not None:
            if until is not None and instant > until:
                return
            self.clock.advance_to(max(instant, self.clock.now))
            self._happen()

    def _happen(self) -> None:
        self._happened += 1
        if self._happened > HAPPENINGS_MAX:
            raise Restless(f"nothing comes to rest: {HAPPENINGS_MAX:,} things have happened")
        try:
            self.engine.agenda.pop()()
        except Crashed as crash:
            self.crash(crash.down_ms)

    def _ask(self, question: Callable[[], Rejection | None]) -> Rejection | None:
        """Asks, and asks again if the engine crashes before it has answered, like a client."""
        while True:
            try:
                return question()
            except Crashed as crash:
                self.crash(crash.down_ms)
                if crash.committed:
                    self.engine.started = RunId(crash.result) if isinstance(crash.result, str) else None
                    return crash.rejection


def differing_fields(folded: RunState, state: RunState) -> list[str]:
    """The differences between a folded history and the state that was decided on."""
    found = []
    for field in fields(state):
        left, right = getattr(folded, field.name), getattr(state, field.name)
        if field.compare and left != right:
            found.append(f"folding the history gives {field.name} = {left!r:.400}, the state has {right!r:.400}")
    return found
