"""Commits whose outcome nobody knows, and reads that fail: the engine goes on by itself, nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.torture.engine import DATABASE
from tests.torture.faulty import FaultyStore
from tests.torture.inside import play
from tests.torture.judge import judge


def tortured(place: Path, seed: int, commit_rate: float, read_rate: float) -> tuple[list[str], Counter[str]]:
    async def run() -> tuple[list[str], Counter[str]]:
        store = await FaultyStore.open(place / DATABASE)
        assert isinstance(store, FaultyStore)
        store.random = random.Random(seed)
        store.commit_rate, store.read_rate = commit_rate, read_rate
        evidence = await play(
            place, store, seed, begin=lambda: setattr(store, "armed", True), end=lambda: setattr(store, "armed", False)
        )
        return judge(evidence).findings, store.faults

    return asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize(("commit_rate", "read_rate"), [(0.0, 0.0), (0.2, 0.0), (0.5, 0.0), (0.2, 0.1)])
def test_nothing_is_lost_when_commits_have_unknown_outcomes(
    tmp_path: Path, commit_rate: float, read_rate: float
) -> None:
    seed = random.SystemRandom().randrange(1 << 31)
    findings, faults = tortured(tmp_path, seed, commit_rate, read_rate)
    assert not findings, f"seed {seed}: " + "\n".join(findings)
    assert (faults["lost"] + faults["unseen"] > 0) is (commit_rate > 0), "the faults were really injected"
    assert (faults["unreadable"] > 0) is (read_rate > 0)
