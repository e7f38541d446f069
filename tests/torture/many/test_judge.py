"""The judge of many machines can see: each kind of fault, planted into honest evidence, is found; excuses are heard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy

import pytest
from msgspec.structs import replace

from tests.torture.engine import DATABASE
from tests.torture.inside import play
from tests.torture.journal import mono_ms, now_ms
from tests.torture.journeys import MANY_KINDS
from tests.torture.many.evidence import ManyEvidence
from tests.torture.many.judge import AFTER_MS, judge
from tests.torture.test_judge import FORGERIES
from tests.torture.verdict import Evidence
from treadle.model import events as e
from treadle.runtime.queue.engine_queues import ALONE
from treadle.store.sqlite import SqliteStore

OF_ONE_FILE = ("execute_again_without_a_kill", "execute_after_the_result", "execute_again_before_the_kill")
"""Forgeries of what only the other judge looks at: who was killed."""


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> ManyEvidence:
    place = tmp_path_factory.mktemp("honest")

    async def run() -> Evidence:
        return await play(place, await SqliteStore.open(place / DATABASE), seed=5, actors=3, kinds=MANY_KINDS)

    found = asyncio.run(run())
    fields = {name: getattr(found, name) for name in found.__struct_fields__}
    for line in fields["work"]:
        line["engine"] = ALONE  # the only engine of a file claims under this name, whatever its own
    return ManyEvidence(**fields, faults=[], replays=0, ahead=now_ms() - mono_ms())


def first_result(evidence: ManyEvidence) -> tuple[list[e.Event], int, str]:
    """A history, where a result is in it, and whose."""
    for history in evidence.histories.values():
        for place, event in enumerate(history):
            if isinstance(event, e.TokenCompleted) and isinstance(event.output, dict) and "by" in event.output:
                return history, place, event.output["by"]
    raise AssertionError("no result at all")


def execute_again(evidence: ManyEvidence) -> None:
    line = evidence.work[0]
    evidence.work.append({**line, "mono": line["mono"] + 5, "engine": "other.1", "by": "other.1/1"})


def execute_long_after_the_result(evidence: ManyEvidence) -> None:
    line = evidence.work[0]
    evidence.work.append({**line, "mono": line["mono"] + 60_000, "engine": "other.1", "by": "other.1/1"})
    strike(evidence, line, 30_000)


def accept_the_result_of_nobody(evidence: ManyEvidence) -> None:
    history, place, _ = first_result(evidence)
    history[place] = replace(history[place], output={"by": "zombie.1/1"})


def accept_the_result_of_whoever_lost_its_claim(evidence: ManyEvidence) -> None:
    history, place, _ = first_result(evidence)
    completed = history[place]
    assert isinstance(completed, e.TokenCompleted)
    history.insert(place, e.TokenStarted(completed.seq, completed.at, completed.token, 1, "other.2#7"))


def accept_the_result_of_an_earlier_attempt(evidence: ManyEvidence) -> None:
    for history in evidence.histories.values():
        for place, event in enumerate(history):
            if isinstance(event, e.TokenDispatched) and event.attempt == 3:
                history[place] = replace(event, attempt=4)
                return


def accept_the_result_of_a_lost_worker(evidence: ManyEvidence) -> None:
    history, place, _ = first_result(evidence)
    completed = history[place]
    assert isinstance(completed, e.TokenCompleted)
    later = completed.at + 5_000
    again = e.TokenDispatched(completed.seq, later, completed.token, 1, {}, recovery=1)
    history[place:] = [again, *(replace(event, at=event.at + 5_000) for event in history[place:])]


def take_up_again(evidence: ManyEvidence, claim: str) -> str:
    """A worker's claim has run out, the work was handed out again, and `claim` has begun it. Returns the lost claim."""
    for history in evidence.histories.values():
        for place, event in enumerate(history):
            if isinstance(event, e.TokenStarted) and event.worker is not None:
                later = event.at + 5_000
                again = e.TokenDispatched(event.seq, later, event.token, 1, {}, recovery=1)
                begun = replace(event, at=later, worker=claim or event.worker)
                history[place + 1 : place + 1] = [again, begun]
                return event.worker
    raise AssertionError("nothing was claimed")


def accept_the_result_of_a_lost_worker_after_another_has_claimed(evidence: ManyEvidence) -> None:
    take_up_again(evidence, f"{ALONE}#99")


def believe_another_time(evidence: ManyEvidence) -> None:
    history, place, _ = first_result(evidence)
    history[place] = replace(history[place], at=history[place].at - 3_600_000)


def hand_out_in_the_future(evidence: ManyEvidence) -> None:
    for history in evidence.histories.values():
        for place, event in enumerate(history):
            if isinstance(event, e.TokenDispatched):
                history[place] = replace(event, at=event.at + 3_600_000)
                return


def wake_early(evidence: ManyEvidence) -> None:
    for line in evidence.work:
        if line["node"] == "after" and evidence.runs[line["run"]].workflow == "rest":
            line["mono"] -= 2_900


PLANTED = [
    execute_again,
    execute_long_after_the_result,
    accept_the_result_of_nobody,
    accept_the_result_of_whoever_lost_its_claim,
    accept_the_result_of_an_earlier_attempt,
    accept_the_result_of_a_lost_worker,
    accept_the_result_of_a_lost_worker_after_another_has_claimed,
    believe_another_time,
    hand_out_in_the_future,
    wake_early,
    *(forgery for forgery in FORGERIES if forgery.__name__ not in OF_ONE_FILE),
]


def strike(evidence: ManyEvidence, line: dict[str, object], ms: int) -> None:
    """Something was done to whoever executed that."""
    who = str(line["engine"]).partition(".")[0]
    evidence.faults.append({"mono": line["mono"], "fault": "stop", "on": who, "ms": ms})


@pytest.mark.slow
def test_the_judge_finds_nothing_where_nothing_happened(honest: ManyEvidence) -> None:
    verdict = judge(honest)
    assert verdict.findings == []
    assert verdict.kinds.keys() >= set(MANY_KINDS)


def test_a_lost_worker_may_answer_while_nobody_else_has_claimed_its_work(honest: ManyEvidence) -> None:
    excused = deepcopy(honest)
    take_up_again(excused, "")
    assert judge(excused).findings == []


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_the_judge_finds(honest: ManyEvidence, plant: Callable[[ManyEvidence], None]) -> None:
    planted = deepcopy(honest)
    plant(planted)
    assert judge(planted).findings


def test_who_was_struck_may_have_its_work_done_again_and_nobody_else(honest: ManyEvidence) -> None:
    struck = deepcopy(honest)
    line = struck.work[0]
    execute_again(struck)
    struck.faults.append({"mono": line["mono"] - AFTER_MS - 10_000, "fault": "kill", "on": "server", "ms": 0})
    assert judge(struck).findings, "that was long ago"
    strike(struck, line, 0)
    assert not judge(struck).findings
