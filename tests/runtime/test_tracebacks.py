"""The traceback of a function that raises: kept with the attempt, shown to people, seen by no expression."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.cli.shell import Shell
from tests.runtime.executing import on_loop
from treadle import Engine, Flow, RunFailed
from treadle.actions.failure import TaskFailure, error_of
from treadle.actions.tracebacks import LENGTH_MAX
from treadle.model import events as e
from treadle.runtime.settings import EngineSettings

SHOP = """
def charge(amount):
    return _deep(amount)

def _deep(amount):
    raise ValueError(f"cannot charge {amount}")
"""
FLOW = """
workflow: till
nodes:
  pay: {action: {kind: python, function: "shop:charge"}, input: {amount: 5}}
"""


def charge(amount: int) -> None:
    try:
        raise KeyError("purse")
    except KeyError as problem:
        raise ValueError(f"cannot charge {amount}") from problem


async def told(place: Path, **settings: Any) -> tuple[RunFailed, list[e.Event]]:
    flow = Flow("till")
    flow.node("pay", charge, input={"amount": 5})
    async with Engine(place / "t.db", settings=EngineSettings(**settings)) as engine:
        run = await engine.start(flow)
        with pytest.raises(RunFailed) as failed:
            await run.result()
        return failed.value, await run.history()


@on_loop
async def test_it_is_kept_once_with_the_failed_attempt_and_noted_on_the_exception(tmp_path: Path) -> None:
    failed, history = await told(tmp_path)
    (note,) = failed.__notes__
    assert "in charge" in note
    assert "KeyError: 'purse'" in note
    assert note.endswith("ValueError: cannot charge 5")
    assert f"treadle{os.sep}actions" not in note
    assert f"treadle{os.sep}runtime" not in note
    (attempt,) = [event for event in history if isinstance(event, e.TokenFailed)]
    assert attempt.error.traceback == note
    (end,) = [event for event in history if isinstance(event, e.RunFailed)]
    assert end.error.traceback is None
    assert "traceback" not in attempt.error.as_json()


@on_loop
async def test_an_operator_can_do_without(tmp_path: Path) -> None:
    failed, history = await told(tmp_path, tracebacks=False)
    assert not getattr(failed, "__notes__", [])
    assert not any("Traceback" in repr(event) for event in history)


@on_loop
async def test_it_is_logged_for_those_who_want_to_hear(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as said:
        await told(tmp_path)
    (line,) = [line for line in said if line["event"] == "an attempt failed"]
    assert line["log_level"] == "info"
    assert (line["node"], line["attempt"]) == ("pay", 1)
    assert "in charge" in line["traceback"]


def test_it_is_bounded_and_keeps_its_end() -> None:
    def deep(n: int) -> None:
        if n == 0:
            raise ValueError("x" * 500)
        deep_too(n - 1)

    def deep_too(n: int) -> None:
        deep(n)

    try:
        deep(200)
    except ValueError as problem:
        text = error_of(problem).traceback
    assert text is not None
    assert len(text) <= LENGTH_MAX
    assert text.startswith("Traceback (most recent call last):\n  …\n")
    assert text.endswith("x" * 500)


def test_secrets_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_SECRET_PAY", "s3cret-value")
    try:
        raise ValueError("denied: s3cret-value")
    except ValueError as problem:
        text = error_of(problem).traceback
    assert text is not None
    assert text.endswith("ValueError: denied: ***")


def test_what_the_engine_itself_refuses_has_none() -> None:
    assert error_of(TaskFailure("no such program")).traceback is None


def test_the_command_line_shows_it(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("shop.py", SHOP)
    shell.write("till.yaml", FLOW)
    shell("run", "till.yaml", code=1)
    (row,) = shell.json("runs", "list")
    shown = shell.untidy("runs", "show", row["run"]).stdout
    assert "in _deep" in shown
    assert "in _deep" in shell.json("runs", "show", row["run"])["traceback"]
    assert "in _deep" not in shell.untidy("runs", "history", row["run"]).stdout
    assert "in _deep" in shell.untidy("runs", "history", row["run"], "--full").stdout
