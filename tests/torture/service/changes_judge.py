"""The judge of changes: compares what operators over HTTP were told with the histories of the runs they changed.

Owns these rules:
 1. Every answer under one key says the same, and only a skip that came too late was refused.
 2. What was acknowledged is in the run's history exactly once for each key: an edit is applied once, a run is tried
    again once, a budget is raised once. Nothing else of the kind is there.
 3. Every key has one fork, the one its answers name, and nobody else has made any.
 4. A fork leaves its origin alone: what the client has read before and after is still what the origin's history begins
    with, and an origin that had failed has nothing more but notes of results that came too late.
 5. A fork has its origin's events up to its point. Visits that had completed by then are not dispatched in the fork,
    and nobody was given their work.
 6. Every run came to the end and to the number that the change must lead to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import msgspec

from tests.torture.judge import is_poisoned
from tests.torture.service.changes import CHANGED, FORKED, wanted_of
from tests.torture.service.evidence import ServiceEvidence, fork_of, given_to, of, output_of
from treadle.model import events as e
from treadle.model.event_rows import event_row

MARKS: dict[str, Callable[[e.Event], bool]] = {
    "edit": lambda event: isinstance(event, e.ContextUpdated) and event.by is not None,
    "skip": lambda event: isinstance(event, e.TokenSkipped),
    "jump": lambda event: isinstance(event, e.TokenJumped),
    "set_input": lambda event: isinstance(event, e.TokenInputSet),
    "retry": lambda event: isinstance(event, e.RunResumed) and event.reopened,
    "migrate": lambda event: isinstance(event, e.RunMigrated),
    "budget": lambda event: isinstance(event, e.BudgetRaised),
}
"""The event that each command leaves."""


def answers(evidence: ServiceEvidence) -> Iterator[str]:
    asked = {line["key"]: line for line in of(evidence, "change")}
    said: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for line in of(evidence, "changed"):
        said[line["key"]].add((line["status"], line["said"], line["fork"], line["outcome"]))
    for key, line in asked.items():
        if len(said[key]) != 1:
            yield f"{key} of {line['run']} has the answers {sorted(said[key], key=str)}"
        for status, code, _, outcome in said[key]:
            late = line["command"] == "skip" and _way(evidence, line["run"]) == "overtaken"
            is_fine = status in (200, 201) or (late and (status, code) == (409, "INVALID_STATE"))
            if not (is_fine or is_poisoned(line["run"], evidence)) or outcome not in (None, "migrated"):
                yield f"{key} of {line['run']} was answered {status} {code} {outcome}"


def _acknowledged(evidence: ServiceEvidence) -> dict[tuple[str, str], set[str]]:
    """The keys under which a command to a run was acknowledged."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in of(evidence, "changed"):
        if line["status"] < 300:
            found[line["run"], line["command"]].add(line["key"])
    return found


def applied_once(evidence: ServiceEvidence) -> Iterator[str]:
    acknowledged = _acknowledged(evidence)
    for run in {*evidence.histories, *(run for run, _ in acknowledged)}:
        history = evidence.histories.get(run, [])
        for command, is_mark in MARKS.items():
            wanted, found = len(acknowledged[run, command]), sum(is_mark(event) for event in history)
            if command == "edit":  # other data of a fork is written as an edit is
                wanted += any(isinstance(event, e.RunForked) and _has_state(event.changes) for event in history)
            if command == "retry":  # a failed run is also opened again by what completes or moves its failed visit
                is_live = _way(evidence, run) == "overtaken"
                wanted += len(acknowledged[run, "jump"]) + (0 if is_live else len(acknowledged[run, "skip"]))
            if wanted != found:
                yield f"{run}: {command} should have happened {wanted} times, the history has {found}"


def _has_state(changes: object) -> bool:
    """Whether a fork was asked for with other data."""
    return isinstance(changes, dict) and bool(changes.get("state"))


