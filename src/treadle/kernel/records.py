"""Compensation records: the note a completed visit leaves so that it can be undone later (2.10).

Writes the records and nothing else. `saga` works them off. `cancel` calls this module for visits whose result came
while the run was paused, so it must import neither of them.
"""

from __future__ import annotations

from typing import Any

from treadle.kernel.deciding import Deciding
from treadle.kernel.state import Token
from treadle.model.ids import RunId
from treadle.model.states import Mode, RunStatus

Json = Any


def record(d: Deciding, token: Token, output: Json, child: RunId | None = None) -> None:
    """Record how to undo a completed visit."""
    if d.graph.definition.compensation == "off" or d.inherited:
        return
    d.compensation_recorded(
        token.id, token.node, token.path, token.frames, input=token.input, output=output, child=child
    )


def record_deferred(d: Deciding, token: Token) -> None:
    """Record how to undo work that succeeded while the run was paused: it has happened, although it was not routed."""
    item = d.state.deferred.get(token.id)
    if item is None or item.error is not None or item.inherited or token.mode is Mode.COMPENSATION:
        return
    if item.kind == "child" and item.status != RunStatus.COMPLETED:
        return
    if d.node(token).definition.compensate is not None:
        record(d, token, item.output)
    elif item.compensable:
        record(d, token, item.output, item.child)
