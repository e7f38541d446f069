"""The smaller forms that several parts of a scenario share: definitions, starts, outcomes, errors.

Part of the parser (see `parse`); owns no key of the top level.
"""

from __future__ import annotations

from typing import Any

from treadle.model.errors import Error
from treadle.model.references import EntityRef
from treadle.model.spending import PARTS
from treadle.testing.scenario.form import Definition, Start
from treadle.testing.scenario.place import ValuePlace
from treadle.testing.world.outcomes import Outcome

Json = Any
_START = frozenset({"key", "workflow", "input", "entity", "idempotency_key"})
_ENTITY = frozenset({"id", "type", "name", "attributes", "section"})
_OUTCOME = frozenset({"output", "error", "after_ms", "hold", "cost", "usage"})
_ERROR = frozenset({"kind", "message", "retryable"})


def parse_definition(place: ValuePlace) -> Definition:
    """A workflow written inline, or `{file: path}`; of a file with several, `{file: path, workflow: name}`."""
    entries = place.map()
    if "file" in entries and set(entries) <= {"file", "workflow"}:
        workflow = entries["workflow"].text() if "workflow" in entries else None
        return Definition(place, entries["file"].text(), workflow)
    return Definition(place)


def parse_start(place: ValuePlace, *more: str) -> Start:
    """How a run begins; `more` keys are those of the step of the same name."""
    fields = place.fields(_START | set(more), "`start`")
    return Start(
        workflow=fields["workflow"].text() if "workflow" in fields else None,
        input=fields["input"].value if "input" in fields else {},
        entity=parse_entity(fields["entity"]) if "entity" in fields else None,
        idempotency_key=fields[key].text() if (key := _key_in(fields)) in fields else None,
        name=fields["as"].text() if "as" in fields else None,
        place=place,
    )


def _key_in(fields: dict[str, ValuePlace]) -> str:
    """The spelling of the idempotency key that is used."""
    if "key" in fields and "idempotency_key" in fields:
        fields["key"].refuse("`key` and `idempotency_key` are the same", key=True)
    return "key" if "key" in fields else "idempotency_key"


def parse_entity(place: ValuePlace) -> EntityRef:
    """`{id, type, name?, attributes?, section?}`."""
    fields = place.fields(_ENTITY, "`entity`")
    for required in ("id", "type"):
        if required not in fields:
            place.refuse(f"an entity needs `{required}`")
    return EntityRef(
        id=fields["id"].text(),
        type=fields["type"].text(),
        name=fields["name"].text() if "name" in fields else None,
        attributes=fields["attributes"].value if "attributes" in fields else None,
        section=fields["section"].text() if "section" in fields else None,
    )


def parse_outcome(place: ValuePlace) -> Outcome:
    """`{output | error, after_ms?, hold?}` of a mock."""
    fields = place.fields(_OUTCOME, "an outcome")
    if "output" in fields and "error" in fields:
        fields["error"].refuse("an outcome has an output or an error, not both", key=True)
    if "hold" in fields and ("output" in fields or "error" in fields):
        fields["hold"].refuse("what a held execution comes to is said by its `release` step", key=True)
    return Outcome(
        output=fields["output"].value if "output" in fields else {},
        error=parse_error(fields["error"]) if "error" in fields else None,
        after_ms=fields["after_ms"].count() if "after_ms" in fields else 0,
        hold=fields["hold"].flag() if "hold" in fields else False,
        spent=parse_spent(fields),
    )


def parse_spent(fields: dict[str, ValuePlace]) -> Json:
    """`cost` and `usage` beside an output: what the work has used up."""
    spent: dict[str, Json] = {}
    if "cost" in fields:
        spent["cost"] = fields["cost"].amount()
    if "usage" in fields:
        spent["usage"] = {key: value.amount() for key, value in fields["usage"].map().items()}
    return spent or None


def parse_amounts(place: ValuePlace) -> dict[str, float]:
    """`{cost?, tokens?, visits?, elapsed_ms?}`: parts of a budget."""
    fields = place.fields(PARTS, "a budget")
    return {part: value.amount() if part == "cost" else value.count() for part, value in fields.items()}


def parse_error(place: ValuePlace) -> Error:
    """`{kind?, message?, retryable?}`."""
    fields = place.fields(_ERROR, "an error")
    return Error(
        kind=fields["kind"].text() if "kind" in fields else "TASK_FAILED",
        message=fields["message"].text() if "message" in fields else "mock failure",
        retryable=fields["retryable"].flag() if "retryable" in fields else False,
    )
