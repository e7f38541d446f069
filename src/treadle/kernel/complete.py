"""Completing a visit whose work has succeeded: apply its output, choose the transitions that follow, then end the visit
or let it wait at a join."""

from __future__ import annotations

from typing import Any

from treadle.kernel import cancel, entity, fan_out, records, standing
from treadle.kernel.deciding import Deciding, RunFails
from treadle.kernel.defined import defining
from treadle.kernel.failure import fail_token
from treadle.kernel.finish import terminate
from treadle.kernel.join_first import choose_by_end
from treadle.kernel.join_verdict import live_branches
from treadle.kernel.members import SIBLINGS
from treadle.kernel.route import Origin, RoutingFailed, choose, no_match
from treadle.kernel.short_ways import moves
from treadle.kernel.state import Token
from treadle.kernel.view import TokenView
from treadle.kernel.writing import BadOutput, apply_output
from treadle.model.errors import Error

Json = Any


def complete_visit(d: Deciding, token: Token, output: Json, tries: int = 0) -> None:
    """The visit's task has succeeded with this output."""
    node = d.graph.nodes[token.node]
    defined = node if token.under is None else defining(d.state, token)
    if token.timers:
        cancel.clear_timers(d, token)
    if defined.output_schema is not None and (problem := defined.output_schema.problem(output)) is not None:
        fail_token(d, token, Error("SCHEMA", f"output of {node.ref!r}: {problem}"))
        return
    if defined.outputs or node.read:
        try:
            apply_output(d, token, output)
        except BadOutput as bad:
            fail_token(d, token, bad.error)
            return
    if node.next is not None and d.state.entity is None and moves.hop(d, token, node.next, output, tries):
        return
    if node.meets is not None and d.state.entity is None and moves.meet(d, token, node.meets, output, tries):
        return
    if node.definition.terminates is not None:
        leave_behind(d, token, output)
        terminate(d, token, output, tries, node.definition.terminates)
        return
    holds = token.mutex if node.definition.mutex is not None and node.definition.mutex.keep else None
    origin = Origin(token.id, node, token.path, token.frames, token.loops, holds=holds, attached=True, output=output)
    try:
        firings = _chosen(d, token, origin)
    except RoutingFailed as failed:
        fail_token(d, token, failed.error)
        return
    except RunFails:  # over a limit: nothing follows, but the visit itself has succeeded and may have to be undone
        leave_behind(d, token, output)
        d.token_completed(token.id, output, tries)
        raise
    leave_behind(d, token, output)
    _leave(d, token, origin, firings, output, tries)


def leave_behind(d: Deciding, token: Token, output: Json) -> None:
    """Note what a successful visit leaves behind, whichever way it goes on: the record to undo it, and its entity's
    place."""
    node = d.node(token)
    if node.definition.compensate is not None:
        records.record(d, token, output)
    if d.state.entity is not None:
        entity.outcome(d, node, token.id, success=True)


def _chosen(d: Deciding, token: Token, origin: Origin) -> list[fan_out.Firing]:
    node = origin.node
    if not node.success:
        return []
    view = TokenView(d.state, token.frames, None, None, token)
    matches = choose(d, view, node.success, origin)
    if not matches:
        if node.definition.on_no_match == "error":
            raise no_match(origin)
        return []
    return fan_out.plan(d, view, origin, matches)


def _leave(d: Deciding, token: Token, origin: Origin, firings: list[fan_out.Firing], output: Json, tries: int) -> None:
    """End the visit and dispatch, or dispatch and let it wait where a join holds it."""
    frames = token.frames
    at_join = any(f.transition.site is not None or f.transition.target.definition.join is not None for f in firings)
    if not at_join:
        d.token_completed(token.id, output, tries)
        fan_out.carry_out(d, origin._replace(attached=False), firings)
    else:
        fan_out.carry_out(d, origin, firings)
        if token.id not in d.state.tokens:
            return  # its own transition has cancelled it
        if token.arrivals:
            awaiting = _awaiting(d, token)
            detail = {"at": _places(d, token)}
            d.token_waiting(token.id, SIBLINGS, awaiting=awaiting, output=output, detail=detail, tries=tries)
        else:
            d.token_completed(token.id, output, tries)
    if frames:
        d.touch(frames)
        if not firings or at_join:
            choose_by_end(d, frames)


def _places(d: Deciding, token: Token) -> list[str]:
    """The joins the visit waits at: nearly always one."""
    if len(token.arrivals) == 1:
        return [d.state.arrivals[token.arrivals[0]].target]
    return sorted({d.state.arrivals[a].target for a in token.arrivals})


def _awaiting(d: Deciding, token: Token) -> int | None:
    arrival = d.state.arrivals[token.arrivals[0]]
    if arrival.group is None:
        return None
    group = d.state.groups[arrival.group]
    return live_branches(d, group, standing.site_of(group, arrival.target))
