"""Everywhere a run is named on the command line: an exact id wins, and a name that fits several runs does nothing."""

from __future__ import annotations

import asyncio

import pytest

from tests.cli.served import ServedShell
from tests.cli.shell import Shell
from tests.cli.test_engine_verbs import REVIEW
from treadle import Engine, connect
from treadle.cli.frame.exits import REFUSED
from treadle.language import load_text
from treadle.model.states import RunStatus

NAMES = ("order-1", "reorder-1", "preorder-1")
NAMING = [
    "runs show RUN",
    "runs history RUN",
    "runs watch RUN",
    "runs cancel RUN",
    "runs pause RUN",
    "runs resume RUN",
    "runs abort RUN",
    "runs retry RUN",
    "runs signal RUN news",
    "runs list --after RUN",
    "runs list --parent RUN",
    "gates list --run RUN",
    "gates show RUN",
    "gates complete RUN/2",
    "gates claim RUN --by Ada",
    "gates delegate RUN Bob --by Ada",
    "artifacts list RUN",
    "artifacts get RUN report",
]


@pytest.fixture(scope="module")
def shell(shared_desk: Shell) -> Shell:
    """Runs of similar names that wait for a person; on a store nobody coordinates them any more."""
    shell = shared_desk

    async def begin() -> None:
        opening = connect if isinstance(shell, ServedShell) else Engine
        async with opening(shell.folder / "treadle.db") as client:
            for name in NAMES:
                await client.start(load_text(REVIEW), {"draft": name}, run_id=name)

    asyncio.run(begin())
    return shell


@pytest.mark.parametrize("words", NAMING)
def test_a_name_that_fits_several_runs_is_refused_with_them(shell: Shell, words: str) -> None:
    done = shell.here(*words.replace("RUN", "eorder-1").split())
    assert done.returncode == REFUSED
    assert "several runs end in 'eorder-1': preorder-1, reorder-1" in done.stderr


def test_an_exact_id_is_the_one_that_is_answered(shell: Shell) -> None:
    with shell.going("engine", until="coordinates"):
        assert "from 6 characters on" in shell("runs", "cancel", "1", code=4).stderr
        shell("gates", "complete", "order-1", '{"publish": true}')
        shell("runs", "watch", "order-1")
        left = {row["run"]: row["status"] for row in shell.json("runs", "list")}
    assert left == {"order-1": RunStatus.COMPLETED, "reorder-1": RunStatus.RUNNING, "preorder-1": RunStatus.RUNNING}
