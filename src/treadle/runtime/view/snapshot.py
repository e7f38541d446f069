"""The state of a run at one event as plain data. Pure.

Owns how a `RunState` is shown. Promises that nothing of the state is shared with the answer that could still change,
and that two equal states give equal answers.
"""

from __future__ import annotations

from typing import Any

from treadle.kernel.scope import Scope
from treadle.kernel.state import RunState, Token
from treadle.model.ids import Frame
from treadle.model.states import GateState, Mode
from treadle.runtime.view.detail import counts_of
from treadle.runtime.view.snapshot_shapes import (
    StateGate,
    StateGroup,
    StateJoin,
    StateScope,
    StateTimer,
    StateView,
    StateVisit,
)
from treadle.runtime.view.waits import reason_of

Json = Any


def snapshot_of(state: RunState, at: int) -> StateView:
    """The state as data; `at` is the instant of its last event."""
    tokens = [state.tokens[identity] for identity in sorted(state.tokens)]
    return StateView(
        run=state.run,
        seq=state.seq,
        at=at,
        status=state.status.value,
        input=state.input,
        output=state.output,
        error=state.error,
        scope=_scope(None, state.scopes[None]),
        branches=[_scope(frame, scope) for frame, scope in sorted(state.scopes.items(), key=_frame) if frame],
        visits=[_visit(token) for token in tokens],
        counts=counts_of(state),
        groups=[_group(state, group) for group in sorted(state.groups)],
        joins=_joins(state),
        gates=[_gate(token) for token in tokens if token.gate is GateState.OPEN],
        timers=[
            StateTimer(timer.id, timer.due, timer.purpose, timer.token, group=timer.group, target=timer.target)
            for timer in sorted(state.timers.values(), key=lambda each: each.id)
        ],
        signals=[
            {"signal": signal.id, "name": signal.name, "key": signal.key, "data": signal.data, "at": signal.at}
            for signal in state.signals.values()
        ],
    )


def _frame(entry: tuple[Frame | None, Scope]) -> tuple[int, int]:
    return entry[0] or (0, 0)


def _scope(frame: Frame | None, scope: Scope) -> StateScope:
    group, branch = frame if frame is not None else (None, None)
    return StateScope(group, branch, scope.plain("state"), scope.plain("output"), scope.plain("nodes"))


def _visit(token: Token) -> StateVisit:
    reason = reason_of(token)
    return StateVisit(
        visit=token.id,
        node=token.node,
        path=token.path,
        status=token.state.value,
        waiting_for=reason.value if reason is not None else None,
        attempt=token.attempt,
        attempts=token.attempts,
        error=token.error,
        detail=token.detail,
        compensation=token.mode is Mode.COMPENSATION,
    )


def _group(state: RunState, identity: Any) -> StateGroup:
    group = state.groups[identity]
    return StateGroup(
        group=group.id,
        names=[name.partition(":")[2] for name in group.names],
        node=group.node,
        path=group.path,
        open=group.open,
        total=group.total,
        begun=group.spawned,
        failed=sorted(group.failed),
    )


def _joins(state: RunState) -> list[StateJoin]:
    found = [
        StateJoin(
            join=f"{group.id}:{site.target}",
            node=site.target,
            group=group.id,
            status=site.status,
            arrived=sorted(site.waiting),
            live=len(site.live),
        )
        for group in (state.groups[identity] for identity in sorted(state.groups))
        for site in group.sites
    ]
    for (node, item), join in sorted(state.node_joins.items(), key=lambda entry: (entry[0][0], entry[0][1] or (0, 0))):
        name = node if item is None else f"{node}@{item[0]}.{item[1]}"
        visits = [state.arrivals[arrival].token for arrival in join.held]
        found.append(StateJoin(name, node, None, "open", sorted(visits), live=0))
    return found


def _gate(token: Token) -> StateGate:
    asked = token.asked.opened if token.asked is not None else None
    claimed = token.detail.get("claimed_by") if isinstance(token.detail, dict) else None
    return StateGate(
        visit=token.id,
        node=token.node,
        title=asked.title if asked is not None else None,
        assign=asked.assign if asked is not None else None,
        claimed_by=claimed,
        opened=asked.at if asked is not None else 0,
        due=asked.due if asked is not None else None,
    )
