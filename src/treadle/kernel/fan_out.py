"""Carrying out a dispatch: counting, limits, groups, frames, paths, lazy spawning (2.2, 2.3).

A dispatch is all or nothing, so it has two halves. `plan` only reads: it evaluates counts and collections and checks
every limit, and either returns what will be done or raises. `carry_out` only writes: it opens the groups and delivers
the tokens.

Numbering within one dispatch:

    visit of A ──┬─ t1 (spawn 3) → B   group g1: branches 0 1 2   paths root.A.0 root.A.1 root.A.2
                 └─ t2           → C                              path  root.A.3

If some join names A, all of it is inside one more group, whose branches are the transitions.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

from treadle.errors import DataTooLarge, EvaluationError
from treadle.graph.execution_graph import GraphTransition
from treadle.kernel import cancel, deliver
from treadle.kernel.deciding import Deciding, RunFails
from treadle.kernel.limits import check_tokens, limit_error
from treadle.kernel.route import Origin, RoutingFailed
from treadle.kernel.spawning import spawn_branches
from treadle.kernel.view import TokenView, item_of
from treadle.model.errors import Error
from treadle.model.ids import Frames, GroupId

Json = Any


class Firing(NamedTuple):
    """One transition about to fire."""

    transition: GraphTransition
    copies: int
    items: list[Json] | None
    grouped: bool


def plan(d: Deciding, view: TokenView, origin: Origin, matches: list[GraphTransition]) -> list[Firing]:
    """Plan the firing of the matching transitions. Raises RoutingFailed or RunFails, and then nothing has happened."""
    firings = [_firing(d, view, origin, transition) for transition in matches]
    count_visits(d, origin, firings)
    _check_strict(d, origin, firings)
    return firings


def _check_strict(d: Deciding, origin: Origin, firings: list[Firing]) -> None:
    """Under `strict` a join whose group is not around fails the token instead of being passed through (2.5)."""
    if not d.graph.definition.strict:
        return
    around = {name for identity, _ in origin.frames for name in d.state.groups[identity].names}
    around.add(f"node:{origin.node.ref}")  # of the group it opens; if no join names the node, nobody asks for it
    for firing in firings:
        site = firing.transition.site
        if site is None or site.key in around or deliver.passes_silently(d, site):
            continue
        if site.key in (f"transition:{firing.transition.id}", f"name:{firing.transition.definition.sibling_group}"):
            continue
        raise RoutingFailed(
            Error(
                "JOIN_MISMATCH",
                f"transition {firing.transition.id!r} joins {site.sync.sibling_group!r}, a group this token is not in",
                origin.node.ref,
                origin.path,
            )
        )


def count_visits(d: Deciding, origin: Origin, firings: list[Firing]) -> None:
    """Check that the visits these firings make fit under the limit together."""
    count = sum(firing.copies for firing in firings if _visits_at_once(d, origin, firing))
    check_tokens(d, origin, firings[0].transition, count)


def _visits_at_once(d: Deciding, origin: Origin, firing: Firing) -> bool:
    """Whether a firing makes visits at once. A token that comes to a join makes none: the join counts when it fires. A
    token that is in no group the join names passes it, and counts."""
    t = firing.transition
    if t.target.definition.join is not None:
        return False
    if t.site is None:
        return True
    opens = firing.grouped or t.site.key == f"node:{origin.node.ref}"
    return not opens and deliver.answering(d, origin.frames, t.site.key) is None


def _firing(d: Deciding, view: TokenView, origin: Origin, transition: GraphTransition) -> Firing:
    items = _items(view, origin, transition)
    count = len(items) if items is not None else _count(view, origin, transition)
    limit = d.graph.definition.limits.max_spawn_count
    if count > limit:
        raise RunFails(limit_error("max_spawn_count", limit, count, origin, transition))
    grouped = transition.replicates or transition.definition.sibling_group is not None
    return Firing(transition, count, items, grouped)


def _items(view: TokenView, origin: Origin, transition: GraphTransition) -> list[Json] | None:
    if transition.collection is None or transition.definition.foreach is None:
        return None
    try:
        value = transition.collection.evaluate(view)
    except EvaluationError as problem:
        raise RoutingFailed(_error("INVALID_COLLECTION", str(problem), origin)) from None
    if isinstance(value, list):
        return value
    policy = transition.definition.foreach.on_missing
    if policy == "empty":
        return []
    if policy == "single":
        return [value]
    raise RoutingFailed(
        _error(
            "INVALID_COLLECTION",
            f"{transition.definition.foreach.collection} of transition {transition.id!r} is not an array but "
            f"{'missing or null' if value is None else type(value).__name__}; "
            "write an array there, or set foreach.on_missing",
            origin,
        )
    )


def _count(view: TokenView, origin: Origin, transition: GraphTransition) -> int:
    if transition.spawn is None:
        return transition.definition.spawn_count if transition.definition.spawn_count is not None else 1
    try:
        value = transition.spawn.evaluate(view)
    except EvaluationError as problem:
        kind = problem.kind if isinstance(problem, DataTooLarge) else "INVALID_SPAWN_COUNT"
        raise RoutingFailed(_error(kind, str(problem), origin)) from None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 0:
        message = f"spawn_count of transition {transition.id!r} gave {value!r}; it must be a whole number ≥ 0"
        raise RoutingFailed(_error("INVALID_SPAWN_COUNT", message, origin))
    return int(value)


def _error(kind: str, message: str, origin: Origin) -> Error:
    return Error(kind, message, origin.node.ref, origin.path)


def carry_out(d: Deciding, origin: Origin, firings: list[Firing]) -> None:
    """Open the groups and deliver every token."""
    if not firings:
        return
    for firing in firings:
        if firing.transition.definition.cancels is not None:
            _cancel_for(d, firing.transition, origin)
            if _is_withdrawn(d, origin):
                return
            count_visits(d, origin, firings)  # a join may have fired meanwhile
    if len(firings) == 1 and not firings[0].grouped and not origin.node.forks:
        deliver.deliver(d, firings[0].transition, origin, origin.frames, origin.path)
        return
    bundles = _bundles(firings)
    fork = _open_fork(d, origin, bundles) if origin.node.forks else None
    ordinal = 0
    for branch, bundle in enumerate(bundles):
        frames = (*origin.frames, (fork, branch)) if fork is not None else origin.frames
        if bundle[0].grouped:
            _spawn(d, origin, bundle, frames, ordinal)
        else:
            path = f"{origin.path}.{origin.node.ref}.{ordinal}"
            deliver.deliver(d, bundle[0].transition, origin, frames, path)
        ordinal += _tokens(bundle)


def _cancel_for(d: Deciding, t: GraphTransition, origin: Origin) -> None:
    """Cancel what `cancels` of a firing transition names."""
    spec = t.definition.cancels
    assert spec is not None
    by = f"transition {t.id}"
    if spec.nodes:
        cancel.cancel_nodes(d, spec.nodes, item_of(d.state, origin.frames), by, spared=origin.token)
    for name in spec.groups:
        d.cancel_groups(d, name, origin.frames, spec.join, by, origin.token)


def _is_withdrawn(d: Deciding, origin: Origin) -> bool:
    """Whether the transition's `cancels` has cancelled its own visit, or the branch around it."""
    if origin.attached and origin.token not in d.state.tokens:
        return True
    return any(branch in d.state.groups[group].failed for group, branch in origin.frames)


