"""Runs that misbehave, and the crowd beside them.

Three kinds of poison, each on its own engine: a run that cannot be read, which somebody keeps asking; a task that kills
the process it runs in; a task that fails at once and is tried again at once, for ever. The neighbours are chains of
plain steps, a fixed number at a time, one after the other.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AsyncExitStack, redirect_stderr, suppress
from pathlib import Path
from typing import Any, Self

import asyncpg
import structlog

from bench.bench_engine import chain
from bench.load_crowd import sleeper
from treadle.errors import CommandRefused
from treadle.language import load_value
from treadle.model.definition import Workflow
from treadle.runtime.engine import Engine
from treadle.runtime.run import Run
from treadle.runtime.surroundings.logs import log_to_stderr

NEIGHBOURS, STEPS = 100, 5
ASKED_EVERY_S = 0.01
SETTLED_S = 0.3
TRIES_MAX = 1_000_000


class Neighbours:
    """So many chains at a time, one after the other, as long as it is entered."""

    def __init__(self, engine: Engine, done: list[int]) -> None:
        self._engine = engine
        self._done = done

    async def __aenter__(self) -> Self:
        await self._engine.deploy(chain(STEPS))
        self._working = [asyncio.create_task(self._work()) for _ in range(NEIGHBOURS)]
        return self

    async def __aexit__(self, *_exception: object) -> None:
        for task in self._working:
            task.cancel()
        await asyncio.wait(self._working)

    async def _work(self) -> None:
        while True:
            await (await self._engine.start(f"chain{STEPS}")).wait()

    async def watched(self, seconds: float) -> tuple[float, float]:
        """Steps done a second, and per CPU second of the engine's process."""
        await asyncio.sleep(SETTLED_S)
        done, cpu, began = self._done[0], time.process_time(), time.perf_counter()
        await asyncio.sleep(seconds)
        steps = self._done[0] - done
        return steps / (time.perf_counter() - began), steps / (time.process_time() - cpu)


class Poison:
    """One engine with a run on it that can be let loose and stopped, several times."""

    workflow: Workflow

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.deeds = 0
        self.done = [0]
        """Steps of the neighbours."""
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        # What is said about it goes nowhere, but is put into words as a program does: that is a part of its cost.
        nowhere = self._stack.enter_context(Path(os.devnull).open("w"))  # noqa: SIM115
        self._stack.enter_context(redirect_stderr(nowhere))
        log_to_stderr()
        functions = {"step": self._step, "count": self._count}
        self.engine = await self._stack.enter_async_context(Engine(self.dsn, functions=functions))
        await self.engine.deploy(self.workflow)
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self._stack.aclose()
        structlog.reset_defaults()

    async def begin(self) -> None:
        self._run: Run = await self.engine.start(self.workflow.workflow)

    async def end(self) -> None:
        with suppress(CommandRefused):  # it may have ended by itself
            await self._run.cancel()

    async def _step(self, **_given: Any) -> dict[str, Any]:
        self.done[0] += 1
        return {"ok": True, "n": 1}

    async def _count(self, **_given: Any) -> dict[str, Any]:
        self.deeds += 1
        raise OSError("not today")


class Unreadable(Poison):
    """Its history is damaged. Somebody asks something of it, a hundred times a second."""

    workflow = sleeper(1)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        run = (await self.engine.start(self.workflow.workflow)).id
        await self._stack.aclose()  # so that it is nowhere in memory
        connection = await asyncpg.connect(self.dsn)
        await connection.execute("UPDATE history SET block = '\\xc1' WHERE run = $1", run)
        await connection.close()
        self._stack = AsyncExitStack()
        await super().__aenter__()
        self._bad = self.engine.run(run)
        return self

    async def begin(self) -> None:
        self._asking = asyncio.create_task(self._ask())

    async def end(self) -> None:
        self._asking.cancel()
        with suppress(asyncio.CancelledError):
            await self._asking

    async def _ask(self) -> None:
        while True:
            with suppress(CommandRefused):
                await self._bad.signal("go")
            self.deeds += 1
            await asyncio.sleep(ASKED_EVERY_S)


class Killer(Poison):
    """Its task ends the process it runs in."""

    workflow = load_value(
        {
            "workflow": "killer",
            "nodes": {"a": {"action": {"kind": "python", "function": "bench.load_killer:die", "process": True}}},
        }
    ).require()

    async def begin(self) -> None:
        await super().begin()
        self.deeds += 1


class Hammer(Poison):
    """Its task fails and is tried again without a pause."""

    workflow = load_value(
        {
            "workflow": "hammer",
            "nodes": {
                "a": {
                    "retry": {"max_attempts": TRIES_MAX, "backoff": "none", "initial_delay_ms": 0},
                    "action": {"kind": "python", "function": "count"},
                }
            },
        }
    ).require()


POISONS: dict[str, type[Poison]] = {
    "a run that cannot be read, asked again and again": Unreadable,
    "a task that kills its process": Killer,
    "a task that fails and is tried again at once": Hammer,
}
