"""Reads that nothing can have written, reads that only some paths have, writes that nobody reads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.language.definitions import codes, flow, table

ROWS = table("dataflow.yaml")


@pytest.mark.parametrize("row", ROWS, ids=[row["because"] for row in ROWS])
def test_reads_and_writes(row: dict[str, Any]) -> None:
    assert sorted(codes({"output": "$.state", **row["definition"]})) == sorted(row["finds"])


def test_dataflow_is_checked_only_when_nothing_else_is_wrong() -> None:
    definition = flow({"a": {"ouput": {"state.x": "$.x"}, "input": {"y": "$.state.x"}}})
    assert codes(definition) == ["UNKNOWN_FIELD"]


def test_a_large_workflow_is_checked_in_about_linear_work() -> None:
    """Facts are counted, not seconds: how often a node is looked at again before nothing changes."""
    from treadle.language.checks.surely import Sure

    looked = 0
    entering = Sure._entering

    def counting(self: Sure, ref: str) -> int:
        nonlocal looked
        looked += 1
        return entering(self, ref)

    nodes = {f"n{i}": {"output": {f"state.s{i}": "$"}, "input": {"x": f"$.state.s{max(i - 1, 0)}"}} for i in range(300)}
    nodes["n0"].pop("input")
    rows = [{"from": f"n{i}", "to": f"n{i + 1}"} for i in range(299)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sure, "_entering", counting)
        assert codes(flow(nodes, *rows, output="$.state")) == []
    assert looked < 300 * 20
