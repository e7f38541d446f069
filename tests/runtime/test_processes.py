"""Work in real processes: real answers, real deaths."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.executing import Bench, on_loop, python, turns
from tests.unit.runtime.attempts import step
from treadle.actions.protocol import AttemptFacts, Call, Work
from treadle.actions.registry import Registry
from treadle.model.commands import FinishAttempt
from treadle.model.ids import RunId, TokenId

HERE = "tests.runtime.functions"


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


async def said(fifo: Path) -> int:
    """The pid a worker writes into the fifo."""
    return int(await asyncio.to_thread(fifo.read_text))


async def wait_gone(pid: int) -> None:
    """Until there is no such process."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, gone.set)
    try:
        await gone.wait()
    finally:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def worker(name: str, **execution: Any) -> dict[str, Any]:
    return python(f"{HERE}:{name}", process=True, **execution)


@on_loop
async def test_a_worker_process_is_kept_for_the_next_attempt() -> None:
    async with Bench(processes_max=1) as bench:
        bench.begin(worker("pid"), 1)
        bench.begin(worker("pid"), 2)
        pids = {end.output["result"] for end in await bench.wait_ends(2) if isinstance(end, FinishAttempt)}
    assert len(pids) == 1
    assert os.getpid() not in pids
    assert is_gone(pids.pop())


@on_loop
async def test_input_facts_and_a_large_result_travel() -> None:
    facts = AttemptFacts(run=RunId("r1"), token=TokenId(1), attempt=1, node="n", jitter=lambda: 0.5)
    async with Bench() as bench:
        bench.begin(worker("about"), 1, facts=facts, input={"big": "y" * 1_000_000})
        bench.begin(worker("large"), 2)
        outputs = {end.token: end.output for end in await bench.wait_ends(2) if isinstance(end, FinishAttempt)}
    about = outputs[TokenId(1)]
    assert len(about.pop("order")["big"]) == 1_000_000
    assert about == {"key": "r1:1:1", "same": True, "artifacts": None}
    assert len(outputs[TokenId(2)]["result"]) == 3_000_000


@pytest.mark.parametrize(
    ("function", "kind", "retryable", "text"),
    [
        ("die", "WORKER_LOST", True, "was killed by SIGKILL without an answer (out of memory?)"),
        ("leave", "WORKER_LOST", True, "exited with code 3 without an answer"),
        ("exits", "TASK_FAILED", False, "SystemExit: 4"),
        ("broken", "TASK_FAILED", False, "ValueError: no such colour"),
    ],
)
@on_loop
async def test_however_a_worker_ends_the_failure_says_it(function: str, kind: str, retryable: bool, text: str) -> None:
    async with Bench() as bench:
        bench.begin(worker(function))
        error = await bench.failure()
    assert (error.kind, error.retryable) == (kind, retryable)
    assert text in error.message


@on_loop
async def test_a_lost_worker_is_replaced_for_the_actions_next_try(tmp_path: Path) -> None:
    policy = {"max_attempts": 2, "initial_delay_ms": 1, "backoff": "none"}
    async with Bench() as bench:
        bench.begin(worker("die_once", retry_policy=policy), input=str(tmp_path / "been_here"))
        while not bench.clock.pending:  # the backoff begins when the death has been noticed
            await turns(1)
        await bench.clock.advance(1)
        assert await bench.output() == {"result": "alive"}


@on_loop
async def test_a_worker_killed_from_outside_in_mid_attempt_is_noticed_at_once(fifo: Path) -> None:
    async with Bench() as bench:
        bench.begin(worker("spin"), input=str(fifo))
        os.kill(await said(fifo), signal.SIGKILL)
        error = await bench.failure()
    assert (error.kind, error.retryable, error.details["exit_code"]) == ("WORKER_LOST", True, -9)