def _bundles(firings: list[Firing]) -> list[list[Firing]]:
    """Firings with one declared group name go together; every other one is on its own."""
    bundles: list[list[Firing]] = []
    named: dict[str, list[Firing]] = {}
    for firing in firings:
        name = firing.transition.definition.sibling_group
        if name is not None and name in named:
            named[name].append(firing)
            continue
        bundles.append([firing])
        if name is not None:
            named[name] = bundles[-1]
    return bundles


def _tokens(firings: list[Firing]) -> int:
    return sum(firing.copies for firing in firings)


def _open_fork(d: Deciding, origin: Origin, bundles: list[list[Firing]]) -> GroupId:
    """Open the outer group of a visit whose node some join names: one branch for each transition or bundle it
    starts."""
    identity = d.group_opened(
        [f"node:{origin.node.ref}"],
        origin.token,
        origin.node.ref,
        origin.path,
        origin.frames,
        total=len(bundles),
        transitions=[bundle[0].transition.id for bundle in bundles],
        loops=origin.loops,
        bounds=list(range(1, len(bundles) + 1)),
    )
    d.mark(identity)
    return identity


def _spawn(d: Deciding, origin: Origin, firings: list[Firing], frames: Frames, ordinal: int) -> None:
    """One replicated or named group and its tokens."""
    first = firings[0].transition.definition
    shared = first.foreach is not None and first.foreach.by_item
    names = [f"name:{first.sibling_group}"] if first.sibling_group is not None else []
    identity = d.group_opened(
        names + [f"transition:{firing.transition.id}" for firing in firings],
        origin.token,
        origin.node.ref,
        origin.path,
        frames,
        total=firings[0].copies if shared else _tokens(firings),
        transitions=[firing.transition.id for firing in firings],
        items=_all_items(firings, shared),
        item_var=first.foreach.item_var if first.foreach is not None else None,
        replicated=any(firing.transition.replicates for firing in firings),
        open=any(firing.transition.definition.open for firing in firings),
        max_in_flight=_narrowest(firings),
        ordinal=ordinal,
        shared=shared,
        loops=origin.loops,
        bounds=[] if shared or len(firings) == 1 else list(accumulate(firing.copies for firing in firings)),
        last_error=origin.last_error,
    )
    d.mark(identity)
    group = d.state.groups[identity]
    if group.total == 0:
        d.fan_out_empty(firings[0].transition.id, origin.node.ref, identity)
        d.empty.append(identity)
        return
    spawn_branches(d, group, origin)


def _narrowest(firings: list[Firing]) -> int | None:
    """`max_in_flight` of a group: the smallest any of its transitions asks for."""
    asked = [f.transition.definition.foreach for f in firings if f.transition.definition.foreach is not None]
    return min((foreach.max_in_flight for foreach in asked if foreach.max_in_flight is not None), default=None)


def _all_items(firings: list[Firing], shared: bool) -> list[Json] | None:
    if all(firing.items is None for firing in firings):
        return None
    if shared or len(firings) == 1:
        return firings[0].items
    return [item for f in firings for item in (f.items if f.items is not None else [None] * f.copies)]
