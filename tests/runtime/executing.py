"""A bench for the real executor: attempts in one line, reports to wait for, a clock that jumps."""

from __future__ import annotations

import asyncio
import functools
import heapq
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from tests.unit.runtime.attempts import step, task
from treadle.actions.protocol import AttemptFacts
from treadle.actions.registry import Registry
from treadle.model.commands import Command, FailAttempt, FinishAttempt
from treadle.model.definition import Task
from treadle.model.effects import Slot
from treadle.model.ids import RunId, TokenId
from treadle.runtime.execute.executor import LocalExecutor
from treadle.runtime.execute.workshop import Workshop
from treadle.runtime.surroundings.ports import Attempt

DEADLINE_S = 30
"""No test comes near it; one that does hangs."""


def on_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """An async test."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def whole() -> None:
            async with asyncio.timeout(DEADLINE_S):
                await test(*args, **kwargs)

        asyncio.run(whole())

    return run


async def turns(n: int = 10) -> None:
    """Lets the loop turn: what can happen without time has happened."""
    loop = asyncio.get_running_loop()
    for _ in range(n):
        turned = loop.create_future()
        loop.call_soon(turned.set_result, None)
        await turned


class VirtualClock:
    """Stands still until it is told to move."""

    def __init__(self) -> None:
        self._now = 1_000_000
        self._count = itertools.count()
        self._alarms: list[tuple[int, int, _Alarm]] = []

    def now(self) -> int:
        return self._now

    def call_at(self, due: int, action: Callable[[], None]) -> _Alarm:
        alarm = _Alarm(action)
        if due <= self._now:
            asyncio.get_running_loop().call_soon(alarm.ring)
        else:
            heapq.heappush(self._alarms, (due, next(self._count), alarm))
        return alarm

    @property
    def pending(self) -> list[int]:
        """In how many milliseconds something will ring."""
        return sorted(due - self._now for due, _, alarm in self._alarms if alarm.action is not None)

    async def advance(self, ms: int) -> None:
        until = self._now + ms
        while self._alarms and self._alarms[0][0] <= until:
            self._now, _, alarm = heapq.heappop(self._alarms)
            alarm.ring()
            await turns()
        self._now = until
        await turns()


class _Alarm:
    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None

    def ring(self) -> None:
        action, self.action = self.action, None
        if action is not None:
            action()


class Bench:
    """An executor with everything around it."""

    def __init__(self, registry: Registry | None = None, **limits: Any) -> None:
        self.registry = registry or Registry()
        self.clock = VirtualClock()
        self.reports: list[tuple[str, Command]] = []
        self._reported = asyncio.Event()
        of_shop = {
            name: limits.pop(name) for name in ("attempts_max", "threads_max", "processes_max") if name in limits
        }
        self.shop = Workshop(self.registry, self.clock, name="bench", **of_shop)
        self.executor = LocalExecutor(self.shop, self._report, **{"name": "bench", **limits})

    def _report(self, run: RunId, command: Command) -> None:
        self.reports.append((run, command))
        self._reported.set()

    async def __aenter__(self) -> Bench:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.executor.close(0)
        await self.shop.close()

    def begin(
        self,
        definition: Task | dict[str, Any],
        token: int = 1,
        *,
        run: str = "r1",
        attempt: int = 1,
        queue: str | None = None,
        slot: Slot | None = None,
        facts: AttemptFacts | None = None,
        input: Any = None,
    ) -> None:
        whole = definition if isinstance(definition, Task) else task(definition)
        of = RunId(run), TokenId(token), attempt
        known = facts or AttemptFacts(run=of[0], token=of[1], attempt=attempt, node="n")
        self.executor.begin(Attempt(*of, "n", whole, {} if input is None else input, known, queue, slot))

    def stop(self, token: int = 1, run: str = "r1", attempt: int = 1) -> None:
        self.executor.stop(RunId(run), TokenId(token), attempt)

    def ends(self) -> list[Command]:
        """The reports that end an attempt."""
        return [command for _, command in self.reports if isinstance(command, FinishAttempt | FailAttempt)]

    async def wait_ends(self, n: int = 1) -> list[Command]:
        """Until so many attempts have ended."""
        while len(self.ends()) < n:
            self._reported.clear()
            await self._reported.wait()
        return self.ends()

    async def failure(self) -> Any:
        """The error of the first attempt that ends."""
        (end,) = await self.wait_ends()
        assert isinstance(end, FailAttempt), end
        return end.error

    async def output(self) -> Any:
        """The output of the first attempt that ends."""
        (end,) = await self.wait_ends()
        assert isinstance(end, FinishAttempt), end
        return end.output


def python(function: str, ref: str = "a", **execution: Any) -> dict[str, Any]:
    """A step that calls a function."""
    process = execution.pop("process", False)
    config = {"function": function, **({"process": True} if process else {})}
    return step(ref, "python", config, **({"execution": execution} if execution else {}))
