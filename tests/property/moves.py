"""What could happen next to a driven run: answers, clocks, people, operators, messages delivered twice.

Owns the choice of commands. Every list is in a fixed order, so a choice is a number and shrinks well. `forward` alone
brings a run to its end; the rest disturbs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from tests.driving import Driven
from treadle.kernel.lifecycle import LIVE
from treadle.kernel.state import RunState, Token
from treadle.model import commands as c
from treadle.model.errors import Error
from treadle.model.ids import TokenId
from treadle.model.references import Person
from treadle.model.requests import AnyRequest, ChangeGroup, Emit, Send, WriteArtifact
from treadle.model.states import ExternalState, GateState, Mode, RunStatus, TokenState, Waiting

Json = Any
LEASE_MS = 40

RETRYABLE = Error("TASK_FAILED", "try again", retryable=True)
FINAL = Error("TASK_FAILED", "no use", retryable=False)


def output_of(random: Random) -> Json:
    """What a task answers: small enough that branches often agree and conditions often hold; seldom quite odd."""
    if random.random() < 0.04:
        return random.choice([None, 7, [], {"v": None}, {"items": "none"}])
    return {"v": random.randrange(3), "items": [random.randrange(3) for _ in range(random.randrange(3))]}


def forward(driven: Driven, random: Random) -> list[c.Command]:
    """Answers somebody owes this run, successes first. Nothing here needs the clock to move."""
    found: list[c.Command] = []
    for token in driven.state.tokens.values():
        if token.state in LIVE:
            found.extend(_answers(driven.state, token, random))
    found.extend(_signals(driven, random))
    return found


def _answers(state: RunState, token: Token, random: Random) -> Iterator[c.Command]:
    node = state.graph.nodes[token.node]
    works = token.mode is Mode.COMPENSATION or (node.task is not None and node.suspends is None)
    if works and token.state is TokenState.EXECUTING and not _is_answered(state, token):
        yield c.FinishAttempt(token.id, token.attempt, output_of(random), _requests(state, random), worker=token.worker)
    elif token.external is ExternalState.OFFERED and token.state is TokenState.DISPATCHED:
        yield c.StartAttempt(token.id, token.attempt, "w", None)
    elif token.waiting is Waiting.HUMAN and token.gate is GateState.OPEN:
        answered = len(token.asked.answers) if token.asked is not None else 0
        yield c.CompleteGate(token.id, output_of(random), ("ann", "joe", "kim")[answered], force=True)
    elif token.waiting is Waiting.EXTERNAL and token.external is ExternalState.OFFERED:
        yield c.ReceiveCallback(token.id, token.attempt, output_of(random))
    elif token.waiting is Waiting.SUBWORKFLOW and token.child is not None:
        yield c.EndChild(token.id, token.child, "completed", output_of(random), compensable=random.random() < 0.5)


def _requests(state: RunState, random: Random) -> tuple[AnyRequest, ...]:
    """What a longer task asks of its run along with its result; now and then."""
    if random.random() < 0.9:
        return ()
    names = [group.names[0].split(":", 1)[1] for group in state.groups.values()] or ["nobody"]
    name = random.choice(names)
    return (  # type: ignore[return-value]
        random.choice([Emit("note"), Send("s", "k", 1), WriteArtifact("report", "d1", 3)]),
        random.choice([ChangeGroup("cancel_group", name), ChangeGroup("add_siblings", name, [1]), Emit("note")]),
    )


def _is_answered(state: RunState, token: Token) -> bool:
    return token.id in state.deferred


def _signals(driven: Driven, random: Random) -> Iterator[c.Command]:
    for name, line in driven.state.lines.items():
        if line.places:
            yield c.SendSignal(name, "k", random.randrange(3), f"s{len(driven.commands)}")


def undoing(driven: Driven, random: Random) -> list[c.Command]:
    """The answer of a child that was asked to undo its work."""
    record = driven.state.compensating
    child = driven.state.records[record].child if record is not None else None
    if child is None or record is None:
        return []
    status = random.choice(["compensated", "compensated", "compensation_failed"])
    return [c.EndChild(driven.state.records[record].token, child, status)]


def failures(driven: Driven, random: Random) -> list[c.Command]:
    """The same answers, as failures; lost workers and expiring leases too."""
    found: list[c.Command] = []
    for answer in forward(driven, random):
        error = random.choice([RETRYABLE, FINAL])
        match answer:
            case c.FinishAttempt(token, attempt):
                found.append(c.FailAttempt(token, attempt, error, worker=answer.worker))
                found.append(c.LoseWorker(token, attempt, driven.state.tokens[token].recoveries))
            case c.ReceiveCallback(token, attempt):
                found.append(c.ReceiveCallback(token, attempt, None, error))
            case c.EndChild(token, child):
                found.append(c.EndChild(token, child, random.choice(["failed", "cancelled"]), None, error))
            case c.StartAttempt(token, attempt):
                found.append(c.StartAttempt(token, attempt, "w", driven.now + LEASE_MS))
            case c.CompleteGate(token):
                found.append(c.ClaimGate(token, "bob"))
                found.append(c.ReleaseGate(token, random.choice(["bob", "eve"])))
                found.append(c.DelegateGate(token, "eve", "bob", force=random.random() < 0.5))
                found.append(c.CompleteGate(token, {"v": 8}, random.choice(["bob", "eve", None])))
                found.append(c.CompleteGate(token, {"v": 8}, "eve", person=Person("eve", ("staff",))))
                found.append(c.CommentGate(token, "hm", "bob", id=f"c{len(driven.commands)}"))
    return found


def operators(driven: Driven, random: Random) -> list[c.Command]:
    """What people may ask of the run at any time, sensible or not."""
    tokens = list(driven.state.tokens.values())
    found: list[c.Command] = [
        c.PauseRun(),
        c.ResumeRun(),
        c.ExtendTimeout(100),
        c.SendSignal("s", random.choice(["k", None]), 1, f"o{len(driven.commands)}"),
    ]
    found += [c.CancelToken(token.id) for token in tokens if token.state in LIVE]
    found += [c.RetryToken(token.id) for token in tokens if token.state not in LIVE]
    found += [c.RetryToken(token.id) for token in tokens if token.state not in LIVE]
    found += _changes(driven, random, [token.id for token in tokens])
    for name in sorted({group.names[0].split(":", 1)[1] for group in driven.state.groups.values()}):
        found.append(c.CancelGroup(name, random.choice(["fire", "drop"])))
        found.append(c.AddSiblings(name, [0, 1], None, f"a{len(driven.commands)}"))
        found.append(c.CloseGroup(name))
    for record in driven.state.records.values():
        if record.status == "failed":
            found += [c.SkipCompensation(record.id), c.RetryCompensation(record.id)]
    return found


def _changes(driven: Driven, random: Random, tokens: list[TokenId]) -> list[c.Command]:
    """What an operator changes (6.4), sensible or not."""
    nodes = sorted(driven.graph.nodes)
    found: list[c.Command] = [c.EditRun({random.choice(["state.v", "state.w.x", "output.o"]): random.randrange(9)})]
    for token in random.sample(tokens, min(len(tokens), 2)):
        found += [
            c.EditRun({"state.v": 7}, token),
            c.SkipToken(token, {"v": 7}),
            c.SkipToken(token, {"v": 7}),
            c.JumpToken(token, random.choice(nodes)),
            c.JumpToken(token, random.choice(nodes)),
            c.SetInput(token, {"given": 1}),
        ]
    return found


def endings(driven: Driven, _random: Random) -> list[c.Command]:
    """What ends a run from outside, or undoes it afterwards."""
    return [c.CancelRun(), c.AbortRun(), c.CompensateRun(driven.state.parent.token if driven.state.parent else 1)]  # type: ignore[arg-type]


def stale(driven: Driven, random: Random) -> list[c.Command]:
    """Something that was delivered before, and answers to attempts that are over or never were."""
    before = [command for _, command in driven.commands[-12:]]
    token = random.randrange(driven.state.last_token + 1) + 1
    attempt = random.randrange(1, 4)
    wrong = [
        c.FinishAttempt(TokenId(token), attempt, {"v": 9}),
        c.FailAttempt(TokenId(token), attempt, RETRYABLE),
        c.ReceiveCallback(TokenId(token), attempt, {"v": 9}),
        c.CompleteGate(TokenId(token), {"v": 9}),
        c.LoseWorker(TokenId(token), attempt, random.randrange(2)),
    ]
    if _is_current(driven.state, token, attempt):
        wrong = wrong[2:]
    return before + wrong


def _is_current(state: RunState, token_id: int, attempt: int) -> bool:
    token = state.tokens.get(token_id)  # type: ignore[call-overload]
    return token is not None and token.attempt == attempt


def fire_earliest(driven: Driven, random: Random) -> list[c.Command]:
    """The next timers, with the clock where they are due."""
    timers = sorted(driven.state.timers.values(), key=lambda timer: (timer.due, timer.id))
    if not timers or driven.state.status is RunStatus.PAUSED:
        return []
    driven.now = max(driven.now, timers[0].due)
    return [c.FireTimer(timer.id) for timer in timers if timer.due <= driven.now]


def overdue(driven: Driven) -> list[c.Command]:
    """Timers the clock has passed already."""
    return [c.FireTimer(timer.id) for timer in driven.state.timers.values() if timer.due <= driven.now]


Kind = Callable[[Driven, Random], list[c.Command]]
CALM: list[tuple[int, Kind]] = [
    (55, forward),
    (6, undoing),
    (14, failures),
    (10, fire_earliest),
    (8, operators),
    (6, stale),
    (1, endings),
]
STORM: list[tuple[int, Kind]] = [
    (4, forward),
    (2, undoing),
    (4, failures),
    (3, fire_earliest),
    (6, operators),
    (3, stale),
]
"""Weights. In a storm a run is disturbed more often than it is answered."""


def choose(driven: Driven, random: Random, kinds: list[tuple[int, Kind]]) -> c.Command | None:
    """One thing that happens next; None when nothing of the kind drawn could."""
    die = random.randrange(sum(weight for weight, _ in kinds))
    for weight, kind in kinds:
        if die < weight:
            found = kind(driven, random)
            return random.choice(found) if found else None
        die -= weight
    raise AssertionError("the weights add up")


def drain(driven: Driven, random: Random, limit: int = 600) -> Iterator[c.Command]:
    """Everything somebody owes the run, until it has ended or nobody owes anything."""
    for _ in range(limit):
        if driven.ended:
            return
        if driven.state.status is RunStatus.PAUSED:
            yield c.ResumeRun()
            continue
        owed = overdue(driven) or undoing(driven, random) or forward(driven, random) or fire_earliest(driven, random)
        if not owed:
            return
        yield owed[0]
