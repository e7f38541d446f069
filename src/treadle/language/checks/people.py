"""Checks of `human` actions: people who can agree, clocks that can strike, and display keywords of forms (5.5)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from treadle.language.checks.flow import Flow
from treadle.language.checks.tasks import tasks_of
from treadle.language.problem import Path, did_you_mean
from treadle.language.reading import Reading

Json = Any
WIDGETS = ("textarea", "radio", "select", "date", "file", "hidden")
KEYWORDS = ("x-order", "x-widget", "x-help")
_SUBSCHEMAS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
"""Keywords of JSON Schema that hold schemas by name."""


def check(flow: Flow, reading: Reading) -> None:
    """BAD_VALUE for people who cannot agree and reminders out of order, TIMEOUT_HIERARCHY, BAD_SCHEMA for keywords."""
    for ref, node in flow.workflow.nodes.items():
        for at, task, _given in tasks_of(ref, node):
            for number, step in enumerate(task.steps):
                if step.action.kind == "human":
                    place = (*at, "steps", number, "action")
                    _assign(place, step.action.config, reading)
                    _clocks(place, step.action.config, reading)
                    _form((*place, "form"), step.action.config.get("form"), reading)


def _assign(at: Path, config: dict[str, Json], reading: Reading) -> None:
    assign = config.get("assign")
    quorum = assign.get("quorum") if isinstance(assign, dict) else None
    if isinstance(assign, dict) and assign.keys() <= {"users", "groups"} and not any(assign.values()):
        reading.problem_in(
            "BAD_VALUE", (*at, "assign"), "nobody is named, so nobody could answer", "leave `assign` out"
        )
    if isinstance(assign, dict) and quorum is not None:
        _quorum((*at, "assign", "quorum"), assign, quorum["of"], quorum["accept"], reading)
    elif "on_quorum_failed" in config and not _is_computed(assign):
        message = "`on_quorum_failed` does nothing, because `assign` has no `quorum`"
        reading.problem_in(
            "BAD_VALUE", (*at, "on_quorum_failed"), message, "assign: {users: […], quorum: {of, accept}}"
        )


def _quorum(at: Path, assign: dict[str, Json], people: int, enough: int, reading: Reading) -> None:
    if enough > people:
        message = f"{enough} equal answers of {people} people: nobody could ever accept it"
        reading.problem_in("BAD_VALUE", (*at, "accept"), message, f"at most {people}")
    users = set(assign.get("users") or ())
    if users and not assign.get("groups") and people > len(users):
        named = f"{len(users)} {'person is' if len(users) == 1 else 'people are'} named"
        message = f"{people} people are to answer, and {named}"
        reading.problem_in("BAD_VALUE", (*at, "of"), message, "name more `users`, or `groups`")


def _clocks(at: Path, config: dict[str, Json], reading: Reading) -> None:
    due, times, escalate = config.get("due_ms"), config.get("remind_ms"), config.get("escalate")
    if isinstance(times, list) and any(late <= early for early, late in pairwise(times)):
        message = "reminders come one after the other: each moment must be later than the one before it"
        reading.problem_in("BAD_VALUE", (*at, "remind_ms"), message, f"remind_ms: {sorted(set(times))}")
    if not isinstance(due, int):
        return
    first = min(times) if isinstance(times, list) else times
    if isinstance(first, int) and first >= due:
        _never((*at, "remind_ms"), f"the first reminder after {first} ms", due, reading)
    after = escalate.get("after_ms") if isinstance(escalate, dict) else None
    if isinstance(after, int) and after >= due:
        _never((*at, "escalate", "after_ms"), f"the escalation after {after} ms", due, reading)


def _never(at: Path, what: str, due: int, reading: Reading) -> None:
    message = f"{what} never comes: the gate expires after {due} ms"
    reading.problem_in("TIMEOUT_HIERARCHY", at, message, "remind and escalate before `due_ms`")


def _is_computed(value: Json) -> bool:
    return (isinstance(value, str) and value.startswith("$")) or (isinstance(value, dict) and "cel" in value)


def _form(at: Path, form: Json, reading: Reading) -> None:
    for place, schema in _schemas(at, form):
        for keyword in schema:
            if isinstance(keyword, str) and keyword.startswith("x-"):
                _keyword(place, schema, keyword, reading)


def _schemas(at: Path, schema: Json) -> Iterator[tuple[Path, dict[str, Json]]]:
    """A schema and those inside it. Names of properties are no keywords, and values of `const` and `default` no
    schemas."""
    if not isinstance(schema, dict):
        return
    yield at, schema
    for keyword in _SUBSCHEMAS:
        for name, part in (schema[keyword] if isinstance(schema.get(keyword), dict) else {}).items():
            yield from _schemas((*at, keyword, name), part)
    for keyword in ("items", "additionalProperties", "not", "if", "then", "else"):
        yield from _schemas((*at, keyword), schema.get(keyword))
    for keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
        for index, part in enumerate(schema[keyword] if isinstance(schema.get(keyword), list) else ()):
            yield from _schemas((*at, keyword, index), part)


def _keyword(at: Path, schema: dict[str, Json], keyword: str, reading: Reading) -> None:
    value, place = schema[keyword], (*at, keyword)
    if keyword == "x-widget" and value not in WIDGETS:
        hint = did_you_mean(str(value), WIDGETS) or f"one of {', '.join(WIDGETS)}"
        reading.problem_in("BAD_SCHEMA", place, f"there is no widget `{str(value)[:60]}`", hint)
    elif keyword == "x-help" and not isinstance(value, str):
        reading.problem_in("BAD_SCHEMA", place, "`x-help` is a text that is shown beside the field")
    elif keyword == "x-order":
        _order(place, schema, value, reading)
    elif keyword not in KEYWORDS:
        hint = did_you_mean(keyword, KEYWORDS) or f"known are {', '.join(KEYWORDS)}"
        reading.problem_in("BAD_SCHEMA", place, f"there is no display keyword `{keyword[:60]}`", hint)


def _order(at: Path, schema: dict[str, Json], value: Json, reading: Reading) -> None:
    """A field's `x-order` is a number; that of an object may also list its fields."""
    if isinstance(value, list):
        known = schema.get("properties") or {}
        for name in value:
            if name not in known:
                message = f"`x-order` names `{str(name)[:60]}`, which is no field of the form"
                reading.problem_in("BAD_SCHEMA", at, message, did_you_mean(str(name), known))
    elif isinstance(value, bool) or not isinstance(value, int | float):
        reading.problem_in("BAD_SCHEMA", at, "`x-order` is a number: fields with smaller numbers come first")
