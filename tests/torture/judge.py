"""The judge: compares what clients were told and what task functions did with what the file says in the end.

Owns the meaning of "0 lost, 0 doubled":
 1. Every acknowledged start is one run with that key, every time of a schedule has one, and no run exists that nobody
    asked for.
 2. Every run has ended as its workflow must, with the output computed independently (`expectations`).
 3. An answer a client was given is still true: how a run had ended, that a gate was answered, that a signal counted
    once, that a cancelled run is cancelled, its child too.
 4. Per dispatch key at least one execution for every result in a history, at most one per engine, a second one only
    after the first engine was killed, and none after the result was recorded.
 5. Every join has fired at most once; what was booked before a failure is undone once each, newest first.
 6. The file is whole, `fsck` finds nothing, and nothing is left over: outbox, inbox, timers, gates.
Must not repair or wait: it looks at evidence that no longer changes.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.torture import schedules
from tests.torture.expectations import problem_with
from tests.torture.journal import Line
from tests.torture.verdict import Evidence, Verdict
from treadle.model import events as e
from treadle.model.ids import attempt_name

SILENT = {"begin"}
"""Nodes whose action writes nothing down: a `set`."""
LATE_MS = 2
"""Journal and engine read the same clock, a moment apart and rounded down."""


def judge(evidence: Evidence) -> Verdict:
    """Everything that is wrong."""
    verdict = Verdict(findings=[], kinds={})
    judge_runs(evidence, verdict)
    _executions(evidence, verdict)
    return verdict


def judge_runs(evidence: Evidence, verdict: Verdict) -> None:
    """All but who may execute what again: that depends on what was done to whom."""
    _starts(evidence, verdict)
    _endings(evidence, verdict)
    _answers(evidence, verdict)
    for run, history in evidence.histories.items():
        for problem in (*_joins(history), *_compensation(history), *_children(run, history, evidence)):
            verdict.find(f"{run}: {problem}")
    verdict.findings += [f"{count} rows are left in {what}" for what, count in evidence.left.items() if count]
    verdict.findings += evidence.damage
    verdict.runs = len(evidence.runs)
    verdict.acknowledged = sum(line["op"] != "intend" for line in evidence.client)


def _of(lines: list[Line], *ops: str) -> Iterator[Line]:
    return (line for line in lines if line["op"] in ops)


def _starts(evidence: Evidence, verdict: Verdict) -> None:
    intended = {line["key"]: line for line in _of(evidence.client, "intend")}
    scheduled = schedules.judge(evidence, verdict)
    by_key: dict[str | None, list[str]] = defaultdict(list)
    for row in evidence.runs.values():
        by_key[row.idempotency_key].append(row.run)
        if row.parent is None and row.idempotency_key not in intended and row.idempotency_key not in scheduled:
            verdict.find(f"{row.run} was started by nobody")
        kept = row.status.value == "completed" or is_poisoned(row.run, evidence)
        if row.idempotency_key in scheduled and not kept:
            verdict.find(f"{row.run} was started by a schedule and is {row.status.value}")
    for line in _of(evidence.client, "started"):
        found = by_key.get(line["key"], [])
        if found != [line["run"]]:
            verdict.find(f"the start {line['key']} was acknowledged as {line['run']}, the file has {found}")
    for key, runs in by_key.items():
        if key is not None and len(runs) > 1:
            verdict.find(f"the key {key} has started {len(runs)} runs")


def _endings(evidence: Evidence, verdict: Verdict) -> None:
    intended = {line["key"]: line for line in _of(evidence.client, "intend")}
    for row in evidence.runs.values():
        asked = intended.get(row.idempotency_key or "")
        if asked is None:
            continue
        verdict.kinds[row.workflow] = verdict.kinds.get(row.workflow, 0) + 1
        history = evidence.histories[row.run]
        if is_poisoned(row.run, evidence):
            verdict.poisoned += 1
            continue
        problem = problem_with(asked["kind"], asked["asked"], row.status.value, _output(history))
        if problem is not None:
            verdict.find(f"{asked['kind']} {row.run} {problem}")


def _output(history: list[e.Event]) -> object:
    return next((event.output for event in reversed(history) if isinstance(event, e.RunCompleted)), None)


def is_poisoned(run: str, evidence: Evidence) -> bool:
    """A worker was given up after it had been lost as often as the rule says; here or in a child."""
    history = evidence.histories.get(run, [])
    children = [event.run for event in history if isinstance(event, e.ChildStarted)]
    errors = [event.error for event in history if isinstance(event, e.TokenFailed | e.CompensationFailed)]
    lost = any(error.kind == "WORKER_LOST" for error in errors)
    dispatched = [event.recovery for event in history if isinstance(event, e.TokenDispatched)]
    return (lost and max(dispatched, default=0) >= 4) or any(is_poisoned(child, evidence) for child in children)


def _answers(evidence: Evidence, verdict: Verdict) -> None:
    signals: Counter[str] = Counter(line["run"] for line in _of(evidence.client, "signalled"))
    for run, count in signals.items():
        received = sum(isinstance(event, e.SignalReceived) for event in evidence.histories.get(run, []))
        if received != count:
            verdict.find(f"{run}: {count} signals were acknowledged, {received} received")
    for line in _of(evidence.client, "ended", "answered", "cancelled"):
        row, history = evidence.runs.get(line["run"]), evidence.histories.get(line["run"], [])
        if row is None:
            verdict.find(f"{line['run']} was {line['op']} and does not exist")
        elif "refused" in line:
            if not line["unsure"] and not is_poisoned(line["run"], evidence):
                verdict.find(f"{line['run']} could not be {line['op']}: {line['refused']}")
        elif line["op"] == "ended" and (line["status"], line["output"]) != (row.status.value, _output(history)):
            verdict.find(f"{line['run']} had ended {line['status']} {line['output']!r} and is now {row.status.value}")
        elif line["op"] == "answered" and not any(isinstance(event, e.GateCompleted) for event in history):
            verdict.find(f"{line['run']}: an acknowledged answer is not in the history")
        elif line["op"] == "cancelled" and row.status.value != "cancelled":
            verdict.find(f"{line['run']} was cancelled and is {row.status.value}")


def _executions(evidence: Evidence, verdict: Verdict) -> None:
    executed: dict[str, list[Line]] = defaultdict(list)
    for line in evidence.work:
        executed[line["key"]].append(line)
    verdict.executions = len(evidence.work)
    for key, lines in executed.items():
        verdict.repeated += len(lines) - 1
        for before, after in itertools.pairwise(lines):
            if before["engine"] == after["engine"] or not _died_between(before, after, evidence):
                verdict.find(f"{key} was executed again at {after['at']} although nobody had been killed: {before}")
    for run, history in evidence.histories.items():
        for key, recorded in results(run, history):
            lines = executed.get(key, [])
            if not lines:
                verdict.find(f"{key} has a result and was never executed")
            elif lines[-1]["at"] > recorded + LATE_MS:
                verdict.find(f"{key} was executed at {lines[-1]['at']}, after its result was recorded at {recorded}")


def _died_between(before: Line, after: Line, evidence: Evidence) -> bool:
    deaths = evidence.deaths.get(int(before["engine"].partition("-")[0]), [])
    return any(before["at"] - LATE_MS <= death <= after["at"] + LATE_MS for death in deaths)


def results(run: str, history: list[e.Event]) -> Iterator[tuple[str, int]]:
    """(name of the attempt, when) of every attempt with a result of its own in a history."""
    attempts: dict[int, int] = {}
    silent: set[int] = set()
    for event in history:
        if isinstance(event, e.TokenCreated) and event.node in SILENT:
            silent.add(event.token)
        elif isinstance(event, e.TokenDispatched) and event.token not in silent:
            attempts[event.token] = event.attempt
        elif isinstance(event, e.TokenCompleted | e.TokenFailed | e.TokenRetryScheduled | e.TokenWaiting):
            poisoned = isinstance(event, e.TokenFailed) and event.error.kind == "WORKER_LOST"
            attempt = attempts.pop(event.token, None)
            if attempt is not None and not poisoned:
                yield attempt_name(e.RunId(run), event.token, attempt), event.at  # type: ignore[attr-defined]


def _joins(history: list[e.Event]) -> list[str]:
    fired = Counter((event.target, event.group) for event in history if isinstance(event, e.JoinFired))
    return [f"the join {target} of group {group} fired {n} times" for (target, group), n in fired.items() if n > 1]


def _compensation(history: list[e.Event]) -> list[str]:
    recorded = [event.record for event in history if isinstance(event, e.CompensationRecorded)]
    undone = [event.record for event in history if isinstance(event, e.CompensationCompleted)]
    if isinstance(history[-1], e.RunCompensated) and undone != recorded[::-1]:
        return [f"booked {recorded}, undone {undone}"]
    return []


def _children(run: str, history: list[e.Event], evidence: Evidence) -> list[str]:
    """Every child that was announced exists, once, and ends with its parent."""
    problems = []
    for event in history:
        if isinstance(event, e.ChildStarted):
            child = evidence.runs.get(event.run)
            cancelled = evidence.runs[run].status.value == "cancelled"
            if child is None and not cancelled:
                problems.append(f"its child {event.run} does not exist")
            elif child is not None and cancelled and child.status.value not in ("cancelled", "completed"):
                problems.append(f"was cancelled, its child {event.run} is {child.status.value}")
    return problems
