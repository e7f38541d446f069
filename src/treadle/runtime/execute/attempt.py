"""One attempt under way: drives the task pipeline on a real event loop.

         ┌──────────────────────────── proceed ◄───────────────────────────┐
         ▼                                                                  │
    pipeline.send ──► Done, Failed ──────────────────── at once ───────────►│
         │       └──► Pause, Later ──► alarm of the clock ─────────────────►│
         │       └──► awaitable, thread, process ──► effort ──► ended ─────►│
         ▼                                             └► timeout: cancel it, then TimedOut
      Outcome

Owns the asking and answering of one pipeline, and its timeouts. Promises:
 1. It waits for at most one thing at a time, and `stop` ends that wait: after `stop` there is no outcome.
 2. What waits for nothing is done in place: no task, no turn of the loop. A task that is one action needs no pipeline,
    only its question and its answer.
 3. After a timeout or a stop, cancelled work gets `PATIENCE_S` to end; a retry does not overlap with the try before it
    unless that ignores its cancellation.
 4. Whatever goes wrong, there is an outcome: an exception that escapes is a failure of the attempt.

Patience is real time, since the work is; everything an author wrote in milliseconds is the clock's, which may be
virtual. Must not know rooms, slots, leases or reports: those are the executor's.
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
from treadle.runtime.base.ports import Alarm, Attempt
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

PATIENCE_S = 1.0
"""For a coroutine's `finally` and a process's last breath; longer would hold the room of an attempt nobody wants."""


class RunningAttempt(Struct, eq=False):
    """See the module's docstring. `over` is called once with the outcome, unless it is stopped before."""

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
    """Set: the effort has been cancelled, and this is to happen when it has ended."""

    def start(self) -> None:
        """Runs until there is something to wait for."""
        attempt = self._attempt
        self._sole = sole_plan(attempt.task)
        if self._sole is None:
            self._pipeline = run_task(attempt.task, attempt.input, attempt.facts, self._shop.registry)
        self._context.run(self._proceed, None)

    def stop(self, gone: Callable[[], None]) -> None:
        """Ends it without an outcome; `gone` is called once the work has ended, or patience with it."""
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
        """The answer, or None if it has to be waited for."""
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
        """The effort has begun: from here on its timeout counts."""
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
            return  # patience with it has ended before
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
