"""The simulator itself: a seed repeats itself to the byte, a failure is explained and made smaller, batches count."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import msgspec
import pytest

from treadle.kernel import join_verdict
from treadle.testing.simulator import batch
from treadle.testing.simulator.__main__ import main
from treadle.testing.simulator.coverage import Coverage
from treadle.testing.simulator.draw import Draw
from treadle.testing.simulator.generator import generate
from treadle.testing.simulator.plan import FAULTS, plan_of
from treadle.testing.simulator.report import describe
from treadle.testing.simulator.schedule import Host, Process, Schedule
from treadle.testing.simulator.simulate import shrink, simulate
from treadle.testing.simulator.world import World


def digest(seed: int) -> str:
    """Of everything that was written in a seed's world."""
    plan = plan_of(seed)
    world = World(plan, generate(plan), Coverage())
    world.live()
    histories = {run: watched.events for run, watched in world.auditor.runs.items()}
    return hashlib.sha256(msgspec.msgpack.encode(histories)).hexdigest()


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


def test_a_crashed_host_never_acts_again_in_its_old_life() -> None:
    acted = []

    def process() -> Process:
        while True:
            acted.append(schedule.now)
            yield 10

    schedule = Schedule(Draw(1, "order"), 0)
    host = Host("h")
    schedule.spawn(process(), host)
    schedule.run_until(25, 100)
    host.die()
    schedule.run_until(100, 100)
    assert acted == [0, 10, 20]


def test_a_stalled_host_goes_on_as_if_nothing_had_happened() -> None:
    acted = []

    def process() -> Process:
        acted.append(schedule.now)
        yield 10
        acted.append(schedule.now)

    schedule = Schedule(Draw(1, "order"), 0)
    host = Host("h")
    schedule.spawn(process(), host)
    schedule.run_until(5, 100)
    host.stalled_until = 500
    schedule.run_until(1_000, 100)
    assert acted == [0, 500]


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
