"""The simulator itself: a seed repeats itself to the byte, a failure is explained and made smaller, batches count."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.sim.histories import histories
from tests.simulator import batch
from tests.simulator.__main__ import main
from tests.simulator.draw import Draw
from tests.simulator.plan import FAULTS, plan_of
from tests.simulator.report import describe
from tests.simulator.schedule import Host, Schedule
from tests.simulator.simulate import shrink, simulate
from treadle.kernel import join_verdict


def digest(seed: int) -> str:
    """Of everything that was written in a seed's world."""
    return hashlib.sha256(json.dumps(histories(seed)).encode()).hexdigest()


def test_a_seed_writes_the_same_histories_in_every_process() -> None:
    """Not even the order of a set may matter: hashes of strings differ from process to process."""
    script = f"import sys; sys.path.insert(0, '.'); from {__name__} import digest; print(digest(1001), digest(1002))"
    here = f"{digest(1001)} {digest(1002)}"
    for hashing in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": hashing, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == here


def clocked(schedule: Schedule, acted: list[int]) -> Callable[[], Coroutine[Any, Any, None]]:
    """A process that notes every ten milliseconds that it acts."""

    async def main() -> None:
        while True:
            acted.append(schedule.now)
            await asyncio.sleep(0.01)

    return main


def test_a_crashed_host_never_acts_again_in_its_old_life() -> None:
    acted: list[int] = []
    schedule = Schedule(Draw(1, "order"), 0)
    host = Host("h", schedule)
    host.boot(clocked(schedule, acted))
    schedule.run_for(25, 100)
    host.die()
    schedule.run_for(75, 100)
    schedule.close()
    assert acted == [0, 10, 20]


def test_a_stalled_host_goes_on_as_if_nothing_had_happened() -> None:
    acted: list[int] = []
    schedule = Schedule(Draw(1, "order"), 0)
    host = Host("h", schedule)
    host.boot(clocked(schedule, acted))
    schedule.run_for(15, 100)
    host.stalled_until = 0.5
    schedule.run_for(490, 100)
    schedule.close()
    assert acted == [0, 10, 500]


def test_what_a_process_lets_through_is_a_defect() -> None:
    async def main() -> None:
        raise KeyError("nobody expected it")

    schedule = Schedule(Draw(1, "order"), 0)
    Host("h", schedule).boot(main)
    assert not schedule.run_for(10, 100)
    assert isinstance(schedule.problem, KeyError)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> int:
    """A kernel whose joins wait for nobody; a seed that notices."""
    monkeypatch.setattr(join_verdict, "_verdict_all", lambda *_: ("fire", "", "broken on purpose"))
    return next(seed for seed in range(2_000, 2_100) if simulate(seed).failure is not None)


@pytest.mark.interpreted
def test_a_failure_is_explained_and_made_smaller(broken: int) -> None:
    failed = simulate(broken)
    assert failed.failure is not None
    smaller = shrink(failed)
    assert smaller.failure is not None
    assert smaller.failure.rule == failed.failure.rule
    assert len(smaller.plan.features) < len(failed.plan.features)
    text = describe(smaller)
    assert f"./dev sim {broken} --without" in text
    assert "join.fired" in text
    assert failed.failure.rule in text


@pytest.mark.interpreted
def test_the_command_line_says_what_failed(broken: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(broken), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["seed"] == broken
    assert said["again"].startswith("./dev sim")


def test_the_command_line_counts_what_it_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "10", "--from", "1000", "--jobs", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["seeds"] == 10
    assert said["completed_runs"] > 0
    assert said["coverage"]["events"]["run.completed"] > 0


def test_a_batch_in_which_nothing_completes_proves_nothing() -> None:
    assert batch.Batch(seeds=100, runs=200, completed_runs=10).is_vacuous
    assert not batch.Batch(seeds=100, runs=200, completed_runs=100).is_vacuous


def test_a_seed_without_faults_has_none() -> None:
    calm = next(seed for seed in range(3_000, 3_100) if not plan_of(seed).faults)
    assert not simulate(calm).coverage.faults
    assert {fault for seed in range(3_000, 3_100) for fault in plan_of(seed).faults} == set(FAULTS)
