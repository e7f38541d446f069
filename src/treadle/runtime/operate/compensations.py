"""The compensations of one run: the completed visits that can be undone, and how far undoing each has come (2.10).

Owns the reading of the records from a history. Must not decide anything: retrying and skipping are commands of the
kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from treadle.errors import CommandRefused
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import RecordId, RunId, TokenId

Json = Any


class CompensationStatus(Struct):
    """One record: a completed visit, and how far undoing it has come."""

    record: RecordId
    visit: TokenId
    node: str
    path: str
    status: Literal["recorded", "running", "completed", "failed", "skipped", "inherited"] = "recorded"
    """`recorded`: undoing it has not begun. `inherited`: a fork does not undo what the other run has done."""
    changed: int = 0
    attempts: int = 0
    """How often the run or an operator began to undo it; retries of its task are not counted."""
    error: Error | None = None
    """The error, if it failed."""
    by: str | None = None
    """The operator who skipped it."""
    child: RunId | None = None
    """The child run whose own compensations undo the visit."""
    input: Json = None
    output: Json = None


def compensations_of(history: Iterable[e.Event]) -> list[CompensationStatus]:
    """Every record in the order in which the visits completed; they are undone from the last to the first."""
    found: dict[RecordId, CompensationStatus] = {}
    for event in history:
        if isinstance(event, e.CompensationRecorded):
            found[event.record] = CompensationStatus(
                event.record,
                event.token,
                event.node,
                event.path,
                changed=event.at,
                child=event.child,
                input=event.input,
                output=event.output,
            )
        elif isinstance(event, _MOVES):
            _move(found[event.record], event)
        elif isinstance(event, e.RunForked):
            for record in found.values():
                if record.status == "recorded" and (record.child is not None or not event.inherit_compensation):
                    record.status = "inherited"
    return list(found.values())


_MOVES = (e.CompensationStarted, e.CompensationCompleted, e.CompensationFailed, e.CompensationSkipped)


def _move(one: CompensationStatus, event: e.Event) -> None:
    one.changed = event.at
    one.error = None
    if isinstance(event, e.CompensationStarted):
        one.status = "running"
        one.attempts += 1
    elif isinstance(event, e.CompensationCompleted):
        one.status = "completed"
    elif isinstance(event, e.CompensationFailed):
        one.status, one.error = "failed", event.error
    elif isinstance(event, e.CompensationSkipped):
        one.status, one.by = "skipped", event.by


def the_failed(run: RunId, known: Iterable[CompensationStatus], record: int | None) -> RecordId:
    """The record an operator means: the one named, else the only one that failed. Raises CommandRefused."""
    if record is not None:
        return RecordId(record)
    failed = [one for one in known if one.status == "failed"]
    if not failed:
        raise CommandRefused("INVALID_STATE", f"no compensation of run {run} has failed")
    if len(failed) > 1:
        which = ", ".join(f"{one.record} ({one.node})" for one in failed)
        raise CommandRefused("INVALID_STATE", f"several compensations of run {run} have failed: name one of {which}")
    return failed[0].record
