"""Spans as data: those that have ended, and visits and attempts that have not. Used by `spans`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.model import events as e
from treadle.model.errors import Error

ERROR_MAX = 1_000
"""Characters of an error's message."""

Attributes = dict[str, Any]


class EndedSpan(Struct, frozen=True):
    """One span that has ended. Times are milliseconds since 1970."""

    id: str
    parent: str | None
    name: str
    start: int
    end: int
    attributes: Attributes
    links: tuple[str, ...] = ()
    notes: tuple[tuple[str, int, Attributes], ...] = ()
    """What happened meanwhile: name, instant, attributes."""
    error: str | None = None


class OpenAttempt(Struct):
    """An attempt that has begun."""

    number: int
    start: int
    attributes: Attributes
    is_work: bool = False
    """It was handed to an executor, or waits for something outside. A node without a task has no attempt to show."""
    notes: list[tuple[str, int, Attributes]] = []


class OpenVisit(Struct):
    """A visit that has not ended."""

    node: str
    life: int
    start: int
    attributes: Attributes
    links: tuple[str, ...] = ()
    notes: list[tuple[str, int, Attributes]] = []
    attempt: OpenAttempt | None = None


def attributes_of_run(started: e.Beginning) -> Attributes:
    """What the span of a run says about it."""
    attributes: Attributes = {
        "treadle.run": started.run,
        "treadle.workflow": started.workflow,
        "treadle.version": started.version,
    }
    if started.tags:
        attributes["treadle.tags"] = tuple(started.tags)
    if started.entity is not None:
        attributes["treadle.entity"] = f"{started.entity.type}/{started.entity.id}"
    if started.parent is not None:
        attributes["treadle.parent"] = started.parent.run
    return attributes


def attributes_of_error(error: Error | None) -> Attributes:
    """What a span says about a failure, beside the words."""
    return {} if error is None else {"error.type": error.kind}


def error_words(error: Error | None) -> str | None:
    """A failure in words; None if there was none."""
    return None if error is None else f"{error.kind}: {error.message}"[:ERROR_MAX]
