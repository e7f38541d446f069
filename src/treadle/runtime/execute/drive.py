"""Drives an attempt on a virtual clock: durations are added up, nothing waits.

For scenarios and tests. A pause or a mock's delay costs virtual milliseconds. Real work (a Python function, an
artifact) runs in place and costs none, so only scripted delays can exceed an action's timeout. A hook may answer for
any step, which is how a scenario mocks `node/step`; it may also `Hold` the step until `Drive.release`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import TypeVar

from msgspec import Struct

from treadle.actions.current import CURRENT, CurrentAttempt
from treadle.actions.failure import error_of, is_interrupt
from treadle.actions.protocol import Done, Failed, Later, Reply, Work
from treadle.runtime.execute.task import Answer, Invoke, Pause, Pipeline, TaskOutcome, TimedOut

T = TypeVar("T")


class Hold(Struct, frozen=True):
    """A hook's answer that keeps the step waiting until `Drive.release`."""


Hook = Callable[[Invoke], Reply | Hold | None]
"""Called before every try of every step's action; None lets the action run."""


def drive(task: Pipeline[TaskOutcome], hook: Hook | None = None) -> tuple[TaskOutcome, int]:
    """The outcome of an attempt and the virtual milliseconds it took. A hook that holds needs a `Drive`."""
    outcome, elapsed_ms = Drive(task, hook).run()
    assert outcome is not None, "drive() cannot hold a step: use Drive, and release it"
    return outcome, elapsed_ms


@dataclass(slots=True)
class Drive:
    """A running attempt. `held` is the action it waits for; None before `run` and after the end."""

    task: Pipeline[TaskOutcome]
    hook: Hook | None = None
    held: Invoke | None = None

    def run(self) -> tuple[TaskOutcome | None, int]:
        """Runs to the end, or to the first held step (outcome None). Also returns the milliseconds that took."""
        return self._proceed(None)

    def release(self, reply: Reply) -> tuple[TaskOutcome | None, int]:
        """Answers the held step and goes on as `run` does. The time spent held is not in the milliseconds."""
        assert self.held is not None, "nothing is held"
        answer, spent = settle(reply, self.held.call.timeout_ms)
        self.held = None
        outcome, elapsed_ms = self._proceed(answer)
        return outcome, spent + elapsed_ms

    def _proceed(self, answer: Answer) -> tuple[TaskOutcome | None, int]:
        elapsed_ms = 0
        while True:
            try:
                ask = self.task.send(answer)
            except StopIteration as end:
                outcome: TaskOutcome = end.value
                return outcome, elapsed_ms
            if isinstance(ask, Pause):
                answer, spent = None, ask.ms
            else:
                reply = (self.hook(ask) if self.hook is not None else None) or begin(ask)
                if isinstance(reply, Hold):
                    self.held = ask
                    return None, elapsed_ms
                answer, spent = settle(reply, ask.call.timeout_ms, CurrentAttempt(ask.call.facts))
            elapsed_ms += spent


def begin(invoke: Invoke) -> Reply:
    """Runs an action kind, or lets it say how it wants to run. An exception becomes a failure."""
    try:
        return invoke.kind.run(invoke.call)
    except BaseException as problem:
        if is_interrupt(problem):
            raise
        return Failed(error_of(problem))


def settle(reply: Reply, timeout_ms: int | None, current: CurrentAttempt | None = None) -> tuple[Answer, int]:
    """The answer to a reply, and its virtual duration. Real work runs as `current`."""
    if isinstance(reply, Done | Failed):
        return reply, 0
    if isinstance(reply, Later):
        if timeout_ms is not None and reply.ms > timeout_ms:
            return TimedOut(), timeout_ms
        return reply.then, reply.ms
    try:
        return copy_context().run(_worked, reply, current), 0
    except BaseException as problem:
        if is_interrupt(problem):
            raise
        return Failed(error_of(problem)), 0


def _worked(reply: Work | Awaitable[Done | Failed], current: CurrentAttempt | None) -> Done | Failed:
    CURRENT.set(current)
    return reply.run() if isinstance(reply, Work) else _awaited(reply)


def _awaited(work: Awaitable[T]) -> T:
    """Runs async work to its end, even if the caller is inside an event loop."""
    current = CURRENT.get()

    async def whole() -> T:
        CURRENT.set(current)
        return await work

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(whole())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, whole()).result()
