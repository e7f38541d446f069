"""The `expect` of a scenario: what may be expected and how it is written.

Part of the parser (see `parse`); owns the keys of an expectation. Words of closed sets (statuses, event
types, reasons to wait) are checked here, so that a mistyped expectation is an error of the file and never a
failing or, worse, passing test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.model import events
from treadle.model.states import RunStatus, TokenState, Waiting
from treadle.testing.scenario.form import EntityExpected, ErrorExpected, Expectation, WaitExpected
from treadle.testing.scenario.parse_parts import parse_amounts
from treadle.testing.scenario.place import ValuePlace

EVENT_TYPES = frozenset(
    str(kind.__struct_config__.tag)
    for kind in vars(events).values()
    if isinstance(kind, type) and issubclass(kind, events.Event) and kind is not events.Event
)
_POSITION = ("node", "edge", "section", "type", "completed_as")
_JOURNEY = frozenset({"event", *_POSITION})


def parse_expectation(place: ValuePlace) -> Expectation:
    """A map of expectations."""
    fields = place.fields(_READERS, "`expect`")
    read: dict[str, Any] = {key: _READERS[key](value) for key, value in fields.items()}
    return Expectation(place, **read)


def _status(place: ValuePlace) -> str:
    return place.choice([status.value for status in RunStatus], "status of a run")


def _error(place: ValuePlace) -> ErrorExpected:
    fields = place.fields({"kind", "message_contains"}, "`error`")
    return ErrorExpected(
        kind=fields["kind"].text() if "kind" in fields else None,
        message_contains=fields["message_contains"].text() if "message_contains" in fields else None,
    )


def _counts(place: ValuePlace) -> dict[str, int]:
    return {key: value.count() for key, value in place.map().items()}


def _texts(place: ValuePlace) -> list[str]:
    return [item.text() for item in place.items()]


def _paths(place: ValuePlace) -> dict[str, list[str]]:
    return {key: _texts(value) for key, value in place.map().items()}


def _json(place: ValuePlace) -> Any:
    return place.value


def _jsons(place: ValuePlace) -> dict[str, Any]:
    return {key: value.value for key, value in place.map().items()}


def _waiting(place: ValuePlace) -> list[WaitExpected]:
    return [_wait(item) for item in place.items()]


def _wait(place: ValuePlace) -> WaitExpected:
    fields = place.fields({"node", "for", "awaiting"}, "a wait")
    if "node" not in fields or "for" not in fields:
        place.refuse("a wait needs its `node` and what it waits `for`")
    return WaitExpected(
        node=fields["node"].text(),
        reason=fields["for"].choice([reason.value for reason in Waiting], "reason to wait"),
        awaiting=fields["awaiting"].count() if "awaiting" in fields else None,
    )


def _tokens(place: ValuePlace) -> dict[str, int]:
    for key, value in place.map().items():
        ValuePlace(value.document, value.path, key).choice([state.value for state in TokenState], "state of a visit")
    return _counts(place)


def _event_type(place: ValuePlace) -> str:
    word = place.text()
    return word if word.startswith("custom.") else place.choice(EVENT_TYPES, "type of event")


def _event_types(place: ValuePlace) -> list[str]:
    return [_event_type(item) for item in place.items()]


def _event_counts(place: ValuePlace) -> dict[str, int]:
    for key, value in place.map().items():
        _event_type(ValuePlace(value.document, value.path, key))
    return _counts(place)


def _warnings(place: ValuePlace) -> list[str]:
    return [item.choice(events.WARNINGS, "type of warning event") for item in place.items()]


def _count(place: ValuePlace) -> int:
    return place.count()


def _runs(place: ValuePlace) -> dict[str, Expectation]:
    return {key: parse_expectation(value) for key, value in place.map().items()}


def _entity(place: ValuePlace) -> EntityExpected:
    fields = place.fields({*_POSITION, "journey"}, "`entity`")
    journey = fields.pop("journey", None)
    return EntityExpected(
        position={key: value.value for key, value in fields.items()},
        journey=[_move(item) for item in journey.items()] if journey else None,
    )


def _move(place: ValuePlace) -> dict[str, Any]:
    return {key: value.value for key, value in place.fields(_JOURNEY, "a journey's move").items()}


_READERS: dict[str, Callable[[ValuePlace], Any]] = {
    "status": _status,
    "error": _error,
    "visits": _counts,
    "attempts": _counts,
    "order": _texts,
    "paths": _paths,
    "state": _json,
    "output": _json,
    "node_output": _jsons,
    "waiting": _waiting,
    "tokens": _tokens,
    "events": _event_types,
    "no_events": _event_types,
    "event_counts": _event_counts,
    "warnings": _warnings,
    "elapsed_ms": _count,
    "runs": _runs,
    "entity": _entity,
    "dispatches": _counts,
    "queued": _texts,
    "spent": parse_amounts,
}
