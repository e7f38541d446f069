"""Workers as real processes on a real PostgreSQL: killed, frozen, asked to stop. Nobody polls: a worker's function
calls the test, and goes on when it is told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.runtime.executing import on_loop
from treadle.language import load_value
from treadle.model import events as e
from treadle.model.definition import Workflow
from treadle.runtime.engine import Engine, EngineSettings
from treadle.runtime.run import Run

ROOT = Path(__file__).parents[2]
CLAIM_MS = 1_500
"""Renewed twice a second: a loaded machine keeps that up, and a test need not wait long for it to run out."""


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    from tests import postgres

    with postgres.new_database() as dsn:
        yield dsn


class Caller:
    """A function in a worker that waits to be told what to return."""

    def __init__(self, pid: int, writer: asyncio.StreamWriter) -> None:
        self.pid = pid
        self._writer = writer

    def answer(self, word: str) -> None:
        self._writer.write(f"{word}\n".encode())


class Door:
    """Where functions of workers call."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._calls: asyncio.Queue[Caller] = asyncio.Queue()
        self._lines: list[asyncio.StreamWriter] = []

    async def called(self) -> Caller:
        return await self._calls.get()

    async def opened(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lines.append(writer)
        self._calls.put_nowait(Caller(int(await reader.readline()), writer))

    async def close(self) -> None:
        for line in self._lines:
            line.close()
            with suppress(ConnectionError):
                await line.wait_closed()


class Workers:
    """Processes that only execute."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.alive: list[asyncio.subprocess.Process] = []

    async def start(
        self, *options: str, grace_ms: int = 5_000, functions: str = "tests.runtime.worker_tasks"
    ) -> asyncio.subprocess.Process:
        words = ["worker", "--queue", "gpu:1", "--functions", functions, "--store", self._place]
        settings = {"TREADLE_ENGINE_CLAIM_MS": f"{CLAIM_MS}", "TREADLE_ENGINE_GRACE_MS": f"{grace_ms}"}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "treadle.cli.main", *words, *options),
            cwd=ROOT,
            env={**os.environ, **settings},
            stderr=asyncio.subprocess.PIPE,
        )
        self.alive.append(process)
        assert process.stderr is not None
        assert b"works for gpu" in await process.stderr.readline()
        return process

    async def close(self) -> None:
        for process in self.alive:
            if process.returncode is None:
                process.kill()
        for process in self.alive:
            await process.wait()


class Scene:
    def __init__(self, engine: Engine, door: Door, workers: Workers) -> None:
        self.engine = engine
        self.door = door
        self.workers = workers

    async def begin(self) -> Run:
        """A run whose work is for a worker."""
        return await self.engine.start(work(), {"door": self.door.path})


@asynccontextmanager
async def scene(place: str) -> AsyncIterator[Scene]:
    """An engine that executes no queue work itself."""
    with TemporaryDirectory() as folder:
        door = Door(f"{folder}/door")
        server = await asyncio.start_unix_server(door.opened, door.path)
        workers = Workers(place)
        settings = EngineSettings(queues={}, claim_ms=CLAIM_MS)
        try:
            async with Engine(place, settings=settings) as engine:
                yield Scene(engine, door, workers)
        finally:
            await workers.close()
            await door.close()
            server.close()
            await server.wait_closed()


def work() -> Workflow:
    node = {
        "queue": "gpu",
        "action": {"kind": "python", "function": "knock"},
        "input": {"door": "$.input.door"},
        "output": {"output.said": "$.result"},
    }
    return load_value({"workflow": "outside", "nodes": {"call": node}}).require()


async def of_kind(run: Run, kind: type[e.Event]) -> list[Any]:
    return [event for event in await run.history() if isinstance(event, kind)]


async def started(run: Run) -> None:
    """Until the run knows who is at work for it: a worker begins before it has been heard."""
    async for event in run.events():
        if isinstance(event, e.TokenStarted):
            return


@on_loop
async def test_a_worker_executes_what_an_engine_offers_and_is_listed(place: str) -> None:
    async with scene(place) as here:
        worker = await here.workers.start("--name", "wanda")
        run = await here.begin()
        caller = await here.door.called()
        assert caller.pid == worker.pid
        (row,) = [row for row in await here.engine.nodes() if row.node == "wanda"]
        assert (row.coordinates, row.queues, row.shards) == (False, ("gpu",), ())
        (queue,) = await here.engine.queues()
        assert (queue.queue, queue.waiting, queue.claimed, queue.workers) == ("gpu", 0, 1, ("wanda",))
        caller.answer("done")
        assert (await run.wait()).output == {"said": "done"}
        assert [(one.waiting, one.claimed, one.workers) for one in await here.engine.queues()] == [(0, 0, ("wanda",))]
        worker.send_signal(signal.SIGTERM)
        assert await worker.wait() == 0
        assert [row.node for row in await here.engine.nodes()] == [here.engine.name]


@on_loop
async def test_a_worker_without_the_function_leaves_the_work_to_one_that_has_it(place: str) -> None:
    async with scene(place) as here:
        bare = await here.workers.start("--name", "barbara", functions="tests.runtime.functions")
        run = await here.begin()
        assert bare.stderr is not None
        said = await bare.stderr.readline()
        assert b"barbara lacks function 'knock' of workflow 'outside'" in said
        assert b"--functions MODULE" in said
        able = await here.workers.start("--name", "wanda")
        caller = await here.door.called()
        assert caller.pid == able.pid
        caller.answer("done")
        assert (await run.wait()).output == {"said": "done"}
        (begun,) = await of_kind(run, e.TokenStarted)
        assert (begun.attempt, begun.worker.startswith("wanda")) == (1, True)
        other = await here.begin()  # both are idle now, and both may be the first to look
        (await here.door.called()).answer("again")
        assert (await other.wait()).output == {"said": "again"}


@on_loop
async def test_the_work_of_a_killed_worker_is_done_by_another_once(place: str) -> None:
    async with scene(place) as here:
        first = await here.workers.start()
        run = await here.begin()
        assert (await here.door.called()).pid == first.pid
        await started(run)
        first.kill()
        second = await here.workers.start()
        caller = await here.door.called()
        assert caller.pid == second.pid
        caller.answer("second")
        assert (await run.wait()).output == {"said": "second"}
        dispatched = await of_kind(run, e.TokenDispatched)
        assert [(event.attempt, event.recovery, event.forgiven) for event in dispatched] == [
            (1, 0, False),
            (1, 1, False),
        ]
        holders = [event.worker for event in await of_kind(run, e.TokenStarted)]
        assert len(holders) == len(set(holders)) == 2
        assert len(await of_kind(run, e.TokenCompleted)) == 1


@on_loop
async def test_a_worker_that_was_presumed_dead_is_refused_and_works_on(place: str) -> None:
    async with scene(place) as here:
        frozen = await here.workers.start()
        run = await here.begin()
        late = await here.door.called()
        await started(run)
        frozen.send_signal(signal.SIGSTOP)
        await here.workers.start()
        caller = await here.door.called()
        late.answer("stale")
        frozen.send_signal(signal.SIGCONT)
        another = await here.begin()  # the second has one place, and it is taken
        next_one = await here.door.called()
        assert next_one.pid == frozen.pid, "it has noticed, and is free"
        caller.answer("good")
        next_one.answer("next")
        assert (await run.wait()).output == {"said": "good"}
        assert (await another.wait()).output == {"said": "next"}
        assert [event.output for event in await of_kind(run, e.TokenCompleted)] == [{"result": "good"}]


@on_loop
async def test_a_worker_asked_to_stop_ends_what_it_has(place: str) -> None:
    async with scene(place) as here:
        worker = await here.workers.start()
        run = await here.begin()
        caller = await here.door.called()
        worker.send_signal(signal.SIGTERM)
        assert worker.stderr is not None
        assert (await worker.stderr.readline()).startswith(b"stopping; 1 attempt may end within 5.0 s")
        waiting = await here.begin()
        caller.answer("in time")
        assert (await run.wait()).output == {"said": "in time"}
        assert await worker.wait() == 0
        (queue,) = await here.engine.queues()
        assert (queue.waiting, queue.claimed) == (1, 0), "it has claimed nothing more"
        await waiting.cancel()
        assert not any(queue.waiting for queue in await here.engine.queues())


@on_loop
async def test_a_worker_asked_to_stop_gives_the_rest_back_and_nobody_counts_it(place: str) -> None:
    async with scene(place) as here:
        worker = await here.workers.start(grace_ms=100)
        run = await here.begin()
        await here.door.called()
        worker.send_signal(signal.SIGTERM)
        await here.workers.start()
        (await here.door.called()).answer("second")
        assert (await run.wait()).output == {"said": "second"}
        dispatched = await of_kind(run, e.TokenDispatched)
        assert [(event.recovery, event.forgiven) for event in dispatched] == [(0, False), (1, True)]


@on_loop
async def test_cancelled_work_is_stopped_wherever_it_is(place: str) -> None:
    async with scene(place) as here:
        worker = await here.workers.start()
        run = await here.begin()
        gone = await here.door.called()
        await run.cancel()
        again = await here.begin()
        caller = await here.door.called()  # its one place is free
        assert caller.pid == worker.pid
        gone.answer("nobody wants it")
        caller.answer("wanted")
        assert (await again.wait()).output == {"said": "wanted"}
        assert (await of_kind(run, e.TokenCompleted)) == []


@on_loop
async def test_work_in_hand_goes_on_while_its_run_changes_hands(place: str) -> None:
    """The engine that offered it leaves; the worker reports to whoever owns the run by then."""
    async with scene(place) as here:
        await here.workers.start()
        leaving = Engine(place, settings=EngineSettings(queues={}, claim_ms=CLAIM_MS))
        async with leaving:
            run = await leaving.start(work(), {"door": here.door.path})
            caller = await here.door.called()
            await started(run)
        caller.answer("done")
        ended = here.engine.run(run.id)
        assert (await ended.wait()).output == {"said": "done"}
        assert len(await of_kind(ended, e.TokenDispatched)) == 1
