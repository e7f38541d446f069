"""The judge's opinion on schedules: a time that is due and has no run is a loss."""

from __future__ import annotations

import pytest

from tests.torture.schedules import NAME, judge
from tests.torture.verdict import Evidence, Verdict
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.schedule.times import occurrence_key
from treadle.store.port import RunRow


def evidence(*due: int, until: int) -> Evidence:
    runs = {
        f"run-{at}": RunRow(RunId(f"run-{at}"), "chain", 1, RunStatus.COMPLETED, 9, occurrence_key(NAME, at))
        for at in due
    }
    client = [{"op": "scheduled", "every_ms": 500, "at": 900}, {"op": "unscheduled", "at": until}]
    return Evidence(client=client, work=[], deaths={}, runs=runs, histories={}, left={}, damage=[])


def findings(given: Evidence) -> list[str]:
    verdict = Verdict(findings=[])
    judge(given, verdict)
    return verdict.findings


def test_a_schedule_that_was_kept_is_in_order() -> None:
    assert findings(evidence(1_000, 1_500, 2_000, until=2_100)) == []


@pytest.mark.parametrize(
    "broken",
    [
        evidence(1_000, 2_000, until=2_100),
        evidence(until=2_100),
        evidence(1_000, 1_500, until=90_000),
    ],
    ids=["a time left out", "never", "stopped long before the end"],
)
def test_what_is_missing_is_found(broken: Evidence) -> None:
    assert findings(broken)
