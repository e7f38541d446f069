"""Events of waiting: gates, timers, signals, child runs, callbacks. Part of the closed set of `events`, which
re-exports them."""

from __future__ import annotations

from typing import Any

from treadle.model.errors import Error
from treadle.model.event import Event
from treadle.model.ids import GroupId, RunId, TimerId, TokenId
from treadle.model.requests import AnyRequest

Json = Any


class GateOpened(Event, tag="gate.opened"):
    token: TokenId
    input: Json = None
    title: str | None = None
    form: Json = None
    assign: Json = None
    due: int | None = None
    description: str | None = None
    """Markdown."""
    escalate: Json = None
    """{at, to}: from that moment on these people may answer, too."""


class GateClaimed(Event, tag="gate.claimed"):
    """A person has taken the gate on. Until they release it or pass it on, nobody else answers it unless by force."""

    token: TokenId
    by: str


class GateReleased(Event, tag="gate.released"):
    token: TokenId
    by: str
    instead_of: str | None = None
    """The person who had claimed it, if somebody else released it by force."""


class GateDelegated(Event, tag="gate.delegated"):
    token: TokenId
    to: str
    by: str
    instead_of: str | None = None
    """The person who had claimed it, if somebody else passed it on by force."""


class GateCompleted(Event, tag="gate.completed"):
    token: TokenId
    data: Json
    by: str | None = None
    instead_of: str | None = None
    """The person who had claimed it, if somebody else answered by force."""
    comment: str | None = None


class GateExpired(Event, tag="gate.expired"):
    token: TokenId
    default: Json = None


class GateCommented(Event, tag="gate.commented"):
    """A person has said something about the gate; it stays open."""

    token: TokenId
    text: str
    by: str | None = None
    attachments: tuple[str, ...] = ()
    """Names of artifacts of the run."""
    command: str | None = None
    """The id of the command that brought it."""


class GateAnswered(Event, tag="gate.answered"):
    """One person of a quorum has answered. `gate.completed` follows when enough have given equal data."""

    token: TokenId
    data: Json
    by: str
    comment: str | None = None


class GateReminded(Event, tag="gate.reminded"):
    token: TokenId
    number: int
    """1 for the first reminder of this gate."""


class GateEscalated(Event, tag="gate.escalated"):
    """Nobody has answered for long: from now on these people may answer, too."""

    token: TokenId
    to: Json


class TimerSet(Event, tag="timer.set"):
    timer: TimerId
    due: int
    purpose: str
    """wait | retry | attempt | lease | trigger | gate_due | gate_remind | gate_escalate | sync | run"""
    token: TokenId | None = None
    group: GroupId | None = None
    target: str | None = None
    """A sync timer's join, or a trigger's transition."""


class TimerFired(Event, tag="timer.fired"):
    timer: TimerId
    purpose: str
    token: TokenId | None = None


class SignalReceived(Event, tag="signal.received"):
    signal: int
    name: str
    key: Json = None
    data: Json = None
    command: str | None = None


class SignalTaken(Event, tag="signal.taken"):
    signal: int
    token: TokenId


class ChildStarted(Event, tag="child.started"):
    token: TokenId
    run: RunId
    workflow: str
    version: int | None = None


class ChildEnded(Event, tag="child.ended"):
    token: TokenId
    run: RunId
    status: str
    output: Json = None
    error: Error | None = None
    compensable: bool = False
    life: int = 0
    """How often the child had been reopened when it ended."""


class CallbackReceived(Event, tag="callback.received"):
    """An answer to a visit: from a webhook worker, or from any task if it came while the run was paused and is applied
    later."""

    token: TokenId
    attempt: int
    output: Json = None
    error: Error | None = None
    tries: int = 0
    requests: tuple[AnyRequest, ...] = ()


class CallbackRefused(Event, tag="callback.refused"):
    token: TokenId
    attempt: int
    kind: str
