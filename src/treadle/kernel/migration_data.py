"""Checks of a migration against a run's data: loop counters, state, compensation records, limits (6.5)."""

from __future__ import annotations

from treadle.expression.paths import MISSING
from treadle.kernel.group_state import Group
from treadle.kernel.migration_parts import Obstacles, arrivals, groups, visits
from treadle.kernel.renaming import Renaming
from treadle.kernel.scope import read
from treadle.kernel.state import RunState
from treadle.kernel.view import group_name, scope_chain


def check_loops(state: RunState, names: Renaming, found: Obstacles) -> None:
    """A loop counter without its loop."""
    counted = [(token.loops, token.id) for token in visits(state)]
    counted += [(arrival.loops, arrival.token) for arrival in arrivals(state)]
    counted += [(group.loops, group.origin) for group in groups(state)]
    for loops, visit in counted:
        for name in loops or ():
            t = names.transition(name)
            if t is None or t.definition.loop_max_iterations is None:
                why = "is gone" if t is None else "has no `loop` any more"
                text = f"iterations of transition {name!r} were counted, and it {why}"
                found.add(f"loop {name}", text, visit)


def check_state(state: RunState, names: Renaming, found: Obstacles) -> None:
    """State against the new `state_schema`: the run's own, and what live branches see of theirs."""
    schema = names.new.state_schema
    if schema is None or None not in state.scopes:
        return
    told: set[str] = set()
    for frame in state.scopes:
        if frame is not None and frame[0] not in state.groups:
            continue
        frames = (*state.groups[frame[0]].frames, frame) if frame is not None else ()
        value = read(scope_chain(state, frames), ("state",))
        problem = schema.problem({} if value is MISSING else value)
        if problem is not None and problem not in told:
            told.add(problem)
            where = "state" if frame is None else f"state of branch {frame[1]} of {group_name(state.groups[frame[0]])}"
            found.add(where, f"{where} does not fit the new state_schema: {problem}")


def check_records(state: RunState, names: Renaming, found: Obstacles) -> None:
    """A compensation record whose node lost `compensate`."""
    for record in state.records.values():
        if record.status in ("completed", "skipped") or record.child is not None:
            continue
        node = names.node(record.node)
        if node is None or node.definition.compensate is None:
            why = "is gone" if node is None else "has lost its `compensate`"
            text = f"a completed visit of {record.node!r} could not be undone any more: the node {why}"
            found.add(f"compensation of {record.node}", text, record.token)


def check_limits(state: RunState, names: Renaming, found: Obstacles) -> None:
    """Limits of the new version that the run exceeds already."""
    limits = names.new.definition.limits
    if state.visits > limits.max_tokens_per_run:
        text = f"max_tokens_per_run is {limits.max_tokens_per_run}, and the run has had {state.visits} visits"
        found.add("limit max_tokens_per_run", text)
    for group in groups(state):
        widest = _widest(group)
        if group.replicated and widest > limits.max_spawn_count:
            text = f"max_spawn_count is {limits.max_spawn_count}, and group {group_name(group)!r} has {widest} branches"
            found.add("limit max_spawn_count", text)
    calls = [token for token in visits(state) if token.child is not None]
    if state.parent is None and calls and limits.max_nesting_depth < 1:
        for token in calls:
            text = f"max_nesting_depth is {limits.max_nesting_depth}, and a child run is under way at {token.node!r}"
            found.add("limit max_nesting_depth", text, token.id)


def _widest(group: Group) -> int:
    """The most branches that one transition has started in the group."""
    if not group.bounds:
        return group.total
    return max(end - begin for begin, end in zip((0, *group.bounds), group.bounds, strict=False))
