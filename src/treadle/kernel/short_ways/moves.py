"""Short ways of deciding. See the package's docstring."""

from __future__ import annotations

from typing import Any

from treadle.graph.execution_graph import GraphNode, GraphTransition
from treadle.kernel import deliver, standing, timers
from treadle.kernel.deciding import Deciding
from treadle.kernel.group_state import Group
from treadle.kernel.join_first import choose_by_end
from treadle.kernel.join_verdict import live_branches
from treadle.kernel.limits import check_tokens
from treadle.kernel.members import SIBLINGS
from treadle.kernel.route import Origin
from treadle.kernel.short_ways.counting import rests
from treadle.kernel.state import Token
from treadle.model import effects as x

Json = Any


def hand_out(d: Deciding, token: Token, node: GraphNode, value: Json) -> None:
    """For `GraphNode.prompt`: the task goes to an executor of this process, which begins with the commit. Full rule:
    the rest of `begin.dispatch`."""
    attempt = token.attempt + 1
    d.token_dispatched(token.id, attempt, value)
    d.token_started(token.id, attempt)
    d.effects.append(x.RunTask(token.id, attempt, node.ref, value))


def hop(d: Deciding, token: Token, t: GraphTransition, output: Json, tries: int) -> bool:
    """For `GraphNode.next`: the visit completes and the next one begins. Full rule: the rest of
    `complete.complete_visit`. Returns False, and has done nothing, if a limit forbids the visit."""
    if d.state.visits >= d.graph.definition.limits.max_tokens_per_run:
        return False
    d.token_completed(token.id, output, tries)
    frames = token.frames
    target = t.target
    identity = d.token_created(target.ref, token.path, frames, t.id, token.id, token.loops)
    d.ready.append(identity)
    if target.triggers:
        timers.arm(d, d.state.tokens[identity])
    if frames:
        d.touch(frames)
    return True


def meet(d: Deciding, token: Token, t: GraphTransition, output: Json, tries: int) -> bool:
    """For `GraphNode.meets`: the visit waits at a join of a group around it. Full rule: the rest of
    `complete.complete_visit`. Returns False, and has done nothing, if no such group is around or its join is
    decided."""
    frames = token.frames
    site = t.site
    assert site is not None
    group = deliver.answering(d, frames, site.key)
    if group is None:
        return False
    state = standing.site_of(group, t.target.ref)
    if state.status != "open":
        return False
    value = deliver.contribution(d, site, token.id, output, frames, group) if site.merge_source is not None else None
    ref = t.target.ref
    d.join_arrived(token.id, ref, t.id, token.path, frames, group=group.id, value=value, loops=token.loops)
    if site.notices:
        deliver.notice_arrival(d, site, state, group)
    awaiting = len(state.live) if group.spawned == group.total else live_branches(d, group, state)
    d.token_waiting(token.id, SIBLINGS, awaiting=awaiting, output=output, detail={"at": [ref]}, tries=tries)
    if len(frames) > 1:
        d.touch(frames)
        choose_by_end(d, frames)
    elif not rests(group) or d.graph.join_nodes:
        d.touch(frames)
    return True


def begin_all(d: Deciding, group: Group, origin: Origin, t: GraphTransition) -> None:
    """For `GraphTransition.bears`: every branch of a group begins at once, each with a visit of the same node. Full
    rule: the loop of `spawning.spawn_branches`."""
    state = d.state
    limit = d.graph.definition.limits.max_tokens_per_run
    identity, around, stem, ordinal = group.id, group.frames, f"{group.path}.{group.node}.", group.ordinal
    ref, via, by = t.target.ref, t.id, origin.token or None
    why = t.condition.text if t.condition is not None else None
    loops, error = origin.loops, origin.last_error
    for index in range(group.spawned, group.total):
        if state.visits >= limit:
            check_tokens(d, origin, t, 1)  # it may come later than its group was counted
        frames = (*around, (identity, index))
        path = f"{stem}{ordinal + index}"
        if why is None and error is None:  # nearly always, and a call without keywords is the quicker one
            d.ready.append(d.token_created(ref, path, frames, via, by, loops))
        else:
            d.ready.append(d.token_created(ref, path, frames, via, by, loops, why=why, last_error=error))
