"""Ports of the engine on a virtual clock: a clock that rings from the agenda, scripted workers, a silent courier.

Owns the scripted work and its `concurrency` slots. Promises the ports of `runtime.surroundings.ports`, except that
nothing happens by itself: due actions are on the agenda, and the world says when they happen. A scripted worker that is
stopped still reports, like a thread that cannot be interrupted: late results must be harmless, and scenarios
can test that.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from treadle.kernel.state import RunState, Token
from treadle.model.commands import Command, FailAttempt, FinishAttempt, StartAttempt
from treadle.model.effects import CallWebhook, Effect, RunTask
from treadle.model.ids import RunId, TokenId
from treadle.model.states import TokenState
from treadle.runtime.deliver.core import Core
from treadle.runtime.execute.answer import result_command
from treadle.runtime.execute.attempt_of_run import RunArtifacts
from treadle.runtime.execute.slots import Line, Slots
from treadle.runtime.surroundings.ports import Alarm, Attempt, Report
from treadle.store.port import Store
from treadle.testing.world.agenda import Agenda, Appointment, Happening
from treadle.testing.world.mocks import MockPlace
from treadle.testing.world.surroundings import Surroundings

WORKER = "virtual"
"""The worker name under which queue work is claimed here."""
QUEUE_LEASE_MS = 1 << 50
"""A lease that never ends: virtual workers of a queue do not go silent."""

T = TypeVar("T")
Identity = tuple[RunId, TokenId, int]


class HostEngine(Protocol):
    """The virtual engine as its clock, courier and executor see it: `world.engine` has the only one."""

    around: Surroundings
    agenda: Agenda
    core: Core
    store: Store

    def act(self, action: Callable[[], None]) -> None:
        """Calls `action` on the core's event loop and runs the loop until the core is quiet."""

    def at_once(self, happening: Happening) -> None:
        """Puts `happening` on the agenda for this instant, after the core has come to rest."""

    def answer_later(self, run: RunId, command: Command, after_ms: int) -> None:
        """Puts a worker's report on the agenda. It is lost if the engine crashes before."""

    def state(self, run: RunId) -> RunState | None:
        """The run's state; None if the store has no such run."""


class AgendaClock:
    """The world's clock, as the engine's clock."""

    def __init__(self, engine: HostEngine) -> None:
        self._engine = engine

    def now(self) -> int:
        return self._engine.around.clock.now

    def call_at(self, due: int, action: Callable[[], None]) -> Alarm:
        entry = self._engine.agenda.at(max(due, self.now()), lambda: self._engine.act(action), last=True)
        return AgendaAlarm(entry)


class AgendaAlarm:
    """An entry of the agenda that can be cancelled."""

    def __init__(self, entry: Appointment) -> None:
        self._entry = entry

    def cancel(self) -> None:
        self._entry.cancelled = True


class SilentCourier:
    """A scenario sends nothing: webhooks count as acknowledged, notices go nowhere."""

    def __init__(self, engine: HostEngine) -> None:
        self._engine = engine

    def turn(self, _effect: Effect, _context: Any) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def carry(self, run: RunId, effect: Effect, _context: Any) -> None:
        if isinstance(effect, CallWebhook):
            self._engine.around.workers.dispatches[run, effect.token] += 1
            # On the agenda, after the row is settled: by then the work counts as handed out.
            self._engine.at_once(lambda: self._engine.around.fuse.passing("after_dispatch"))


