"""The engine without `async`: the same methods, iteration, interruption, and where it refuses."""

from __future__ import annotations

import asyncio
import inspect
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import treadle
from tools import blocking as tool
from treadle.errors import CommandRefused, EngineStopped, StorePlaceError, TreadleError
from treadle.runtime import blocking, client, engine, run
from treadle.runtime.blocking import WouldBlock

FLOW = treadle.Flow("greets", output={"text": "$.nodes.greet.output.text"})


@treadle.task
def greet(name: str) -> dict[str, str]:
    return {"text": f"Hello, {name}!"}


FLOW.node("greet", greet, input={"name": "$.input.name"})

ASKS = treadle.Flow("asks")
ASKS.node("ask", action={"kind": "human"})


@pytest.fixture
def opened() -> Iterator[Any]:
    with treadle.open(":memory:") as opened:
        yield opened


def test_a_flow_runs_without_async(opened: Any) -> None:
    started = opened.start(FLOW, {"name": "Ada"})
    assert started.result(10) == {"text": "Hello, Ada!"}
    assert [row.run for row in opened.runs()] == [started.id]
    assert opened.run(started.id).wait(10).output == {"text": "Hello, Ada!"}


@pytest.fixture(params=["itself", "server"])
def reached(request: pytest.FixtureRequest) -> Iterator[Any]:
    """An engine in this process, or a client of a service in another."""
    if request.param == "itself":
        yield request.getfixturevalue("opened")
        return
    project = request.getfixturevalue("services").project()
    with treadle.connect(project.url, key=project.key) as client:
        yield client


def test_history_is_iterated_live_and_may_be_left_early(reached: Any) -> None:
    started = reached.start(ASKS)
    for event in started.events():
        if event.type == "gate.opened":
            reached.complete_gate(started.id, event.token, {})
    assert [event.type for event in started.history()][-1] == "run.completed"
    for _event in reached.start(ASKS).events():
        break
    assert started.status() == "completed", "the loop goes on"


def test_what_goes_wrong_is_raised_here(reached: Any) -> None:
    with pytest.raises(CommandRefused, match="there is no workflow 'nothing'"):
        reached.start("nothing")
    with pytest.raises(TimeoutError):
        reached.start(ASKS).wait(0)


@pytest.mark.parametrize(("asynchronous", "kind"), [(run.Run, blocking.Drawn), (engine.Engine, blocking.Opened)])
def test_every_public_method_has_its_blocking_counterpart(asynchronous: type, kind: Any) -> None:
    made: Any = blocking.face(asynchronous, kind)
    for name, function in inspect.getmembers(asynchronous, inspect.isfunction):
        if not name.startswith("_"):
            here = getattr(made, name)
            assert not inspect.iscoroutinefunction(here)
            assert not inspect.isasyncgenfunction(here)
            assert inspect.signature(here).parameters.keys() == inspect.signature(function).parameters.keys()


def test_the_types_are_those_of_the_asynchronous_classes() -> None:
    assert tool.STUB.read_text("utf-8") == tool.written(), "run: .venv/bin/python -m tools.blocking"
    stub = tool.STUB.read_text("utf-8")
    for asynchronous in (run.Run, client.Client, engine.Engine):
        for name, _function in inspect.getmembers(asynchronous, inspect.isfunction):
            assert name.startswith("_") or f"def {name}(" in stub
    assert "async" not in stub.partition("class Run")[2].casefold().replace("asynchronous", "")


def test_inside_a_running_loop_it_refuses_and_says_what_to_write_instead(opened: Any) -> None:
    async def asks() -> None:
        with pytest.raises(WouldBlock, match="async with Engine"):
            treadle.open(":memory:")
        with pytest.raises(WouldBlock):
            opened.runs()

    asyncio.run(asks())
    assert opened.runs() == []


def test_a_task_in_a_thread_may_use_the_engine_it_runs_on(opened: Any) -> None:
    @treadle.task
    def count() -> dict[str, int]:
        return {"runs": len(opened.runs())}

    flow = treadle.Flow("counts", output={"runs": "$.nodes.count.output.runs"})
    flow.node("count", count)
    assert opened.start(flow).result(10) == {"runs": 1}


def test_an_interrupt_ends_the_waiting_and_not_the_run(reached: Any) -> None:
    started = reached.start(ASKS)
    main = threading.main_thread().ident
    assert main is not None
    key = threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt) as raised:
        key.start()
        started.wait(20)
    assert raised.value.__context__ is None, "it did not wait for the end of its patience"
    assert started.status() == "running"


def test_closing_twice_is_harmless_and_a_closed_engine_says_so() -> None:
    opened = treadle.open(":memory:")
    assert opened.is_open
    opened.close()
    opened.close()
    assert not opened.is_open


def test_a_process_that_forgets_to_close_ends(tmp_path: Path) -> None:
    program = f"import treadle; e = treadle.open({str(tmp_path / 'forgotten.db')!r}); print(e.runs())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_a_store_is_read_without_owning_it(tmp_path: Path) -> None:
    place = tmp_path / "treadle.db"
    with treadle.open(place) as owner:
        started = owner.start(ASKS)
        with treadle.connect(place) as client:
            assert [row.run for row in client.runs()] == [started.id]
            client.run(started.id).cancel()
            assert client.run(started.id).wait(10).status == "cancelled"
        with pytest.raises(TreadleError, match="is coordinated by"):
            treadle.open(place)


def test_after_its_with_a_blocking_engine_says_that_it_was_closed(tmp_path: Path) -> None:
    with treadle.open(tmp_path / "treadle.db") as opened:
        assert opened.runs() == []
    with pytest.raises(EngineStopped, match="inside its `with`"):
        opened.runs()


def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    with pytest.raises(StorePlaceError, match="no such store"), treadle.connect(tmp_path / "typo.db"):
        pass
    assert list(tmp_path.iterdir()) == []
