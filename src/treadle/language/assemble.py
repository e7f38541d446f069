"""Assembling one canonical `Workflow` from the fields read by the tables: transition ids, start nodes, references by
name.

The last step in which a definition may still be incomplete. Reports every reference to something that does not exist
and leaves it out, so that the checks that follow meet only existing nodes and groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.language.grammar.transition import make_transition
from treadle.language.reading import Reading
from treadle.model import definition as d

Fields = dict[str, Any]


def assemble(values: Fields, reading: Reading) -> d.Workflow | None:
    """The workflow, or None if too little of it is there for any further check."""
    nodes: dict[str, d.Node] = values.get("nodes", {})
    if not nodes:
        if "nodes" in values:
            reading.problem_in("NO_START", ("nodes",), "a workflow needs at least one node")
        return None
    transitions = list(_transitions(values.get("transitions", []), nodes, reading))
    rest = {key: value for key, value in values.items() if key not in _TREATED}
    return d.Workflow(
        workflow=values.get("workflow", ""),
        nodes=nodes,
        transitions=transitions,
        start=_start(values.get("start"), nodes, transitions, reading),
        **rest,
    )


_TREATED = frozenset({"workflow", "nodes", "transitions", "start", "actions", "tasks"})


def _transitions(rows: list[Fields], nodes: dict[str, d.Node], reading: Reading) -> Iterator[d.Transition]:
    ids = _ids(rows, reading)
    kept = 0
    for index, (row, transition_id) in enumerate(zip(rows, ids, strict=True)):
        ends = [_known_node(nodes, row[end], ("transitions", index, end), reading) for end in ("from", "to")]
        if all(ends):
            # A dropped row shifts the rest; the checks number what is kept.
            reading.moved(("transitions", index), ("transitions", kept))
            kept += 1
            yield make_transition(row, transition_id)


def _ids(rows: list[Fields], reading: Reading) -> list[str]:
    """Every transition's id: the given one, else `<from>-><to>`, with `#2`… where that is taken."""
    taken: set[str] = set()
    for index, row in enumerate(rows):
        given = row.get("id")
        if given in taken:
            hint = "leave ids out, or make them differ"
            reading.problem_in(
                "BAD_VALUE", ("transitions", index, "id"), f"two transitions have the id `{given}`", hint
            )
        elif given is not None:
            taken.add(given)
    ids: list[str] = []
    for row in rows:
        ids.append(row["id"] if "id" in row else _free_id(f"{row['from']}->{row['to']}", taken))
        taken.add(ids[-1])
    return ids


def _free_id(wanted: str, taken: set[str]) -> str:
    number, candidate = 2, wanted
    while candidate in taken:
        candidate, number = f"{wanted}#{number}", number + 1
    return candidate


def _known_node(nodes: dict[str, d.Node], ref: str, at: tuple[str | int, ...], reading: Reading) -> bool:
    if ref not in nodes:
        reading.unknown("UNKNOWN_NODE", reading.written(at), "node", ref, nodes)
    return ref in nodes


def _start(
    given: list[str] | None, nodes: dict[str, d.Node], transitions: list[d.Transition], reading: Reading
) -> list[str]:
    if given is None:
        targets = {transition.to for transition in transitions}
        found = [ref for ref in nodes if ref not in targets]
        if not found:
            message = "every node has an inbound transition, so no node is the first"
            reading.problem_in("NO_START", ("nodes",), message, "name the first node: `start: …`")
        return found
    if not given:
        reading.problem_in("NO_START", ("start",), "`start` names no node", "leave it out, or name the first node")
    known = [
        ref
        for index, ref in enumerate(given)
        if _known_node(nodes, ref, ("start", index) if _is_list(reading) else ("start",), reading)
    ]
    return list(dict.fromkeys(known))


def _is_list(reading: Reading) -> bool:
    start = reading.local.get("start", reading.local.get("initial_node_id"))
    return isinstance(start, list)
