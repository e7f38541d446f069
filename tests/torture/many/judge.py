"""The judge of many machines: what every judge finds, and who may execute what again.

Owns these rules, beside those of `tests.torture.judge`:
 4. Per dispatch key at least one execution for every result in a history. A further one needs a reason: something was
    done to whoever executed it before, or to whoever did again (a zombie begins what it was handed before it stood
    still), or to the database. One that begins after the result was recorded needs a reason of its own.
 7. The result in a history is that of an execution of exactly that attempt, and of whoever had claimed it last: no
    result of a superseded claim or attempt was accepted, nor of an execution from before it was handed out again,
    unless nobody had claimed the work since: then the lost claim has begun again (5.4).
 8. Time is the database's, whatever a process believes: a result is recorded after its execution began and not before
    it was handed out, and who was to wait has waited.
Whoever is struck is unwell from the moment it happens until `AFTER_MS` after it is over: it has to notice that its
leases are gone, and others to take what was its own.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

from tests.torture.journal import Line
from tests.torture.judge import judge_runs, results
from tests.torture.many.evidence import ManyEvidence
from tests.torture.many.roles import LEASE_MS
from tests.torture.verdict import Verdict
from treadle.model import events as e
from treadle.model.ids import attempt_name

AFTER_MS = 2 * LEASE_MS + 5_000
TIME_MS = 1_500
"""How far a node's idea of the database's time may be off: a beat, a slow answer, a busy machine."""
RESTED_MS = 3_000
"""What `workflows.rest` waits."""


def judge(evidence: ManyEvidence) -> Verdict:
    """Everything that is wrong."""
    verdict = Verdict(findings=[], kinds={})
    judge_runs(evidence, verdict)
    executed: dict[str, list[Line]] = defaultdict(list)
    for line in sorted(evidence.work, key=lambda line: line["mono"]):
        executed[line["key"]].append(line)
    verdict.executions = len(evidence.work)
    trouble = Trouble(evidence.faults)
    for key, lines in executed.items():
        verdict.repeated += len(lines) - 1
        for before, after in itertools.pairwise(lines):
            if not any(trouble.of(one, before["mono"], after["mono"]) for one in (before, after)):
                verdict.find(f"{key} was executed again although nothing was done to either: {before}, {after}")
    for run, history in evidence.histories.items():
        for problem in (
            *_late(run, history, executed, trouble, evidence.ahead),
            *_stale(run, history, executed, evidence.ahead),
            *_timing(run, history, executed, evidence),
        ):
            verdict.find(f"{run}: {problem}")
    return verdict


class Trouble:
    """Who was unwell, and when."""

    def __init__(self, faults: list[Line]) -> None:
        self._spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for fault in faults:
            self._spans[fault["on"]].append((fault["mono"], fault["mono"] + fault["ms"] + AFTER_MS))

    def of(self, line: Line, begin: int, end: int) -> bool:
        """Whether whoever executed this, or the database, was unwell at any moment from `begin` to `end`."""
        who = line["engine"].partition(".")[0]
        return any(since <= end and begin <= until for name in (who, "server") for since, until in self._spans[name])


def _late(
    run: str, history: list[e.Event], executed: dict[str, list[Line]], trouble: Trouble, ahead: int
) -> Iterator[str]:
    for key, recorded in results(run, history):
        lines = executed.get(key, [])
        if not lines:
            yield f"{key} has a result and was never executed"
        for line in lines:
            begun = line["mono"] + ahead
            if begun > recorded + TIME_MS and not trouble.of(line, lines[0]["mono"], line["mono"]):
                yield f"{key} was executed at {begun}, after its result was recorded at {recorded}: {line}"


def _stale(run: str, history: list[e.Event], executed: dict[str, list[Line]], ahead: int) -> Iterator[str]:
    """Results of executions that had no right to give one any more."""
    offers: dict[int, e.TokenDispatched] = {}
    holders: dict[int, str | None] = {}
    lost: dict[int, tuple[str, e.TokenDispatched]] = {}
    """The newest claim that was given up, and the offer it was made on."""
    for event in history:
        if isinstance(event, e.TokenDispatched):
            holder = holders.get(event.token)
            if holder is not None and event.recovery:
                lost[event.token] = (holder, offers[event.token])
            offers[event.token] = event
            holders[event.token] = None
        elif isinstance(event, e.TokenStarted):
            holders[event.token] = event.worker
            claim, offer = lost.get(event.token, (None, None))
            if offer is not None and event.worker == claim:
                offers[event.token] = offer
        elif isinstance(event, e.TokenCompleted | e.TokenWaiting) and event.token in offers:
            by = event.output.get("by") if isinstance(event.output, dict) else None
            if by is None:
                continue
            offer, holder = offers[event.token], holders[event.token]
            key = attempt_name(e.RunId(run), event.token, offer.attempt)  # type: ignore[attr-defined]
            line = next((line for line in executed.get(key, []) if line["by"] == by), None)
            if line is None:
                yield f"{key}: the result of {by} was accepted, which did not execute this attempt"
            elif holder is not None and not holder.startswith(line["engine"]):
                yield f"{key}: the result of {by} was accepted, claimed by {holder}"
            elif line["mono"] + ahead < offer.at - TIME_MS:
                yield f"{key}: the result of {by} was accepted, begun before the work was handed out again: {offer}"


def _timing(run: str, history: list[e.Event], executed: dict[str, list[Line]], evidence: ManyEvidence) -> Iterator[str]:
    dispatched = {
        attempt_name(e.RunId(run), event.token, event.attempt): event.at  # type: ignore[attr-defined]
        for event in reversed(history)
        if isinstance(event, e.TokenDispatched)
    }
    for key, at in dispatched.items():
        first = executed.get(key, [])
        if first and first[0]["mono"] + evidence.ahead < at - TIME_MS:
            yield f"{key} was handed out at {at}, and executed at {first[0]['mono'] + evidence.ahead}"
    for key, recorded in results(run, history):
        begun = [line["mono"] + evidence.ahead for line in executed.get(key, [])]
        if begun and recorded < begun[0] - TIME_MS:
            yield f"{key}: a result is recorded at {recorded}, its execution began at {begun[0]}"
    if evidence.runs[run].workflow == "rest":
        ends = [lines[0] for key, lines in executed.items() if lines[0]["run"] == run]
        before = [line["mono"] for line in ends if line["node"] == "before"]
        after = [line["mono"] for line in ends if line["node"] == "after"]
        if before and after and after[0] - before[0] < RESTED_MS - TIME_MS:
            yield f"should rest for {RESTED_MS} ms and rested {after[0] - before[0]}"
