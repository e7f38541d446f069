"""The people that an `assign` names: the one reading of these words, for the kernel and for lists of gates.

An `assign` is a name, a list of names, or {users?, groups?, quorum?}. A plain name is a person or a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from treadle.model.references import Person

Json = Any


def people_of(assign: Json) -> Iterator[tuple[Literal["name", "user", "group"], str]]:
    """Everybody an `assign` names; a `name` is a person or a group."""
    if isinstance(assign, str):
        yield "name", assign
    elif isinstance(assign, list):
        for name in assign:
            yield "name", name
    elif isinstance(assign, dict):
        for name in _listed(assign.get("users")):
            yield "user", name
        for name in _listed(assign.get("groups")):
            yield "group", name


def is_asked(assign: Json, person: Person) -> bool:
    """Whether these words mean the person, by name or by a group of theirs."""
    return any(_means(kind, name, person) for kind, name in people_of(assign))


def _listed(names: Json) -> list[str]:
    return [names] if isinstance(names, str) else names or []


def _means(kind: str, name: str, person: Person) -> bool:
    return (kind != "group" and name == person.name) or (kind != "user" and name in person.groups)
