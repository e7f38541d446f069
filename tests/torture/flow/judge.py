"""The judge of flow control: how many runs were live at once, who was lost, who was overtaken.

Owns these rules. The order of things is the order in which the store committed them (`events_after`): the events of all
runs of a workflow are in one shard, so its transactions come one after the other. No clock of a process has a say.
Within a transaction an end makes room for a start.
 1. After no transaction more runs of a key are live than its limit allows.
 2. Runs of a key start in the order in which they were queued, and nobody starts at once while others are queued: so
    nobody starves.
 3. Every start that was asked for is one run, acknowledged to whoever asked, and completed. Nothing is left over.
 4. The work's own journal says the same as rule 1: two runs of a key do not execute at once. What an engine has in hand
    when it is frozen, or loses its lease, nobody can call back: that is not judged by this rule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from tests.torture.flow.roles import KEYED, SINGLE, start_key
from tests.torture.journal import Line
from tests.torture.verdict import Verdict
from treadle.model import events as e
from treadle.model.states import RunStatus
from treadle.store.following import FollowedEvent
from treadle.store.port import RunRow

LIMIT = 1
LATE_MS = 2_500
"""How long a frozen engine may go on with what it had in hand: until it hears that others have it."""
ENDS = (e.RunCompleted, e.RunFailed, e.RunCancelled, e.RunTimedOut)


class FlowEvidence(Struct):
    """All the judge looks at."""

    starts: int
    """How many starts of each workflow were asked for."""
    client: list[Line]
    work: list[Line]
    faults: list[Line]
    runs: dict[str, RunRow]
    log: list[list[FollowedEvent]]
    """The events of each transaction, in order."""
    left: dict[str, int]
    damage: list[str]


def judge(evidence: FlowEvidence) -> Verdict:
    """Everything that is wrong."""
    verdict = Verdict(findings=[], kinds={})
    verdict.runs, verdict.acknowledged = len(evidence.runs), len(evidence.client)
    keys: dict[str, tuple[str, int]] = {
        followed.run: _key(followed) for followed in every(evidence) if isinstance(followed.event, e.Beginning)
    }
    _one_at_a_time(evidence, keys, verdict)
    _nobody_lost(evidence, verdict)
    _work_alone(evidence, keys, verdict)
    for where, number in evidence.left.items():
        if number:
            verdict.find(f"{number} rows are left over in {where}")
    verdict.findings += evidence.damage
    return verdict


def _key(followed: FollowedEvent) -> tuple[str, int]:
    assert isinstance(followed.event, e.Beginning)
    return followed.workflow, followed.event.input["k"]


def _one_at_a_time(evidence: FlowEvidence, keys: dict[str, tuple[str, int]], verdict: Verdict) -> None:
    live: dict[tuple[str, int], list[str]] = defaultdict(list)
    queued: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    """With the number of the transaction: somebody who starts at once may have come before others that it queues."""
    for number, transaction in enumerate(evidence.log):
        for followed in sorted(transaction, key=lambda followed: _turn_of(followed.event)):
            run, event, key = followed.run, followed.event, keys[followed.run]
            if isinstance(event, e.RunQueued):
                queued[key][run] = number
            elif isinstance(event, ENDS) and run in live[key]:
                live[key].remove(run)
            elif isinstance(event, e.RunStarted):
                first, since = next(iter(queued[key].items()), (run, number))
                if first != run and (run in queued[key] or since < number):
                    verdict.find(f"{run} of {key} started before {first}, which was queued first")
                queued[key].pop(run, None)
                if len(live[key]) >= LIMIT:
                    verdict.find(f"{run} of {key} started while {live[key]} was live")
                live[key].append(run)
    for key in keys.values():
        if live.pop(key, None) or queued.pop(key, None):
            verdict.find(f"not all runs of {key} have ended")


def _turn_of(event: e.Event) -> int:
    """Within a transaction: ends make room for starts, and whoever starts may have been queued in it."""
    return 2 if isinstance(event, e.RunStarted) else 1 if isinstance(event, ENDS) else 0


def _nobody_lost(evidence: FlowEvidence, verdict: Verdict) -> None:
    wanted = {start_key(workflow, n) for workflow in (SINGLE, KEYED) for n in range(evidence.starts)}
    told: dict[str, set[str]] = defaultdict(set)
    for line in evidence.client:
        told[line["key"]].add(line["run"])
    of_key = Counter(row.idempotency_key for row in evidence.runs.values())
    for key in wanted:
        if of_key[key] != 1:
            verdict.find(f"{of_key[key]} runs have the key {key}")
        if len(told[key]) != 1:
            verdict.find(f"the start {key} was acknowledged as {sorted(told[key])}")
    for run in {run for runs in told.values() for run in runs}:
        row = evidence.runs.get(run)
        if row is None or row.status is not RunStatus.COMPLETED:
            verdict.find(f"{run} was acknowledged and is {row.status if row is not None else 'not there'}")
    if len(evidence.runs) != len(wanted):
        verdict.find(f"{len(wanted)} starts have become {len(evidence.runs)} runs")


def _work_alone(evidence: FlowEvidence, keys: dict[str, tuple[str, int]], verdict: Verdict) -> None:
    ended = {line["by"]: line["mono"] for line in evidence.work if line["what"] == "end"}
    killed = {line["on"]: line["mono"] for line in evidence.faults if line["fault"] == "kill"}
    spans: dict[tuple[str, int], list[tuple[int, int, str, Line]]] = defaultdict(list)
    executed: Counter[str] = Counter()
    for line in evidence.work:
        if line["what"] != "begin":
            continue
        executed[line["key"]] += 1
        until = int(ended.get(line["by"]) or killed.get(line["engine"]) or line["mono"])
        if not _is_excused(line, until, evidence.faults):
            spans[keys[line["run"]]].append((line["mono"], until, line["run"], line))
    verdict.executions = executed.total()
    verdict.repeated = verdict.executions - len(executed)
    for key, of_key in spans.items():
        for (_, until, run, before), (begun, _, other, after) in pairwise(sorted(of_key, key=lambda one: one[:2])):
            if begun < until and run != other:
                verdict.find(f"work of two runs of {key} at once: {before} until {until}, {after}")


def _is_excused(line: Line, until: int, faults: list[Line]) -> bool:
    who = line["engine"].partition(".")[0]
    for fault in faults:
        if fault["fault"] in ("stop", "lease") and fault["on"].partition(".")[0] == who:
            since = fault["mono"] - (LATE_MS if fault["fault"] == "lease" else 0)
            if since <= until and line["mono"] <= fault["mono"] + fault["ms"] + LATE_MS:
                return True
    return False


def every(evidence: FlowEvidence) -> Iterator[FollowedEvent]:
    return (followed for transaction in evidence.log for followed in transaction)


def most_waiting(evidence: FlowEvidence) -> int:
    """The most runs that were queued at a time: a torture in which nobody had to wait proves nothing."""
    waiting: set[str] = set()
    most = 0
    for followed in every(evidence):
        if isinstance(followed.event, e.RunQueued):
            waiting.add(followed.run)
        elif isinstance(followed.event, e.RunStarted):
            waiting.discard(followed.run)
        most = max(most, len(waiting))
    return most


def keys_live_at_once(evidence: FlowEvidence) -> int:
    """The most runs of the keyed workflow that were live after a transaction."""
    live: set[str] = set()
    most = 0
    for transaction in evidence.log:
        for followed in transaction:
            if followed.workflow == KEYED and isinstance(followed.event, e.RunStarted):
                live.add(followed.run)
        for followed in transaction:
            if isinstance(followed.event, ENDS):
                live.discard(followed.run)
        most = max(most, len(live))
    return most
