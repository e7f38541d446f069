"""Forgeries of what operators were told and of the runs they changed; the judge has to find each."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from tests.torture.journal import Line
from tests.torture.service import changes_judge as rules
from tests.torture.service.changes import WAYS
from tests.torture.service.evidence import ServiceEvidence, fork_of, given_to
from treadle.model import events as e
from treadle.model.ids import TokenId
from treadle.model.states import RunStatus

Forgery = Callable[[ServiceEvidence], None]


def line_of(evidence: ServiceEvidence, op: str, **fields: object) -> Line:
    return next(
        line
        for line in evidence.client
        if line["op"] == op and all(line.get(name) == value for name, value in fields.items())
    )


def changed_run(evidence: ServiceEvidence, command: str) -> str:
    """A run for which this command was acknowledged."""
    run: str = next(
        line["run"]
        for line in evidence.client
        if line["op"] == "changed" and line["command"] == command and line["status"] < 300
    )
    return run


def happen_twice(command: str) -> Forgery:
    def forge(evidence: ServiceEvidence) -> None:
        history = evidence.histories[changed_run(evidence, command)]
        history += [event for event in history if rules.MARKS[command](event)]

    forge.__name__ = f"{command}_twice"
    return forge


def never_happen(command: str) -> Forgery:
    def forge(evidence: ServiceEvidence) -> None:
        run = changed_run(evidence, command)
        evidence.histories[run] = [event for event in evidence.histories[run] if not rules.MARKS[command](event)]

    forge.__name__ = f"{command}_lost"
    return forge


def change_what_nobody_asked_for(evidence: ServiceEvidence) -> None:
    run = changed_run(evidence, "edit")
    evidence.client = [line for line in evidence.client if line.get("run") != run or line.get("command") != "edit"]


def answer_a_key_otherwise(evidence: ServiceEvidence) -> None:
    evidence.client.append({**line_of(evidence, "changed", command="edit"), "status": 409, "said": "INVALID_STATE"})


def refuse_an_edit(evidence: ServiceEvidence) -> None:
    for line in evidence.client:
        if line["op"] == "changed" and line["command"] == "edit":
            line |= {"status": 409, "said": "INVALID_STATE"}


def never_answer_a_change(evidence: ServiceEvidence) -> None:
    evidence.client.append({"op": "change", "run": changed_run(evidence, "edit"), "command": "edit", "key": "lost"})


def report_another_migration(evidence: ServiceEvidence) -> None:
    run = changed_run(evidence, "migrate")
    for line in evidence.client:
        if line["op"] == "changed" and line["run"] == run and line["command"] == "migrate":
            line["outcome"] = "unchanged"


def fork_with(evidence: ServiceEvidence, way: str) -> tuple[str, str]:
    """An origin and its fork."""
    keys = {line["key"] for line in evidence.client if line["op"] == "intend" and line["way"] == way}
    return next(
        (forked.from_, run)
        for run, history in evidence.histories.items()
        if (forked := fork_of(history)) is not None and given_to(history)["key"] in keys
    )


def fork_twice(evidence: ServiceEvidence) -> None:
    _, fork = fork_with(evidence, "forked")
    evidence.runs["again"] = replace(evidence.runs[fork], run="again")
    evidence.histories["again"] = evidence.histories[fork]


def lose_a_fork(evidence: ServiceEvidence) -> None:
    _, fork = fork_with(evidence, "forked")
    del evidence.runs[fork], evidence.histories[fork]


def name_another_fork(evidence: ServiceEvidence) -> None:
    for line in evidence.client:
        if line["op"] == "changed" and line["command"] == "fork":
            line["fork"] = "another"


def add_to_an_origin(evidence: ServiceEvidence) -> None:
    origin, _ = fork_with(evidence, "forked")
    evidence.histories[origin].append(e.Custom(seq=len(evidence.histories[origin]) + 1, at=0, name="more"))


def rewrite_an_origin(evidence: ServiceEvidence) -> None:
    """The fork, too: only what was read before tells."""
    origin, _ = fork_with(evidence, "forked")
    for run in (run for run, history in evidence.histories.items() if _is_of(history, origin) or run == origin):
        evidence.histories[run][1] = replace(evidence.histories[run][1], at=0)


def _is_of(history: list[e.Event], origin: str) -> bool:
    forked = fork_of(history)
    return forked is not None and forked.from_ == origin


def inherit_something_else(evidence: ServiceEvidence) -> None:
    _, fork = fork_with(evidence, "forked")
    evidence.histories[fork][1] = replace(evidence.histories[fork][1], at=0)


def inherited_visit(evidence: ServiceEvidence) -> tuple[str, TokenId]:
    """A fork and a visit that had completed before."""
    _, fork = fork_with(evidence, "forked")
    return fork, next(event.token for event in evidence.histories[fork] if isinstance(event, e.TokenCompleted))


def dispatch_what_is_inherited(evidence: ServiceEvidence) -> None:
    fork, token = inherited_visit(evidence)
    history = evidence.histories[fork]
    dispatched = next(event for event in history if isinstance(event, e.TokenDispatched))
    history.append(replace(dispatched, token=token, seq=len(history) + 1))


def work_at_what_is_inherited(evidence: ServiceEvidence) -> None:
    fork, token = inherited_visit(evidence)
    evidence.client.append({"op": "worked", "run": fork, "visit": token, "attempt": 1, "by": "somebody"})


def end_otherwise(way: str) -> Forgery:
    def forge(evidence: ServiceEvidence) -> None:
        keys = {line["key"] for line in evidence.client if line["op"] == "intend" and line["way"] == way}
        for history in evidence.histories.values():
            if given_to(history)["key"] in keys and isinstance(history[-1], e.RunCompleted):
                history[-1] = replace(history[-1], output={"n": -1})

    forge.__name__ = f"{way}_with_another_output"
    return forge


def let_an_origin_go_on(evidence: ServiceEvidence) -> None:
    origin, _ = fork_with(evidence, "forked")
    evidence.runs[origin] = replace(evidence.runs[origin], status=RunStatus.RUNNING)


def accept_two_failures(evidence: ServiceEvidence) -> None:
    evidence.client.append({**line_of(evidence, "failed", status=200), "by": "somebody else"})


def leave_the_second_life_of_a_run_out_of_a_stream(evidence: ServiceEvidence) -> None:
    run = changed_run(evidence, "edit")
    failed = next(event.seq for event in evidence.histories[run] if isinstance(event, e.RunFailed))
    line = line_of(evidence, "streamed", stream="stream")
    line["seen"] = [place for place in line["seen"] if place[0] != run or place[1] <= failed]


def lose_a_change_in_the_audit(evidence: ServiceEvidence) -> None:
    evidence.audited.discard(line_of(evidence, "changed")["request"])


OTHERS = [
    accept_two_failures,
    leave_the_second_life_of_a_run_out_of_a_stream,
    lose_a_change_in_the_audit,
]
"""Forgeries that the judge of the service finds by its other rules."""

BY_RULE: dict[rules.Rule, list[Forgery]] = {
    rules.answers: [answer_a_key_otherwise, refuse_an_edit, never_answer_a_change, report_another_migration],
    rules.applied_once: [
        *(happen_twice(command) for command in rules.MARKS),
        *(never_happen(command) for command in rules.MARKS),
        change_what_nobody_asked_for,
    ],
    rules.forks: [fork_twice, lose_a_fork, name_another_fork],
    rules.origins: [add_to_an_origin, rewrite_an_origin],
    rules.inheritance: [inherit_something_else, dispatch_what_is_inherited, work_at_what_is_inherited],
    rules.endings: [*(end_otherwise(way) for way in WAYS), let_an_origin_go_on],
}
"""The forgeries that each rule about changes has to find by itself."""
