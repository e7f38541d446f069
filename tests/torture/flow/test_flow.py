"""The small dose of the torture of flow control, for every day; and the judge finds every kind of fault that is planted
into its evidence."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy

import pytest
from msgspec.structs import replace

from tests.torture.flow.judge import FlowEvidence, judge, keys_live_at_once, most_waiting
from tests.torture.flow.roles import SINGLE
from tests.torture.flow.torture import Done, FlowTorture
from treadle.model import events as e
from treadle.model.states import RunStatus

STARTS, STRIKES, SETTLE_S = 60, 3, 120.0
Torture = tuple[int, Done, FlowEvidence]


@pytest.fixture(scope="module")
def tortured(tmp_path_factory: pytest.TempPathFactory) -> Torture:
    seed = random.SystemRandom().randrange(1 << 31)
    return seed, *FlowTorture(tmp_path_factory.mktemp("flow"), seed, STARTS, lambda _text: None).run(STRIKES, SETTLE_S)


@pytest.mark.slow
def test_four_engines_that_are_killed_never_let_two_runs_of_a_key_live_at_once(tortured: Torture) -> None:
    seed, done, evidence = tortured
    verdict = judge(evidence)
    assert not verdict.findings + done.findings, f"seed {seed}:\n" + "\n".join(verdict.findings[:10] + done.findings)
    assert verdict.runs == 2 * STARTS and sum(done.faults.values()) == STRIKES, f"seed {seed}: it did not mean anything"
    assert most_waiting(evidence) > 5 and keys_live_at_once(evidence) > 1, f"seed {seed}: nobody had to wait"


def _at(evidence: FlowEvidence, kind: type[e.Event], number: int = 0) -> tuple[int, int]:
    """Which transaction has an event of that kind, of the workflow with one place, and where in it."""
    found = [
        (transaction, at)
        for transaction, events in enumerate(evidence.log)
        for at, followed in enumerate(events)
        if followed.workflow == SINGLE and isinstance(followed.event, kind)
    ]
    return found[number]


def two_at_once(evidence: FlowEvidence) -> None:
    """An end is committed a transaction after the start that it made room for."""
    transaction, at = _at(evidence, e.RunCompleted, 10)
    started, _ = _at(evidence, e.RunStarted, 11)
    evidence.log.insert(started + 1, [evidence.log[transaction].pop(at)])


def overtaken(evidence: FlowEvidence) -> None:
    """The last in the queue was queued first."""
    transaction, at = _at(evidence, e.RunQueued, -1)
    evidence.log.insert(_at(evidence, e.RunQueued)[0], [evidence.log[transaction].pop(at)])


def never_started(evidence: FlowEvidence) -> None:
    transaction, at = _at(evidence, e.RunStarted, -1)
    del evidence.log[transaction][at]


def lost(evidence: FlowEvidence) -> None:
    del evidence.runs[evidence.client[3]["run"]]


def not_completed(evidence: FlowEvidence) -> None:
    run = evidence.client[3]["run"]
    evidence.runs[run] = replace(evidence.runs[run], status=RunStatus.CANCELLED)


def acknowledged_twice(evidence: FlowEvidence) -> None:
    evidence.client.append({**evidence.client[0], "run": evidence.client[1]["run"]})


def not_acknowledged(evidence: FlowEvidence) -> None:
    key = evidence.client[0]["key"]
    evidence.client = [line for line in evidence.client if line["key"] != key]


def twice(evidence: FlowEvidence) -> None:
    run = evidence.client[0]["run"]
    evidence.runs["another"] = evidence.runs[run]


def worked_at_once(evidence: FlowEvidence) -> None:
    """The journal says that the work of one run went on until the next one's had begun."""
    evidence.faults = []
    single = {line["run"] for line in evidence.client if line["workflow"] == SINGLE}
    begun = [line for line in evidence.work if line["what"] == "begin" and line["run"] in single]
    for line in evidence.work:
        if line["what"] == "end" and line["by"] == begun[5]["by"]:
            line["mono"] = begun[6]["mono"] + 1


def left(evidence: FlowEvidence) -> None:
    evidence.left["the outbox"] = 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "forge",
    [
        two_at_once,
        overtaken,
        never_started,
        lost,
        not_completed,
        acknowledged_twice,
        not_acknowledged,
        twice,
        worked_at_once,
        left,
    ],
)
def test_the_judge_finds_a_forgery(tortured: Torture, forge: Callable[[FlowEvidence], None]) -> None:
    evidence = deepcopy(tortured[2])
    forge(evidence)
    assert judge(evidence).findings
