"""Deployed workflows as rows, and the difference between two versions. Pure.

Owns the comparison of definitions: by node and by transition, field by field.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from treadle.model.definition import Workflow
from treadle.runtime.view.snapshot_shapes import Changed, FieldChange

Json = Any


class VersionRow(Struct, frozen=True):
    """One version of a workflow."""

    workflow: str
    version: int
    hash: str
    deployed: int | None
    """When it was deployed; null: before that was written down."""


class WorkflowRow(VersionRow, frozen=True):
    """The newest version of a workflow, and its runs."""

    runs: dict[str, int]
    """Number of runs by status, of all versions."""


class DefinitionDifference(Struct, frozen=True, rename={"begin": "from", "end": "to"}):
    """What changed between two versions."""

    workflow: str
    begin: int
    end: int
    nodes: Changed
    transitions: Changed
    fields: list[FieldChange]
    """Other fields of the workflow."""


def definition_difference(before: Workflow, after: Workflow, begin: int, end: int) -> DefinitionDifference:
    """What changed from one definition to another. What is added or removed is named by its ref or id."""
    old, new = _plain(before), _plain(after)
    nodes = _changed(old.pop("nodes"), new.pop("nodes"))
    transitions = _changed(_by_id(old.pop("transitions", [])), _by_id(new.pop("transitions", [])))
    for each in (old, new):
        each.pop("canvas", None)
    fields = _fields("workflow", old, new)
    return DefinitionDifference(after.workflow, begin, end, nodes, transitions, fields)


def _plain(workflow: Workflow) -> dict[str, Json]:
    plain: dict[str, Json] = msgspec.to_builtins(workflow)
    return plain


def _by_id(transitions: list[dict[str, Json]]) -> dict[str, dict[str, Json]]:
    return {each["id"]: {name: value for name, value in each.items() if name != "id"} for each in transitions}


def _changed(old: dict[str, Any], new: dict[str, Any]) -> Changed:
    both = [ref for ref in new if ref in old]
    return Changed(
        [ref for ref in new if ref not in old],
        [ref for ref in old if ref not in new],
        [change for ref in both for change in _fields(ref, old[ref], new[ref])],
    )


def _fields(ref: str, old: dict[str, Json], new: dict[str, Json]) -> list[FieldChange]:
    names = dict.fromkeys([*old, *new])
    return [FieldChange(ref, name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]
