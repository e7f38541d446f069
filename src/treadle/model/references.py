"""References of a run to things outside it: the entity it is about, the visit that waits for it, people."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.model.ids import Frame, RunId, TokenId

Json = Any


class EntityRef(Struct, omit_defaults=True):
    """The entity a run is about, as it was when the run started."""

    id: str
    type: str
    name: str | None = None
    attributes: Json = None
    section: str | None = None

    @property
    def address(self) -> str:
        """TYPE/ID. A type has no slash, so the first one ends it."""
        return f"{self.type}/{self.id}"


def spellings_of(address: str) -> tuple[str, str]:
    """How the row of a run names the entity of an address, TYPE/ID: by the address, or by the id alone, as rows of
    version 0.1 do. An id with a slash is not looked for alone: it could be the address of another entity."""
    id = address.partition("/")[2]
    return address, id if id and "/" not in id else address


class ParentLink(Struct, omit_defaults=True):
    """The visit, and its run, that waits for this run."""

    run: RunId
    token: TokenId
    inherits_artifacts: bool = False
    """The run may read the artifacts of its parent."""
    catches: bool = False
    """The visit takes this run's failure as a result (`on_failure: catch`), so the failure is handled."""
    budgeted: bool = False
    """A budget of the parent, or of a run above it, counts what this run spends: it asks before every attempt."""


class Person(Struct, frozen=True, omit_defaults=True):
    """A person whose identity somebody has checked, such as the server by a key. Only
    people who were asked may answer."""

    name: str
    groups: tuple[str, ...] = ()
    admin: bool = False
    """May answer every gate, and act instead of the person who has claimed one."""


class NodeOutput(Struct, frozen=True):
    """The latest output of a node in one scope, as the run's history has it."""

    scope: Frame | None
    node: str
    output: Json
