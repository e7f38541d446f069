"""One running attempt: drives the task pipeline on a real event loop.

         ┌──────────────────────────── proceed ◄───────────────────────────┐
         ▼                                                                  │
    pipeline.send ──► Done, Failed ──────────────────── at once ───────────►│
         │       └──► Pause, Later ──► alarm of the clock ─────────────────►│
         │       └──► awaitable, thread, process ──► Stoppable ──► ended ──►│
         ▼                                             └► timeout: cancel it, then TimedOut
    TaskOutcome

Owns the questions and answers of one pipeline, and its timeouts. Promises:
 1. It waits for at most one thing at a time, and `stop` ends that wait: after `stop` there is no outcome.
 2. An action that waits for nothing runs in place, without a task and without a turn of the loop. A task that is one
    action needs no pipeline, only its question and its answer.
 3. After a timeout or a stop, cancelled work gets `PATIENCE_S` to end. A retry overlaps with the try before it only if
    that try ignores its cancellation.
 4. There is always an outcome: an exception that escapes is a failure of the attempt.

Patience is real time, because the work is real; every duration that an author wrote is the clock's, which may be
virtual. Must not know rooms, slots, leases or reports: the executor owns them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextvars import Context
from functools import partial
from types import CoroutineType

from msgspec import Struct
from msgspec.structs import replace

from treadle.actions.current import CurrentAttempt
from treadle.actions.failure import error_of, is_interrupt
from treadle.actions.protocol import Done, Failed, Later, Warming, Work
from treadle.runtime.execute.stoppable import ABANDONED, Begun, Stoppable, checked
from treadle.runtime.execute.task import (
    Answer,
    Invoke,
    Pause,
    Pipeline,
    TaskOutcome,
    TimedOut,
    run_task,
    sole_ask,
    sole_outcome,
    sole_plan,
)
from treadle.runtime.execute.task_plan import TaskPlan
from treadle.runtime.execute.workshop import Workshop
from treadle.runtime.surroundings.ports import Alarm, Attempt

PATIENCE_S = 1.0
"""For the `finally` of a coroutine and the end of a process. A longer time would keep the room of an attempt that
nobody wants."""


class RunningAttempt(Struct, eq=False):
    """See the module's docstring. `over` is called once with the outcome, unless the attempt is stopped before."""

    _attempt: Attempt
    _shop: Workshop
    _context: Context
    _over: Callable[[TaskOutcome], None]
    _sole: TaskPlan | None = None
    _pipeline: Pipeline[TaskOutcome] | None = None
    _alarm: Alarm | None = None
    _work: Stoppable | None = None
    _patience: asyncio.TimerHandle | None = None
    _then: Callable[[], None] | None = None
    """Set while cancelled work is ending: called when it has ended."""

    def start(self) -> None:
        """Runs until there is something to wait for."""
        attempt = self._attempt
        self._sole = sole_plan(attempt.task)
        if self._sole is None:
            self._pipeline = run_task(attempt.task, attempt.input, attempt.facts, self._shop.registry)
        self._context.run(self._proceed, None)

    def stop(self, gone: Callable[[], None]) -> None:
        """Ends the attempt without an outcome. `gone` is called when the work has ended, or after PATIENCE_S."""
        if self._work is not None:
            self._abandon(self._work, gone)
        else:
            self._disarm()
            gone()

    def _resume(self, answer: Answer) -> None:
        self._alarm = None
        self._context.run(self._proceed, answer)

    def _proceed(self, answer: Answer) -> None:
        try:
            outcome = self._until_wait(answer) if self._sole is None else self._alone(self._sole, answer)
        except BaseException as problem:
            if is_interrupt(problem):
                raise
            facts = self._attempt.facts
            outcome = TaskOutcome(error=replace(error_of(problem), node=facts.node, path=facts.path))
        if outcome is not None:
            self._over(outcome)

    def _until_wait(self, answer: Answer) -> TaskOutcome | None:
        assert self._pipeline is not None, "it has been started"
        while True:
            try:
                ask = self._pipeline.send(answer)
            except StopIteration as end:
                outcome: TaskOutcome = end.value
                return outcome
            if isinstance(ask, Pause):
                self._wait(ask.ms, None)
                return None
            answer = self._invoke(ask)
            if answer is None:
                return None

    def _alone(self, plan: TaskPlan, answer: Answer) -> TaskOutcome | None:
        attempt, registry = self._attempt, self._shop.registry
        if answer is None:
            answer = self._invoke(sole_ask(plan, attempt.input, attempt.facts, registry))
            if answer is None:
                return None
        return sole_outcome(plan, answer, attempt.input, attempt.facts, registry)

    def _invoke(self, ask: Invoke) -> Done | Failed | None:
        """The action's answer; None if the attempt has to wait for it."""
        call = ask.call
        try:
            reply = ask.kind.run(call)
        except BaseException as problem:
            if is_interrupt(problem):
                raise
            return Failed(error_of(problem))
        timeout_ms = call.timeout_ms
        kind = type(reply)
        if kind is Done or kind is Failed:
            return reply  # type: ignore[return-value]
        if isinstance(reply, Later):
            late = timeout_ms is not None and reply.ms > timeout_ms
            self._wait(timeout_ms if late and timeout_ms is not None else reply.ms, TimedOut() if late else reply.then)
            return None
        current = CurrentAttempt(call.facts)
        begun: Begun | None = partial(self._limit, timeout_ms) if timeout_ms is not None else None
        if isinstance(reply, Work):
            pool = self._shop.processes if reply.place == "process" else self._shop.threads
            self._work = pool.begin(reply.run, current, begun, self._ended)
        elif isinstance(reply, Warming):
            work = reply if begun is None else reply.work(begun)
            self._work = self._shop.coroutines.begin(work, current, None, self._ended)
        elif kind is CoroutineType or inspect.isawaitable(reply):
            self._work = self._shop.coroutines.begin(reply, current, begun, self._ended)  # type: ignore[arg-type]
        else:
            return checked(reply)
        return None

    def _wait(self, ms: int, answer: Answer) -> None:
        self._alarm = self._shop.clock.call_at(self._shop.clock.now() + ms, partial(self._resume, answer))

    def _limit(self, timeout_ms: int) -> None:
        """The work has begun: its timeout counts from now on."""
        self._alarm = self._shop.clock.call_at(self._shop.clock.now() + timeout_ms, self._time_out)

    def _time_out(self) -> None:
        if self._work is not None:
            self._abandon(self._work, partial(self._resume, TimedOut()))

    def _abandon(self, work: Stoppable, then: Callable[[], None]) -> None:
        self._then = then
        self._disarm()
        if self._patience is None:
            self._patience = self._shop.loop.call_later(PATIENCE_S, self._ended, work, ABANDONED)
        work.cancel()

    def _ended(self, work: Stoppable, answer: Done | Failed) -> None:
        if work is not self._work:
            return  # it was abandoned after PATIENCE_S
        self._work = None
        if self._alarm is not None:
            self._disarm()
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        then = self._then
        if then is None:
            self._context.run(self._proceed, answer)
        else:
            self._then = None
            then()

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
