"""What the judges of the service look at, and how it is read."""

from __future__ import annotations

from collections.abc import Iterator

from tests.torture.journal import Line
from tests.torture.verdict import Evidence
from treadle.model import events as e


class ServiceEvidence(Evidence, kw_only=True):
    """Beside what every judge looks at: the audit."""

    audited: set[str]
    """Ids of requests that have an entry."""


def of(evidence: Evidence, *ops: str) -> Iterator[Line]:
    """The lines of the client's journal about these operations."""
    return (line for line in evidence.client if line["op"] in ops)


def given_to(history: list[e.Event]) -> dict[str, object]:
    """The input of a run."""
    first = history[0]
    assert isinstance(first, e.RunStarted)
    given: dict[str, object] = first.input
    return given


def output_of(history: list[e.Event]) -> object:
    """What a run gave; None: nothing yet."""
    return next((event.output for event in reversed(history) if isinstance(event, e.RunCompleted)), None)


def fork_of(history: list[e.Event]) -> e.RunForked | None:
    """Where the past that a fork has inherited ends; None: it is no fork."""
    return next((event for event in reversed(history) if isinstance(event, e.RunForked)), None)