@on_loop
async def test_a_worker_killed_while_idle_costs_no_attempt() -> None:
    async with Bench(processes_max=1) as bench:
        bench.begin(worker("pid"), 1)
        first = (await bench.output())["result"]
        os.kill(first, signal.SIGKILL)
        await wait_gone(first)
        bench.begin(worker("pid"), 2)
        _, second = await bench.wait_ends(2)
    assert isinstance(second, FinishAttempt), second
    assert second.output != {"result": first}


@pytest.mark.parametrize("function", ["spin", "spin_deaf"])
@on_loop
async def test_an_endless_loop_is_killed_at_its_timeout(fifo: Path, function: str) -> None:
    async with Bench(processes_max=1) as bench:
        bench.begin(worker(function, timeout_ms=50), input=str(fifo))
        pid = await said(fifo)
        await bench.clock.advance(49)
        assert bench.reports == []
        assert not is_gone(pid)
        await bench.clock.advance(1)
        assert (await bench.failure()).kind == "TASK_TIMEOUT"
        assert is_gone(pid)
        bench.begin(worker("pid"), 2)
        _, second = await bench.wait_ends(2)
        assert isinstance(second, FinishAttempt)


@on_loop
async def test_stopping_kills_the_process_and_reports_nothing(fifo: Path) -> None:
    async with Bench() as bench:
        bench.begin(worker("spin"), input=str(fifo))
        pid = await said(fifo)
        bench.stop()
        await wait_gone(pid)
        await turns()
        assert bench.reports == []


@on_loop
async def test_stopping_while_the_process_is_only_being_started_leaves_nothing_behind(tmp_path: Path) -> None:
    async with Bench() as bench:
        bench.begin(worker("die_once"), input=str(tmp_path / "trace"))
        await turns(1)
        bench.stop()
    assert bench.reports == []
    assert not (tmp_path / "trace").exists()


@on_loop
async def test_closing_kills_what_computes_for_ever(fifo: Path) -> None:
    bench = Bench()
    bench.begin(worker("spin"), input=str(fifo))
    pid = await said(fifo)
    await bench.executor.close(0)
    assert is_gone(pid)
    assert bench.reports == []


@on_loop
async def test_a_function_no_process_can_find_is_a_clear_failure() -> None:
    registry = Registry()
    registry.functions["nameless"] = lambda input: input
    async with Bench(registry) as bench:
        bench.begin(python("nameless", process=True))
        error = await bench.failure()
    assert (error.kind, error.retryable) == ("TASK_FAILED", False)
    assert "must be defined at the top level of a module" in error.message


@on_loop
async def test_a_result_that_cannot_travel_is_a_clear_failure() -> None:
    from tests.runtime.functions import unsendable

    class Unsendable:
        name = "unsendable"

        def run(self, call: Call) -> Work:
            return Work(unsendable, "process")

    registry = Registry()
    registry.register(Unsendable())
    async with Bench(registry) as bench:
        bench.begin(step("a", "unsendable"))
        error = await bench.failure()
    assert "cannot be sent back from its process" in error.message


@on_loop
async def test_no_more_processes_than_allowed_and_those_in_line_can_be_stopped(fifo: Path) -> None:
    async with Bench(processes_max=1) as bench:
        bench.begin(worker("spin"), 1, input=str(fifo))
        await said(fifo)
        bench.begin(worker("die"), 2)
        bench.begin(worker("pid"), 3)
        await turns()
        bench.stop(2)
        bench.stop(1)
        (end,) = await bench.wait_ends()
        assert isinstance(end, FinishAttempt)
        assert end.token == 3


@on_loop
async def test_a_worker_inherits_no_open_file(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        os.set_inheritable(lock.fileno(), True)
        async with Bench() as bench:
            bench.begin(worker("open_files"))
            assert str(tmp_path / "lock") not in (await bench.output())["result"]


@on_loop
async def test_a_worker_that_computes_dies_with_its_killed_parent(fifo: Path) -> None:
    engine = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.runtime.orphaning", str(fifo))
    pid = await said(fifo)
    engine.kill()
    await engine.wait()
    await wait_gone(pid)
