"""The judge of the service: compares what clients over HTTP were told with what the store says in the end.

Owns the meaning of "0 lost, 0 doubled, 0 gaps":
 1. Every acknowledged start and delivery is one run, the same for every answer under its key; no run exists that nobody
    asked for, and no key has two.
 2. Every run has ended as its workflow must, with the output computed independently, and as its client was told.
 3. A gate has one answer, the one that was acknowledged. A callback was applied once, and `applied` was said once at
    most. Of the results of a claimed task one was accepted, and it is the one in the history.
 4. A stream brought every event of every run it is about once, in order: no gap, no repeat.
 5. Every acknowledged write is in the audit, and the audit is whole.
 6. What operators have changed is judged by `changes_judge`.
 7. No answer was a 500 or a refusal that no fault explains; the store is whole, and nothing is left over.
Must not repair or wait: it looks at evidence that no longer changes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.torture.judge import is_poisoned
from tests.torture.service import changes_judge
from tests.torture.service.changes import CHANGED, answer_of
from tests.torture.service.evidence import ServiceEvidence, fork_of, given_to, of, output_of
from tests.torture.verdict import Evidence, Verdict
from treadle.model import events as e

EXPECTED = {
    "started": {200, 201},
    "delivered": {200, 202},
    "answered": {200},
    "called back": {200, 410},
    "completed": {200, 410},
    "failed": {200, 410},
}
"""Statuses of each request that are no finding: an attempt or claim may be over, and another one is asked."""
AUDITED = ("started", "answered", "completed", "failed", "changed")


def judge(evidence: ServiceEvidence) -> Verdict:
    """Everything that is wrong."""
    verdict = Verdict(findings=[], kinds={})
    for rule in (_refusals, _starts, _endings, _gates, _callbacks, _tasks, _streams, _audit, *changes_judge.RULES):
        verdict.findings += rule(evidence)
    verdict.findings += [f"{count} rows are left in {what}" for what, count in evidence.left.items() if count]
    verdict.findings += evidence.damage
    verdict.runs = len(evidence.runs)
    verdict.acknowledged = sum("status" in line for line in evidence.client)
    worked = Counter((line["run"], line["visit"], line["attempt"]) for line in of(evidence, "worked"))
    verdict.executions, verdict.repeated = worked.total(), worked.total() - len(worked)
    verdict.poisoned = sum(is_poisoned(run, evidence) for run in evidence.runs)
    verdict.kinds = dict(Counter(row.workflow for row in evidence.runs.values()))
    return verdict


def _refusals(evidence: ServiceEvidence) -> Iterator[str]:
    for line in of(evidence, "broken"):
        yield f"{line['path']} was answered {line['status']}: {line['said']}"
    for line in evidence.client:
        expected = EXPECTED.get(line["op"])
        if expected is not None and line["status"] not in expected:
            yield f"{line['op']} {line.get('run') or line.get('key')} was answered {line['status']} {line.get('said')}"


def _starts(evidence: ServiceEvidence) -> Iterator[str]:
    intended = {line["key"] for line in of(evidence, "intend")}
    by_key: dict[object, list[str]] = defaultdict(list)
    for run, history in evidence.histories.items():
        if fork_of(history) is None:
            by_key[given_to(history)["key"]].append(run)
    for key, runs in by_key.items():
        if key not in intended:
            yield f"{runs} were started by nobody"
        if len(runs) > 1:
            yield f"the key {key} has started {len(runs)} runs"
    for line in of(evidence, "started", "delivered"):
        if line["status"] < 300 and by_key.get(line["key"], []) != [line["run"]]:
            yield f"{line['key']} was acknowledged as {line['run']}, the store has {by_key.get(line['key'])}"


def _endings(evidence: ServiceEvidence) -> Iterator[str]:
    intended = {line["key"]: line for line in of(evidence, "intend")}
    for run, row in evidence.runs.items():
        asked = intended.get(given_to(evidence.histories[run])["key"])
        if asked is None or asked["kind"] == CHANGED or is_poisoned(run, evidence):
            continue
        wanted = asked["n"] if asked["kind"] == "hooked" else answer_of(asked["n"])
        output = output_of(evidence.histories[run])
        if row.status.value != "completed" or not isinstance(output, dict) or output.get("n") != wanted:
            yield f"{asked['kind']} {run} is {row.status.value} with {output!r}, and should give {wanted}"
    for line in of(evidence, "ended"):
        if (line["status"], line["output"]) != _end(evidence, line["run"]):
            yield f"{line['run']} had ended {line['status']} {line['output']!r}, now {_end(evidence, line['run'])}"


def _end(evidence: Evidence, run: str) -> tuple[str, object]:
    row = evidence.runs.get(run)
    return (row.status.value, output_of(evidence.histories[run])) if row is not None else ("gone", None)


def _gates(evidence: ServiceEvidence) -> Iterator[str]:
    for run, history in evidence.histories.items():
        answers = sum(isinstance(event, e.GateCompleted) for event in history)
        opened = sum(isinstance(event, e.GateOpened) for event in history)
        if answers > opened:
            yield f"{run}: a gate has {answers} answers"
    for line in of(evidence, "answered"):
        history = evidence.histories.get(line["run"], [])
        if line["status"] == 200 and not any(isinstance(event, e.GateCompleted) for event in history):
            yield f"{line['run']}: an acknowledged answer is not in the history"


def _callbacks(evidence: ServiceEvidence) -> Iterator[str]:
    said = Counter((line["run"], line["visit"]) for line in of(evidence, "called back") if line["applied"])
    received = Counter(
        (run, event.token)
        for run, history in evidence.histories.items()
        for event in history
        if isinstance(event, e.CallbackReceived)
    )
    for place, count in said.items():
        if count > 1 or received[place] != 1:
            yield f"{place}: {count} callbacks were said to be applied, {received[place]} are in the history"
    for place, count in received.items():
        if count > 1:
            yield f"{place}: {count} callbacks were applied"


def _tasks(evidence: ServiceEvidence) -> Iterator[str]:
    """Of a failure the error says who has reported it, of a result the output."""
    accepted: dict[tuple[str, int], set[str]] = defaultdict(set)
    for line in of(evidence, "completed", "failed"):
        if line["status"] == 200:
            accepted[line["run"], line["visit"]].add(line["by"])
    kept: dict[tuple[str, int], list[str]] = defaultdict(list)
    for run, history in evidence.histories.items():
        for event in history[_inherited(history) :]:
            if isinstance(event, e.TokenCompleted | e.TokenWaiting | e.TokenFailed):
                said = event.error.details if isinstance(event, e.TokenFailed) else event.output
                by = said.get("by") if isinstance(said, dict) else None
                waits_again = isinstance(event, e.TokenWaiting) and by in kept[run, event.token]
                if by is not None and not waits_again:
                    kept[run, event.token].append(by)
    for place, results in accepted.items():
        if sorted(results) != sorted(kept[place]):
            yield f"{place}: results {sorted(results)} were accepted, the history has {kept[place]}"


def _inherited(history: list[e.Event]) -> int:
    forked = fork_of(history)
    return forked.seq if forked is not None else 0


def _streams(evidence: ServiceEvidence) -> Iterator[str]:
    for line in of(evidence, "streamed"):
        seen: dict[str, list[int]] = defaultdict(list)
        for run, seq in line["seen"]:
            seen[run].append(seq)
        runs = list(evidence.histories) if line["stream"] != "run" else list(seen)
        for run in {*runs, *seen}:
            history = evidence.histories.get(run, [])
            problem = _stream_problem(line["stream"], seen.get(run, []), history)
            if problem:
                yield f"the stream {line['stream']} of {run} {problem}"


def _stream_problem(stream: str, seen: list[int], history: list[e.Event]) -> str | None:
    """What is wrong with what a stream has brought of a run; late events may have come behind the end of a stream."""
    wanted = [event.seq for event in history if stream != "gates/stream" or event.type.startswith("gate.")]
    ends = [event.seq for event in history if isinstance(event, e.RunCompleted | e.RunFailed)]
    end = (ends[0] if stream == "run" else ends[-1]) if ends else 0  # a run that failed may have been tried again
    is_whole = len(seen) == len(wanted) or (stream != "gates/stream" and bool(ends) and len(seen) >= end)
    if seen == wanted[: len(seen)] and is_whole:
        return None
    doubled = [seq for seq, count in Counter(seen).items() if count > 1]
    return f"doubled {doubled[:5]}, left out {sorted(set(wanted) - set(seen))[:5]}, brought {seen[:20]}"


def _audit(evidence: ServiceEvidence) -> Iterator[str]:
    for line in of(evidence, *AUDITED):
        if line["status"] < 300 and line["request"] not in evidence.audited:
            yield f"{line['op']} {line.get('run')} was acknowledged and is not in the audit"
