"""Small workflows and worlds for the tests of the runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treadle.language import load_value
from treadle.model.definition import Workflow
from treadle.model.errors import Error, Rejection
from treadle.model.ids import RunId
from treadle.testing import Outcome, World

CHAIN = {"workflow": "w", "nodes": {"a": {}, "b": {}}, "transitions": [{"from": "a", "to": "b"}]}
PANEL = {
    "workflow": "w",
    "nodes": {"ask": {}, "judge": {"output_mapping": {"state.v": "$.v"}}, "decide": {}},
    "transitions": [
        {"id": "t1", "from": "ask", "to": "judge", "spawn_count": 3},
        {
            "from": "judge",
            "to": "decide",
            "synchronization": {
                "sibling_group": "t1",
                "merge": {"source": "_branch.output.v", "target": "state.votes", "strategy": "append"},
            },
        },
    ],
}
WAIT = {
    "workflow": "w",
    "nodes": {"a": {"action": {"kind": "wait", "ms": 1_000}}, "b": {}},
    "transitions": [{"from": "a", "to": "b"}],
}
HOLD = Outcome(hold=True)
FAIL = Outcome(error=Error("TASK_FAILED", "no", retryable=True))


def workflow(document: Mapping[str, Any]) -> Workflow:
    return load_value(dict(document)).require()


def world(
    document: Mapping[str, Any], mocks: Mapping[str, Sequence[Outcome]] | None = None, **fields: Any
) -> tuple[World, RunId]:
    """A world in which a run of the workflow has just been started."""
    made = World(mocks, fields.pop("seed", None))
    made.deploy(workflow(document))
    run = made.start("w", {}, **fields)
    assert not isinstance(run, Rejection)
    return made, run
