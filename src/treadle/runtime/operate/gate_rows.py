"""Rows of open gates against the state of their run, for `fsck`."""

from __future__ import annotations

from typing import Any

from treadle.kernel.lifecycle import LIVE
from treadle.kernel.on_gate import noted
from treadle.kernel.state import RunState
from treadle.model.ids import RUN_GATE, TokenId
from treadle.model.states import GateState, RunStatus
from treadle.store.gates import GATE_COLUMNS, changing


def gate_problems(state: RunState, rows: dict[TokenId, tuple[Any, ...]]) -> list[str]:
    """The differences; `rows` has the values of `GATE_COLUMNS` by visit. A queued fork opens the gates it has inherited
    when it starts."""
    wanted = {
        token.id: changing(noted(token))
        for token in state.tokens.values()
        if token.gate is GateState.OPEN and token.state in LIVE
    }
    open_now = {*wanted, *({RUN_GATE} if state.has_gate else set())}  # version 0.1 made no row for it
    lacking = wanted.keys() - rows if state.status is not RunStatus.QUEUED else set()
    missing = [f"the open gate of visit {token} has no row" for token in sorted(lacking)]
    extra = [f"there is a gate for visit {token}, which has none open" for token in sorted(rows.keys() - open_now)]
    other = [
        f"the gate of visit {token} has {name} {told!r}, its row says {kept!r}"
        for token, values in wanted.items()
        for name, told, kept in zip(GATE_COLUMNS, values, rows.get(token, values), strict=True)
        if told != kept
    ]
    return missing + extra + other
