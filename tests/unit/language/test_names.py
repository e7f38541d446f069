"""A definition whose names hold something that cannot be seen is refused, with the name made visible."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.language import load_value

X = "x\u202ey"
SEEN = "x\\u202ey"


@pytest.mark.parametrize(
    ("definition", "at"),
    [
        ({"nodes": {X: {}}}, f'nodes["{SEEN}"]'),
        ({"nodes": {"a": {}}, "tags": ["t", X]}, "tags[1]"),
        ({"nodes": {"a": {"queue": X, "action": {"kind": "set", "values": {}}}}}, "nodes.a.queue"),
        ({"nodes": {"a": {"mutex": X}}}, "nodes.a.mutex"),
        ({"nodes": {"a": {"action": {"kind": "signal", "name": X}}}}, "nodes.a.action.name"),
        ({"nodes": {"a": {"task": "t"}}, "tasks": {"t": {"steps": []}, X: {"steps": []}}}, f'tasks["{SEEN}"]'),
        ({"nodes": {"a": {}, "b": {}}, "transitions": [{"id": X, "from": "a", "to": "b"}]}, "transitions[0].id"),
        ({"nodes": [{"id": X, "type": "UX", "data": {}}], "edges": []}, "nodes[0]"),
    ],
)
def test_a_name_that_hides_something_cannot_be_deployed(definition: dict[str, Any], at: str) -> None:
    problems = [problem for problem in load_value({"workflow": "w", **definition}).errors if SEEN in problem.message]
    assert [(problem.code, problem.at) for problem in problems] == [("BAD_VALUE", at)]
    assert X not in str(problems[0])


def test_a_node_that_is_not_there_is_shown_with_what_hides_in_its_name() -> None:
    loaded = load_value({"workflow": "w", "nodes": {"a": {}}, "transitions": [{"from": "a", "to": "a\u200b"}]})
    assert any("`a\\u200b`" in problem.message for problem in loaded.errors)
