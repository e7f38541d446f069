"""The state of a gate while it is open, and the answers that are kept afterwards. `evolve` alone changes them."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

from treadle.model.events import GateOpened

Json = Any


class PersonAnswer(NamedTuple):
    """One person's answer to a gate with a quorum."""

    by: str
    data: Json
    at: int


class GateQuestion(Struct):
    """The newest gate of a visit: the question as it was asked, and its story since."""

    opened: GateOpened
    answers: list[PersonAnswer] = []
    """The answers of a quorum so far, in order; one per person."""
    escalated: Json = None
    """The people it was escalated to; None: it was not."""
    reminded: int = 0
    commented: int = 0


class GivenAnswer(NamedTuple):
    """The accepted answer of a visit's gate or callback."""

    attempt: int
    data: Json
    by: str | None = None
    at: int | None = None
    """When a gate was answered. None: it is the answer of a callback."""
    each: tuple[PersonAnswer, ...] = ()
    """The answers of a quorum."""
