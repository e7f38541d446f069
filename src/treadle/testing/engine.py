"""One engine of a virtual world, and everything it would forget in a crash: states, armed timers, work in
flight.

Owns the way of an event: command → decide → commit, one transaction → effects delivered. Promises to do it as
a real engine does, except that nothing happens by itself: what is due lies on the agenda and the world says
when. Must not know scenarios; must not keep what a recovery would need anywhere but in the store.

                          ┌ before_commit: the decision is lost, whoever asked asks again
    command ──► decide ──►│ commit ──►│ deliver ──►│ …
                                      │            └ after_dispatch: work was handed out, its result is lost
                                      └ after_commit: the world was told nothing yet, but the rows are there
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import count

from treadle.kernel.decide import decide
from treadle.kernel.evolve import replay
from treadle.kernel.state import RunState
from treadle.model.commands import Command, FireTimer, StartRun
from treadle.model.decision import Decision
from treadle.model.effects import ClearTimer, Effect, SetTimer
from treadle.model.errors import Rejection
from treadle.model.events import RunPaused, RunStarted
from treadle.model.ids import RunId, TimerId
from treadle.store.memory import SHARD
from treadle.store.port import Batch, Commit, OutboxRow
from treadle.testing import delivery
from treadle.testing.agenda import Agenda, Entry
from treadle.testing.catalog import Deployed
from treadle.testing.fuse import Crashed
from treadle.testing.instant import instantly
from treadle.testing.slots import Slots
from treadle.testing.surroundings import Surroundings

_names = count(1)

LEASE_MS = 1 << 50
"""A lease no virtual clock outlives: a scenario's engine loses it by crashing, never by dawdling."""


class Engine:
    """See the module's docstring."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.agenda = Agenda(around.random)
        self.states: dict[RunId, RunState] = {}
        self.slots = Slots()
        self._timers: dict[tuple[RunId, TimerId], Entry] = {}
        self._outbox: defaultdict[RunId, deque[OutboxRow]] = defaultdict(deque)
        fence = instantly(around.store.lease(SHARD, f"engine-{next(_names)}", around.clock.now, LEASE_MS))
        assert fence is not None, "the lost engine's lease counts as expired"
        self.fence = fence

    def state(self, run: RunId) -> RunState | None:
        """A run's state: from memory, else folded from its history."""
        if run not in self.states:
            history = instantly(self.around.store.history(run))
            if not history:
                return None
            started = history[0]
            assert isinstance(started, RunStarted)
            self.states[run] = replay(self.deployed(started).graph, history)
        return self.states[run]

    def deployed(self, started: RunStarted) -> Deployed:
        deployed = self.around.catalog.find(started.workflow, started.version)
        assert deployed is not None, "a run's version stays deployed"
        return deployed

    def start(self, workflow: str, version: int | None, command: StartRun) -> Rejection | None:
        """Creates a run; one that exists already was created by the same command before a crash."""
        if self.state(command.run) is not None:
            return None
        deployed = self.around.catalog.find(workflow, version)
        if deployed is None:
            return Rejection("NOT_FOUND", f"there is no workflow {workflow!r}, deploy it first")
        state = RunState(deployed.graph)
        return self._decide(command.run, state, command)

    def handle(self, run: RunId, command: Command) -> Rejection | None:
        """One command about one run, to its commit."""
        state = self.state(run)
        if state is None:
            return Rejection("NOT_FOUND", f"there is no run {run!r}")
        return self._decide(run, state, command)

    def _decide(self, run: RunId, state: RunState, command: Command) -> Rejection | None:
        seq = state.seq
        decision = decide(state.graph, state, command, self.around.clock.now, self.around.catalog)
        if decision.events or decision.effects:
            self.states[run] = state
            try:
                self._commit(run, state, seq, decision)
            except Crashed as crash:
                crash.rejection = decision.rejection
                raise
        return decision.rejection

    def _commit(self, run: RunId, state: RunState, seq: int, decision: Decision) -> None:
        self.around.fuse.passing("before_commit")
        commit = Commit(run, seq, decision.events, decision.effects, state.status)
        rows = instantly(self.around.store.commit(Batch((commit,)), self.fence))
        if seq == 0:
            self.around.runs.append(run)
        self.around.fuse.passing("after_commit")
        if any(isinstance(event, RunPaused) for event in decision.events):
            self._freeze_timers(run)
        for effect in decision.effects:
            self._keep_time(run, effect)
        for row in rows:
            self.enqueue(row)
        for event in decision.events:
            turn = self.slots.free(run, event)
            if turn is not None:
                self.enqueue(turn)

    def _keep_time(self, run: RunId, effect: Effect) -> None:
        if isinstance(effect, SetTimer):
            self.arm(run, effect.timer, effect.due)
        elif isinstance(effect, ClearTimer):
            self._disarm(run, effect.timer)

    def arm(self, run: RunId, timer: TimerId, due: int) -> None:
        """A durable timer will fire at `due`, at once if that has passed."""
        self._disarm(run, timer)
        instant = max(due, self.around.clock.now)
        self._timers[run, timer] = self.agenda.at(instant, lambda: self._fire(run, timer), last=True)

    def _disarm(self, run: RunId, timer: TimerId) -> None:
        entry = self._timers.pop((run, timer), None)
        if entry is not None:
            entry.cancelled = True

    def _fire(self, run: RunId, timer: TimerId) -> None:
        del self._timers[run, timer]
        self.handle(run, FireTimer(timer))

    def _freeze_timers(self, run: RunId) -> None:
        """The timers of a paused run stand still; resuming sets them anew."""
        for owner, timer in list(self._timers):
            if owner == run:
                self._disarm(owner, timer)

    def enqueue(self, row: OutboxRow) -> None:
        """A row will be delivered now; rows of one run keep their order, whatever comes between."""
        self._outbox[row.run].append(row)
        self.agenda.at(self.around.clock.now, lambda: self._deliver(row.run))

    def _deliver(self, run: RunId) -> None:
        row = self._outbox[run].popleft()
        delivery.deliver(self, row)

    def answer_later(self, run: RunId, command: Command, after_ms: int) -> None:
        """A worker will report so much later; if this engine dies before, its worker does too."""
        self.agenda.at(self.around.clock.now + after_ms, lambda: self._hear(run, command))

    def _hear(self, run: RunId, command: Command) -> None:
        self.handle(run, command)

    def acknowledge(self, row: OutboxRow) -> None:
        instantly(self.around.store.commit(Batch(done=(row.id,)), self.fence))
