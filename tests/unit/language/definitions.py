"""Definitions that several tests of the language start from, and short ways to load them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from treadle.language import Loaded, load_text, load_value
from treadle.language.text import read_text

PANEL = """\
workflow: panel
output: {votes: $.state.votes}
nodes: {ask: {}, judge: {output_mapping: {state.v: $.v}}, decide: {}}
transitions:
  - {id: t1, from: ask, to: judge, spawn_count: 3}
  - from: judge
    to: decide
    synchronization: {strategy: {m_of_n: 2}, sibling_group: t1,
                      merge: {source: _branch.output.v, target: state.votes, strategy: append}}
"""


def flow(nodes: Any = ("a", "b"), *transitions: Any, **fields: Any) -> dict[str, Any]:
    """A definition in few words: node names or a map, then the transitions."""
    named = nodes if isinstance(nodes, dict) else {ref: {} for ref in nodes}
    return {"workflow": "w", "nodes": named, "transitions": list(transitions), **fields}


def go(from_: str, to: str, **fields: Any) -> dict[str, Any]:
    """A transition."""
    return {"from": from_, "to": to, **fields}


def codes(definition: dict[str, Any] | str, **known: Any) -> list[str]:
    """The codes of everything that is wrong, errors and warnings."""
    return [problem.code for problem in loaded(definition, **known).problems]


def errors(definition: dict[str, Any] | str, **known: Any) -> list[str]:
    return [problem.code for problem in loaded(definition, **known).errors]


def loaded(definition: dict[str, Any] | str, **known: Any) -> Loaded:
    if isinstance(definition, str):
        return load_text(definition, "flow.yaml", **known)
    return load_value(definition, **known)


def table(name: str) -> list[dict[str, Any]]:
    """The rows of a table of definitions beside this file."""
    file = Path(__file__).with_name(name)
    (source,) = read_text(file.read_bytes(), name)
    rows: list[dict[str, Any]] = source.value
    return [{**row, "definition": {"workflow": "w", **row["definition"]}} for row in rows]
