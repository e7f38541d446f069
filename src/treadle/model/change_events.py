"""Events of an operator's changes to a run that stands still (6.4), and of a fork (6.3). Part of `events`."""

from __future__ import annotations

from typing import Any

from treadle.model.event import Event
from treadle.model.ids import ArrivalId, RunId, TokenId

Json = Any


class TokenSkipped(Event, tag="token.skipped"):
    """An operator completes the visit with this output; its work is told to stop. A failed visit is live again."""

    token: TokenId
    output: Json
    by: str
    reason: str | None = None


class TokenJumped(Event, tag="token.jumped"):
    """An operator ends the visit and goes on at another node. Its `token.cancelled` follows, then the new visit's
    `token.created`. A failed visit is live again until then."""

    token: TokenId
    to: str
    by: str
    reason: str | None = None


class TokenInputSet(Event, tag="token.input_set"):
    """Every further attempt of the visit is given this input."""

    token: TokenId
    input: Json
    by: str
    reason: str | None = None


class RunForked(Event, tag="run.forked", rename={"from_": "from"}):
    """The run has the past of another one up to here, and a future of its own from here on. Work that was under way is
    pending again, with the same attempt."""

    from_: RunId
    point: int
    """The sequence number of the other run's last event that is inherited; 0: only its start."""
    by: str
    changes: Json = None
    """As they were asked for; None: nothing is changed."""
    inherit_compensation: bool = False
    shift_ms: int = 0
    """How much later every due time is, so that clocks have the time left that they had."""
    outputs: list[tuple[TokenId, Json]] = []
    """Visits that gave another output than in the other run."""
    arrivals: list[tuple[ArrivalId, Json]] = []
    """What such visits have brought to joins."""
    priority: int | None = None
    """That of the changed input; None: the inherited one."""
