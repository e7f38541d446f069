"""The small dose of the kill torture, for every day: twenty kills, nothing lost, nothing doubled."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.torture.__main__ import torture

KILLS, SECONDS, SETTLE_S = 20, 25, 60


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_by_twenty_kills(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 31)
    killed, verdict = torture(tmp_path, seed, KILLS, SECONDS, SETTLE_S)
    assert not verdict.findings, f"seed {seed}:\n" + "\n".join(verdict.findings[:10])
    assert killed.kills and verdict.runs > 20 and verdict.acknowledged > 20, f"seed {seed}: it did not mean anything"
    assert "Traceback" not in (tmp_path / "stderr.log").read_text(), "no process met anything it did not expect"
