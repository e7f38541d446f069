"""Calls name what they pass: nobody has to count arguments to read one. Events are made by named methods alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.arch import source

POSITIONAL_MAX = 6
"""Arguments by position. A reader holds about so many in mind; the seventh and all later ones have names."""

RECORDING = "src/treadle/kernel/recording"
"""The modules with one method for each event. They make events by position, because a visit makes five to seven of them
and keywords cost up to four times as much; their methods take the same values by name."""

NOT_YET = (
    "src/treadle/runtime/coordinate/",
    "src/treadle/runtime/deliver/",
    "src/treadle/runtime/command/",
)
"""Rooms still to be mended. This list must become empty."""

BY_POSITION = {
    "src/treadle/kernel/evolve_tokens.py::Token": "made for every visit: keywords would take 0.1 µs more of some 18",
    "src/treadle/kernel/evolve_groups.py::Arrival": "made for every arrival at a join: as Token",
}
"""The only other calls that are longer, for speed: file::what is called → why."""

ANY_NUMBER = {
    "_config": "the fields of a kind of action, one after another",
    "connection.fetch": "the values of a query's parameters, as many as it has",
}
"""Functions that take a list without brackets."""


def calls(file: source.Path) -> Iterator[ast.Call]:  # type: ignore[name-defined]
    return (node for node in ast.walk(source.tree(file)) if isinstance(node, ast.Call))


def test_calls_have_at_most_six_arguments_by_position() -> None:
    problems = []
    for file in source.files(f"src/{source.PACKAGE}", suffix=".py"):
        name = source.shown(file)
        if name.startswith((RECORDING, *NOT_YET)):
            continue
        for call in calls(file):
            callee = ast.unparse(call.func)
            excused = callee in ANY_NUMBER or f"{name}::{callee}" in BY_POSITION
            if len(call.args) > POSITIONAL_MAX and not excused:
                problems.append(f"{name}:{call.lineno} {callee} has {len(call.args)} arguments by position")
    assert not problems, source.report("calls nobody can read:", problems, "pass what is optional by keyword")


def test_only_the_recording_methods_make_events() -> None:
    events = {node.name for node in _event_classes()}
    assert {"TokenWaiting", "GateOpened", "Custom"} <= events
    problems = []
    for file in source.files("src/treadle/kernel", suffix=".py"):
        if source.shown(file).startswith(RECORDING):
            continue
        for call in calls(file):
            if ast.unparse(call.func).removeprefix("e.") in events:
                problems.append(f"{source.shown(file)}:{call.lineno} makes {ast.unparse(call.func)}")
    assert not problems, source.report("events made by hand:", problems, "call the method of that name on `d`")


def _event_classes() -> Iterator[ast.ClassDef]:
    for name in ("events", "wait_events"):
        for node in source.tree(source.ROOT / f"src/treadle/model/{name}.py").body:
            if isinstance(node, ast.ClassDef) and "Event" in [ast.unparse(kind) for kind in node.bases]:
                yield node
