"""What the service answers is what its description says: Schemathesis over every operation, with a fixed seed.

`./dev fuzz` does the same for longer, with fresh seeds.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fuzz.described import broken_requests, led_requests
from tests.fuzz.world import Attacked
from tests.postgres import new_database


def requests_made(report: str) -> int:
    made = re.search(r"(\d+) generated", report)
    assert made is not None, report
    return int(made[1])


@pytest.mark.slow
def test_requests_against_the_description_are_refused_as_described(tmp_path: Path) -> None:
    with Attacked(str(tmp_path / "treadle.db"), tmp_path) as service:
        assert requests_made(broken_requests(service)) > 3_000


@pytest.mark.slow
def test_requests_that_keep_to_the_description_are_answered_as_described(tmp_path: Path) -> None:
    with Attacked(str(tmp_path / "treadle.db"), tmp_path) as service:
        assert requests_made(led_requests(service)) > 400


@pytest.mark.slow
def test_the_description_holds_on_postgresql(tmp_path: Path) -> None:
    with new_database() as dsn, Attacked(dsn, tmp_path) as service:
        assert requests_made(led_requests(service, examples=1)) > 100