class ScriptedExecutor:
    """See the module's docstring."""

    def __init__(self, engine: HostEngine, report: Report) -> None:
        self._engine = engine
        self._report = report
        self._slots: Slots[Identity] = Slots()
        self._in_hand: dict[Identity, Attempt] = {}
        self._placed: dict[Identity, Line[Identity]] = {}

    @property
    def executing(self) -> int:
        return len(self._in_hand)

    @property
    def in_hand(self) -> list[Attempt]:
        return list(self._in_hand.values())

    @property
    def places(self) -> int:
        return 1 << 30  # virtual work needs no room

    def has_in_hand(self, run: RunId, token: TokenId, attempt: int) -> bool:
        return (run, token, attempt) in self._in_hand

    def begin(self, attempt: Attempt) -> None:
        if attempt.identity not in self._in_hand:
            self._in_hand[attempt.identity] = attempt
            self._engine.at_once(lambda: self._admit(attempt))

    def stop(self, run: RunId, token: TokenId, attempt: int) -> None:
        self._leave((run, token, attempt))

    async def close(self, grace_ms: int) -> None:
        del grace_ms  # virtual work takes none
        self._in_hand.clear()

    def heard(self, run: RunId, command: Command) -> None:
        """A report has arrived, in time or late: the place of its attempt is free."""
        if isinstance(command, FinishAttempt | FailAttempt):
            self._leave((run, command.token, command.attempt))

    def _leave(self, identity: Identity) -> None:
        attempt = self._in_hand.pop(identity, None)
        if attempt is None or attempt.slot is None:
            return
        line = self._placed.pop(identity, None)
        if line is None:
            self._slots.line(attempt.slot).withdraw(identity)
            return
        line.leave()
        for turn in line.turns():
            self._placed[turn] = line
            self._engine.at_once(lambda turn=turn: self._start(self._in_hand[turn]))  # type: ignore[misc]

    def _admit(self, attempt: Attempt) -> None:
        """Starts the attempt or puts it in line; a later decision may have cancelled it since."""
        if attempt.identity not in self._in_hand or self._wanted(attempt) is None:
            return
        if attempt.queue is not None and not self._engine.around.script.covers(MockPlace(attempt.node)):
            return  # offered, but no scripted worker claims it
        if attempt.slot is not None:
            line = self._slots.line(attempt.slot)
            if not line.enter(attempt.identity):
                return
            self._placed[attempt.identity] = line
        self._start(attempt)

    def _start(self, attempt: Attempt) -> None:
        if attempt.identity not in self._in_hand:
            return
        if attempt.queue is not None:
            until = self._engine.around.clock.now + QUEUE_LEASE_MS
            self._claim(attempt, StartAttempt(attempt.token, attempt.attempt, WORKER, until))
        elif attempt.slot is not None:
            self._claim(attempt, StartAttempt(attempt.token, attempt.attempt))
        self._work(attempt)

    def _claim(self, attempt: Attempt, command: StartAttempt) -> None:
        self._engine.act(lambda: self._report(attempt.run, command))

    def _work(self, attempt: Attempt) -> None:
        found = self._wanted(attempt)
        if found is None:
            return
        state, token = found
        around = self._engine.around
        version, node = token.under or (state.version, attempt.node)
        deployed = around.catalog.find(state.graph.workflow_name, version)
        assert deployed is not None, "a run's version stays deployed"
        frames = state.records[attempt.record].frames if attempt.record is not None else token.frames
        effect = RunTask(attempt.token, attempt.attempt, node, attempt.input, record=attempt.record)
        engine = self._engine
        read = engine.core.coordinator.state
        artifacts = PatientArtifacts(engine.store, state.run, engine.around.loop, read, state, engine)
        facts = replace(attempt.facts, artifacts=artifacts)
        stack = tuple(index for _group, index in frames)
        result, elapsed_ms = around.workers.begin(deployed, effect, facts, stack)
        if result is not None:
            worker = WORKER if attempt.queue is not None else None
            command = result_command(attempt.token, attempt.attempt, result, worker)
            self._engine.answer_later(attempt.run, command, elapsed_ms)
        around.fuse.passing("after_dispatch")

    def _wanted(self, attempt: Attempt) -> tuple[RunState, Token] | None:
        state = self._engine.state(attempt.run)
        token = state.tokens.get(attempt.token) if state is not None else None
        if state is None or token is None or token.attempt != attempt.attempt or not is_under_way(token):
            self._leave(attempt.identity)
            return None
        return state, token


def is_under_way(token: Token) -> bool:
    """Whether the visit is executed, or about to be."""
    return token.state in (TokenState.DISPATCHED, TokenState.EXECUTING)


class PatientArtifacts(RunArtifacts, eq=False):
    """Artifacts for work that runs between two turns of the world's event loop."""

    engine: HostEngine

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.engine.around.wait(work)
