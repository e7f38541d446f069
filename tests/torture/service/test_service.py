"""The small dose of the service's torture, and the judge itself: each kind of loss, doubling and gap is found."""

from __future__ import annotations

import asyncio
import random
from copy import deepcopy

import pytest
from msgspec.structs import replace

from tests.torture.engine import DATABASE
from tests.torture.service.changes import CHANGED, GATHERING, SPENDING, WAYS
from tests.torture.service.changes_judge import RULES, Rule, ways_of
from tests.torture.service.evidence import ServiceEvidence
from tests.torture.service.forged_changes import BY_RULE, OTHERS, Forgery, line_of
from tests.torture.service.judge import judge
from tests.torture.service.torture import ServiceTorture, Tortured, gather
from tests.torture.verdict import Verdict
from treadle.model import events as e
from treadle.model.states import RunStatus

SECONDS, SETTLE_S = 12, 90
Honest = tuple[Tortured, Verdict, ServiceEvidence]


@pytest.fixture(scope="module")
def tortured(tmp_path_factory: pytest.TempPathFactory) -> Honest:
    """A torture of a few seconds, and what it has left behind."""
    place = tmp_path_factory.mktemp("service")
    seed = random.SystemRandom().randrange(1 << 31)
    done, verdict = ServiceTorture(place, seed, False, lambda _text: None).run(SECONDS, SETTLE_S)
    assert not verdict.findings, f"seed {seed}:\n" + "\n".join(verdict.findings[:10])
    return done, verdict, asyncio.run(gather(place, str(place / DATABASE), False))


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_over_http_while_servers_are_killed(tortured: Honest) -> None:
    done, verdict, evidence = tortured
    assert done.kills and verdict.acknowledged > 20
    assert {"asked", "called", "pulled", "hooked", CHANGED, SPENDING, GATHERING} <= verdict.kinds.keys()
    assert set(ways_of(evidence)) == set(WAYS)
    assert {line["stream"] for line in evidence.client if line["op"] == "streamed"} == {"run", "stream", "gates/stream"}


def lose_a_run(evidence: ServiceEvidence) -> None:
    run = line_of(evidence, "started")["run"]
    del evidence.runs[run], evidence.histories[run]


def start_twice(evidence: ServiceEvidence) -> None:
    run = line_of(evidence, "started")["run"]
    evidence.runs["again"] = replace(evidence.runs[run], run="again")
    evidence.histories["again"] = evidence.histories[run]


def deliver_twice(evidence: ServiceEvidence) -> None:
    line = line_of(evidence, "delivered")
    evidence.client.append({**line, "run": "another"})


def start_for_nobody(evidence: ServiceEvidence) -> None:
    key = line_of(evidence, "started")["key"]
    evidence.client = [line for line in evidence.client if line["op"] != "intend" or line["key"] != key]


def change_an_output(evidence: ServiceEvidence) -> None:
    history = evidence.histories[line_of(evidence, "delivered")["run"]]
    history[-1] = replace(history[-1], output={"n": -1})


def leave_a_run_open(evidence: ServiceEvidence) -> None:
    run = line_of(evidence, "started")["run"]
    evidence.runs[run] = replace(evidence.runs[run], status=RunStatus.RUNNING)


def tell_another_end(evidence: ServiceEvidence) -> None:
    line_of(evidence, "ended")["output"] = {"n": -1}


def lose_an_answer(evidence: ServiceEvidence) -> None:
    run = line_of(evidence, "answered")["run"]
    evidence.histories[run] = [event for event in evidence.histories[run] if not isinstance(event, e.GateCompleted)]


def apply_a_callback_twice(evidence: ServiceEvidence) -> None:
    run = line_of(evidence, "called back")["run"]
    history = evidence.histories[run]
    history += [event for event in history if isinstance(event, e.CallbackReceived)]


def say_applied_twice(evidence: ServiceEvidence) -> None:
    evidence.client.append(line_of(evidence, "called back", applied=True))


def lose_a_callback(evidence: ServiceEvidence) -> None:
    run = line_of(evidence, "called back", applied=True)["run"]
    evidence.histories[run] = [event for event in evidence.histories[run] if not isinstance(event, e.CallbackReceived)]


def accept_two_results(evidence: ServiceEvidence) -> None:
    evidence.client.append({**line_of(evidence, "completed", status=200), "by": "somebody else"})


def leave_an_event_out_of_a_stream(evidence: ServiceEvidence) -> None:
    del line_of(evidence, "streamed", stream="stream")["seen"][5]


def repeat_an_event_of_a_stream(evidence: ServiceEvidence) -> None:
    seen = line_of(evidence, "streamed", stream="run")["seen"]
    seen.insert(2, seen[1])


def swap_two_events_of_a_stream(evidence: ServiceEvidence) -> None:
    seen = line_of(evidence, "streamed", stream="run")["seen"]
    seen[0], seen[1] = seen[1], seen[0]


def leave_a_gate_out_of_a_stream(evidence: ServiceEvidence) -> None:
    line_of(evidence, "streamed", stream="gates/stream")["seen"].pop(0)


def leave_a_run_out_of_a_stream(evidence: ServiceEvidence) -> None:
    line = line_of(evidence, "streamed", stream="stream")
    line["seen"] = [place for place in line["seen"] if place[0] != line["seen"][0][0]]


def lose_an_entry_of_the_audit(evidence: ServiceEvidence) -> None:
    evidence.audited.discard(line_of(evidence, "started")["request"])


def answer_with_500(evidence: ServiceEvidence) -> None:
    evidence.client.append({"op": "broken", "path": "/", "status": 500, "said": None})


def refuse_a_start(evidence: ServiceEvidence) -> None:
    line_of(evidence, "started")["status"] = 409


def leave_a_timer(evidence: ServiceEvidence) -> None:
    evidence.left["the timers"] = 1


FORGERIES = [
    lose_a_run,
    start_twice,
    deliver_twice,
    start_for_nobody,
    change_an_output,
    leave_a_run_open,
    tell_another_end,
    lose_an_answer,
    apply_a_callback_twice,
    say_applied_twice,
    lose_a_callback,
    accept_two_results,
    leave_an_event_out_of_a_stream,
    repeat_an_event_of_a_stream,
    swap_two_events_of_a_stream,
    leave_a_gate_out_of_a_stream,
    leave_a_run_out_of_a_stream,
    lose_an_entry_of_the_audit,
    answer_with_500,
    refuse_a_start,
    leave_a_timer,
]


@pytest.mark.parametrize("forge", [*FORGERIES, *OTHERS], ids=lambda forge: forge.__name__)
def test_the_judge_of_the_service_finds(tortured: Honest, forge: Forgery) -> None:
    forged = deepcopy(tortured[2])
    forge(forged)
    assert judge(forged).findings


@pytest.mark.parametrize(
    ("rule", "forge"),
    [(rule, forge) for rule, forgeries in BY_RULE.items() for forge in forgeries],
    ids=lambda one: one.__name__,
)
def test_the_rule_about_changes_finds(tortured: Honest, rule: Rule, forge: Forgery) -> None:
    forged = deepcopy(tortured[2])
    assert not list(rule(forged))
    forge(forged)
    assert list(rule(forged))


def test_every_rule_about_changes_has_a_forgery() -> None:
    assert BY_RULE.keys() == set(RULES)
