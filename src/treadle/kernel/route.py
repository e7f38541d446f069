"""Routing: choosing the transitions that a visit's outcome takes, by tiers, conditions and loops (2.2). `fan_out`
carries them out."""

from __future__ import annotations

from typing import Any, NamedTuple

from treadle.expression.conditions import Unevaluable
from treadle.graph.execution_graph import GraphNode, GraphTransition
from treadle.kernel.deciding import Deciding
from treadle.kernel.view import TokenView
from treadle.model.errors import Error
from treadle.model.ids import Frames, TokenId


class Origin(NamedTuple):
    """The start of a dispatch: a visit that has ended, or a fan-in that failed before its target ran (token 0)."""

    token: TokenId
    node: GraphNode
    path: str
    frames: Frames
    loops: dict[str, int] | None
    last_error: Error | None = None
    holds: str | None = None
    """A mutex the visit keeps on its way to a node that keeps it too."""
    attached: bool = False
    """The visit itself will wait where its tokens arrive at joins; otherwise an arrival stands alone (token 0)."""
    output: Any = None
    """The visit's output, for a canvas collector."""


class RoutingFailed(Exception):
    """The visit cannot be routed: its token fails and is not retried."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        self.error = error


def choose(
    d: Deciding, view: TokenView, tiers: tuple[tuple[GraphTransition, ...], ...], origin: Origin
) -> list[GraphTransition]:
    """All matching transitions of the first tier that has any; only the first of them for `fan_out: first_match`."""
    first_only = origin.node.definition.fan_out == "first_match"
    for tier in tiers:
        found = []
        for transition in tier:
            if matches(d, view, transition, origin):
                found.append(transition)
                if first_only:
                    break
        if found:
            return found
    return []


def condition_holds(d: Deciding, view: TokenView, transition: GraphTransition, origin: Origin) -> bool:
    """Whether the transition's own condition is true here. An unevaluable one is not, and an event says so. Raises
    RoutingFailed where the data is too large to tell."""
    if transition.condition is None:
        return True
    verdict = transition.condition(view)
    if isinstance(verdict, Unevaluable):
        if verdict.limit:
            text = f"condition of transition {transition.id!r}: {verdict.reason}"
            raise RoutingFailed(Error("LIMIT_EXCEEDED", text, origin.node.ref, origin.path))
        d.condition_unevaluable(transition.id, verdict.reason, token=origin.token or None)
        return False
    return verdict


def matches(d: Deciding, view: TokenView, transition: GraphTransition, origin: Origin) -> bool:
    """Whether the transition may be followed: its loop is not spent and its condition holds."""
    limit = transition.definition.loop_max_iterations
    if limit is not None and (origin.loops or {}).get(transition.id, 0) >= limit:
        return False
    return condition_holds(d, view, transition, origin)


def no_match(origin: Origin) -> RoutingFailed:
    """The failure of a node with outgoing transitions none of which matches (2.2)."""
    return RoutingFailed(
        Error(
            "NO_MATCHING_TRANSITION",
            f"no transition out of {origin.node.ref!r} matches; add an unconditional one at the lowest priority, "
            "or set on_no_match: end",
            origin.node.ref,
            origin.path,
        )
    )
