"""What user code raises that is no `Exception` fails its attempt like any other, at every place user code is called."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.executing import Bench, on_loop, python
from tests.unit.runtime.attempts import step
from treadle import Engine, Flow, RunFailed
from treadle.actions.failure import error_of, is_interrupt
from treadle.actions.protocol import Call
from treadle.actions.registry import Registry
from treadle.tasks import Trust


class Stop(BaseException):
    """As libraries have one of their own."""


RAISED: tuple[type[BaseException], ...] = (Stop, SystemExit, KeyboardInterrupt, GeneratorExit)


@pytest.mark.parametrize("raised", RAISED)
@on_loop
async def test_raised_by_functions_of_every_kind(raised: type[BaseException]) -> None:
    registry = Registry()

    @registry.function("at_once")
    async def at_once() -> None:
        raise raised("told to")

    @registry.function("in_a_thread")
    def in_a_thread() -> None:
        raise raised("told to")

    class Shout:
        name = "shout"

        def run(self, _call: Call) -> Any:
            raise raised("told to")

    class Later:
        name = "later"

        def run(self, _call: Call) -> Any:
            return at_once()

    registry.register(Shout())
    registry.register(Later())
    async with Bench(registry) as bench:
        for action in (python("at_once"), python("in_a_thread"), step("a", "shout", {}), step("a", "later", {})):
            bench.begin(action)
            error = await bench.failure()
            assert (error.kind, error.retryable) == ("TASK_FAILED", False)
            assert error.message == f"{raised.__name__}: told to"


@on_loop
async def test_raised_in_a_process() -> None:
    async with Bench(Registry()) as bench:
        bench.begin(python("tests.runtime.functions:stops", process=True))
        assert (await bench.failure()).message == "KeyboardInterrupt: told to"


@on_loop
async def test_raised_by_a_module_that_exits_while_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "exits_by_hand.py").write_text("raise SystemExit(3)\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry()
    registry.trust = Trust([str(tmp_path)])
    async with Bench(registry) as bench:
        bench.begin(python("exits_by_hand:f"))
        assert "ends while it is imported: SystemExit(3)" in (await bench.failure()).message
    assert "exits_by_hand" not in sys.modules


@on_loop
async def test_the_run_fails_and_the_engine_goes_on(tmp_path: Path) -> None:
    async def stops() -> None:
        raise Stop("told to")

    async def fine() -> int:
        return 1

    def stop(*_: Any) -> None:
        raise Stop

    flow = Flow("stops")
    flow.node("n", stops)
    good = Flow("good")
    good.node("n", fine)
    async with Engine(tmp_path / "t.db") as engine:
        engine.listen(stop)
        run = await engine.start(flow)
        with pytest.raises(RunFailed, match="Stop: told to"):
            await run.result()
        assert (await (await engine.start(good)).wait()).status.value == "completed"


def test_an_exception_whose_own_text_cannot_be_made_is_a_failure_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise Stop

    assert error_of(Mute()).message == "Mute: (its text cannot be made: Stop)"


def test_a_persons_interrupt_is_not_an_attempts_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _number: signal.default_int_handler)
    assert is_interrupt(KeyboardInterrupt())
    assert not is_interrupt(SystemExit())
    monkeypatch.setattr(signal, "getsignal", lambda _number: test_a_persons_interrupt_is_not_an_attempts_failure)
    assert not is_interrupt(KeyboardInterrupt())
