"""What docs/reference/cli.md says lists have in JSON is what they have."""

from __future__ import annotations

import re

from tools.cli_docs import FIELDS
from treadle.cli.runs.gates import _row
from treadle.cli.runs.show import run_row
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.command.kept_requests import RequestRow
from treadle.runtime.command.presence import NodeRow
from treadle.runtime.queue.queue_settings import QueueView
from treadle.store.port import GateRow, RunRow


def written(what: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", FIELDS[what]))


def test_every_field_is_written_down_and_no_other() -> None:
    gate = GateRow(RunId("r"), TokenId(5), "ask", "w", 0)
    assert gate.visit == 5
    assert written("a run") == run_row(RunRow(RunId("r"), "w", 1, RunStatus.RUNNING, 1)).keys()
    assert written("a gate") == _row(gate).keys()
    assert written("a node") == set(NodeRow.__struct_fields__)
    assert written("a kept request") - {"waiting", "done", "refused"} == set(RequestRow.__struct_fields__)
    assert written("a queue") == set(QueueView.__struct_fields__)
