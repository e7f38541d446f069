"""One engine of many: leases shards, keeps the states of its runs, decides, commits, and carries out what follows.

Theory of operation. An engine is a host with four kinds of process. `housekeeping` renews leases, takes shards nobody
holds, polls due timers and rows left in the outbox. `_work` takes letters from the inbox, decides them one after
another on the cached states, and commits all decisions in one transaction: group commit. `courier` carries out
effects. `crew` executes local work. Everything but the store is forgotten in a crash.

     letter ─► inbox ─► decide … decide ─┬─► commit ─┬─► answer ─► effects
                                         │           └ after it: the world was told nothing, but the rows are there
                                         └ before it: nothing has happened, whoever asked asks again

Invariants
 1. A state is cached only while every decision folded into it is committed or about to be: a commit that is refused or
    whose outcome is unknown throws every state away.
 2. Nobody is answered before a commit under the engine's fence, not even when there is nothing to write: a zombie's
    opinion of a run never reaches anyone.
 3. An engine that takes a shard recovers it: work whose executor is gone is handed out again, rows left in the outbox
    are delivered, overdue timers fire.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from treadle.errors import StoreConflict
from treadle.kernel.decide import decide
from treadle.kernel.evolve import replay
from treadle.kernel.state import RunState
from treadle.model.commands import Command, FireTimer, StartRun
from treadle.model.decision import Decision
from treadle.model.effects import SetTimer
from treadle.model.errors import Rejection
from treadle.model.events import RunStarted
from treadle.model.ids import RunId, TimerId
from treadle.model.states import RunStatus
from treadle.store.port import Commit, Fence, OutboxRow
from treadle.testing.simulator import courier, housekeeping
from treadle.testing.simulator.depot import LEASE_MS, Unknown
from treadle.testing.simulator.post import Letter
from treadle.testing.simulator.schedule import Host, Process

if TYPE_CHECKING:
    from treadle.testing.simulator.world import World

BATCH_MAX = 4
DOWN_MS = (10, 700)
STALL_MS = (50, 3 * LEASE_MS)
SKEW_MS = 250


class KernelRaised(Exception):
    """The kernel broke down on a command: whatever the reason, it must never."""

    def __init__(self, run: RunId, command: object, problem: BaseException) -> None:
        super().__init__(f"deciding {command} raised {type(problem).__name__}: {problem}")
        self.run = run


class Engine(Host):
    """See the module's docstring."""

    def __init__(self, name: str, world: World) -> None:
        super().__init__(name)
        self.world = world
        self.skew = 0
        self._forget()
        world.schedule.spawn(housekeeping.keep_house(self), self)

    def _forget(self) -> None:
        self.fences: dict[int, Fence] = {}
        self.states: dict[RunId, RunState] = {}
        self.inbox: deque[Letter] = deque()
        self.executing: set[tuple[RunId, int, int]] = set()
        """Attempts in progress here: (run, token, attempt)."""
        self.wanted_again: set[tuple[RunId, int, int]] = set()
        """Those of them that were handed out once more meanwhile: somebody thought this engine gone."""
        self.delivering: set[int] = set()
        """Outbox rows a courier of this engine is busy with."""
        self.firing: set[tuple[RunId, TimerId]] = set()
        self.unsure: set[int] = set()
        """Shards to be recovered once more: who recovered them meanwhile may have looked at what never happened."""
        self._working = False

    # Life

    def about_to_step(self) -> bool:
        world = self.world
        if world.faults.calm:
            return True
        if world.faults.happens("crash", 0.15):
            self.die()
            world.schedule.spawn(self._come_back(), None, world.draw.between(*DOWN_MS))
            return False
        if world.faults.happens("stall", 0.2):
            self.stalled_until = world.schedule.now + world.draw.between(*STALL_MS)
        if world.faults.happens("clock_skew", 0.3):
            self.skew = world.draw.between(-SKEW_MS, SKEW_MS)
        return True

    def _come_back(self) -> Process:
        if not self.up:
            self.restart()
        return
        yield 0

    def restart(self) -> None:
        """A new process on the same machine: it remembers nothing."""
        self.up = True
        self._forget()
        self.world.depot.abandon(self.name)
        self.world.schedule.spawn(housekeeping.keep_house(self), self)

    @property
    def now(self) -> int:
        """What this engine's clock says."""
        return self.world.depot.now + self.skew

    def owns(self, run: RunId) -> bool:
        """Whether it believes so."""
        return self.world.depot.shard_of(run) in self.fences

    def drop_states(self, shard: int) -> None:
        """Whatever is known of this shard's runs may be out of date."""
        self.states = {run: state for run, state in self.states.items() if self.world.depot.shard_of(run) != shard}

    # Letters

    def receive(self, letter: Letter) -> None:
        """A letter has come."""
        letter.queued = True
        self.inbox.append(letter)
        if not self._working:
            self._working = True
            self.world.schedule.spawn(self._work(), self)

    def _work(self) -> Process:
        while self.inbox:
            batch = [self.inbox.popleft() for _ in range(min(len(self.inbox), BATCH_MAX))]
            for letter in batch:
                letter.queued = False
            for shard in {self.world.depot.shard_of(letter.run) for letter in batch}:
                mine = [letter for letter in batch if self.world.depot.shard_of(letter.run) == shard]
                yield from self._transact(shard, mine)
        self._working = False

    def _transact(self, shard: int, letters: list[Letter]) -> Process:
        fence = self.fences.get(shard)
        if fence is None:
            return
        answers: list[tuple[Letter, Rejection | None]] = []
        commits: list[Commit] = []
        causes: list[Command] = []
        for letter in letters:
            answers.append((letter, self._decide(letter, commits)))
            causes += [letter.command] * (len(commits) - len(causes))
        yield self.world.draw.between(0, 2)
        try:
            rows = self.world.depot.commit(commits, causes, fence)
        except (StoreConflict, Unknown) as problem:
            self.drop_states(shard)
            self.unsure.add(shard)
            if isinstance(problem, StoreConflict) and problem.kind == "LEASE_CONFLICT":
                self.fences.pop(shard, None)
            return
        for commit in commits:
            self.world.compare(commit.run, self.states.get(commit.run))
        yield 0
        for letter, rejection in answers:
            self.world.post.answer(letter, rejection)
        yield from self._carry_out(commits, rows)

    def _decide(self, letter: Letter, commits: list[Commit]) -> Rejection | None:
        """One command on the cached state; what follows joins the batch."""
        state = self._state_for(letter)
        if state is None:
            return Rejection("NOT_FOUND", f"there is no run {letter.run}")
        before = state.seq
        situation = self.world.coverage.situation(state, letter.command)
        timed = isinstance(letter.command, FireTimer)  # whether a timer is due is for the store's clock to say
        now = self.world.depot.now if timed else self.now
        try:
            decision = decide(state.graph, state, letter.command, now, self.world.catalog)
        except Exception as problem:
            raise KernelRaised(letter.run, letter.command, problem) from problem
        self.world.coverage.decided(situation, decision)
        if decision.events or decision.effects:
            self.states[letter.run] = state
            commits.append(self._commit(letter.run, before, decision, state.status))
        return decision.rejection

    @staticmethod
    def _commit(run: RunId, before: int, decision: Decision, status: RunStatus) -> Commit:
        return Commit(run, before, decision.events, decision.effects, status)

    def _state_for(self, letter: Letter) -> RunState | None:
        state = self.load(letter.run)
        if state is None and isinstance(letter.command, StartRun):
            key = letter.command.idempotency_key
            known = self.world.depot.find_run_by_key(letter.workflow, key) if key is not None else None
            if known is not None:
                return self.load(known.run)
            graph = self.world.catalog.lookup(letter.workflow, None)
            assert graph is not None, "clients start what is deployed"
            return RunState(graph)
        return state

    def load(self, run: RunId) -> RunState | None:
        """A run's state: from memory, else folded from its history."""
        if run not in self.states:
            history = self.world.depot.history(run)
            if not history:
                return None
            started = history[0]
            assert isinstance(started, RunStarted)
            graph = self.world.catalog.lookup(started.workflow, None)
            assert graph is not None, "what runs is deployed"
            self.states[run] = replay(graph, history)
        return self.states[run]

    # Effects

    def _carry_out(self, commits: list[Commit], rows: list[OutboxRow]) -> Process:
        """The fast path: whatever is lost here, house-keeping finds in the store."""
        for commit in commits:
            for effect in commit.effects:
                if isinstance(effect, SetTimer) and not self.world.faults.happens("lost_notice"):
                    self.world.schedule.spawn(housekeeping.watch(self, commit.run, effect.timer, effect.due), self)
        for row in rows:
            if self.world.faults.happens("lost_notice"):
                continue
            self.deliver(row)
            if not self.world.faults.calm:
                yield 0

    def deliver(self, row: OutboxRow) -> None:
        """Carry out a row, unless it is being carried out."""
        if row.id not in self.delivering:
            self.delivering.add(row.id)
            self.world.schedule.spawn(courier.deliver(self, row), self)

    def done_with(self, row: OutboxRow) -> None:
        """The world has been told. A zombie cannot acknowledge: the new owner tells it again."""
        fence = self.fences.get(self.world.depot.shard_of(row.run))
        self.delivering.discard(row.id)
        if fence is not None:
            try:
                self.world.depot.acknowledge(row, fence)
            except StoreConflict:
                self.fences.pop(fence.shard, None)