def forks(evidence: ServiceEvidence) -> Iterator[str]:
    made: dict[str, list[str]] = defaultdict(list)
    for run, history in evidence.histories.items():
        forked = fork_of(history)
        if forked is not None:
            made[forked.from_].append(run)
    told: dict[str, dict[str, str]] = defaultdict(dict)
    for line in of(evidence, "changed"):
        if line["command"] == "fork" and line["status"] < 300:
            told[line["run"]][line["key"]] = line["fork"]
    for origin in {*made, *told}:
        if sorted(made[origin]) != sorted(told[origin].values()):
            yield f"{origin}: the forks {told[origin]} were acknowledged, the store has {made[origin]}"


def origins(evidence: ServiceEvidence) -> Iterator[str]:
    late = {(line["run"], line["visit"]) for line in of(evidence, "completed", "failed") if line["status"] == 410}
    for line in of(evidence, "past"):
        history, rows = evidence.histories.get(line["run"], []), line["rows"]
        more = [event for event in history[len(rows) :] if not _is_late(event, line["run"], late)]
        if _rows(history[: len(rows)]) != rows or (more and _way(evidence, line["run"]) in FORKED):
            yield f"{line['run']}: its history is another one than the {len(rows)} events that were read around a fork"


def _is_late(event: e.Event, run: str, late: set[tuple[str, int]]) -> bool:
    """Whether it notes a result that a worker was told to be late."""
    return isinstance(event, e.ResultIgnored) and (run, event.token) in late


def _rows(history: list[e.Event]) -> list[object]:
    """As a client over HTTP reads them."""
    rows: list[object] = msgspec.json.decode(msgspec.json.encode([event_row(event) for event in history]))
    return rows


def inheritance(evidence: ServiceEvidence) -> Iterator[str]:
    worked = {(line["run"], line["visit"]) for line in of(evidence, "worked")}
    for run, history in evidence.histories.items():
        forked = fork_of(history)
        if forked is None:
            continue
        past, own = history[: forked.seq - 1], history[forked.seq :]
        origin = evidence.histories.get(forked.from_, [])
        if _rows(past)[1:] != _rows(origin[: forked.point])[1:]:
            yield f"{run}: its past is not that of {forked.from_} up to {forked.point}"
        over = {event.token for event in past if isinstance(event, e.TokenCompleted)}
        for event in own:
            if isinstance(event, e.TokenDispatched) and event.token in over:
                yield f"{run}: the inherited visit {event.token} was dispatched again"
        for token in over:
            if (run, token) in worked:
                yield f"{run}: somebody was given the work of the inherited visit {token}"


def endings(evidence: ServiceEvidence) -> Iterator[str]:
    intended = {line["key"]: line for line in of(evidence, "intend")}
    skipped = {line["run"] for line in of(evidence, "changed") if line["command"] == "skip" and line["status"] < 300}
    for run, row in evidence.runs.items():
        history = evidence.histories[run]
        asked = intended.get(given_to(history)["key"])
        if asked is None or asked["kind"] != CHANGED or is_poisoned(run, evidence):
            continue
        if asked["way"] in FORKED and fork_of(history) is None:
            wanted: tuple[str, object] = ("failed", None)
        else:
            wanted = ("completed", {"n": wanted_of(asked["way"], asked["n"], run in skipped)})
        found = (row.status.value, output_of(history))
        if found != wanted:
            yield f"{asked['way']} {run} is {found}, and should be {wanted}"


def _way(evidence: ServiceEvidence, run: str) -> object:
    """How a run was to be changed."""
    history = evidence.histories.get(run)
    key = given_to(history)["key"] if history else None
    return next((line["way"] for line in of(evidence, "intend") if line["key"] == key), None)


def ways_of(evidence: ServiceEvidence) -> Counter[str]:
    """How many runs were changed in which way."""
    return Counter(line["way"] for line in of(evidence, "intend") if line.get("way"))


Rule = Callable[[ServiceEvidence], Iterator[str]]
RULES: tuple[Rule, ...] = (answers, applied_once, forks, origins, inheritance, endings)
