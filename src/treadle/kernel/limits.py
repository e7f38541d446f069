"""The limits of a run on how many visits it may make, and the error of a run that asks for more."""

from __future__ import annotations

from treadle.graph.execution_graph import GraphTransition
from treadle.kernel.deciding import Deciding, RunFails
from treadle.kernel.route import Origin
from treadle.model.errors import Error


def check_tokens(d: Deciding, origin: Origin, transition: GraphTransition, count: int) -> None:
    """`max_tokens_per_run` counts every visit ever created."""
    limit = d.graph.definition.limits.max_tokens_per_run
    if d.state.visits + count > limit:
        raise RunFails(limit_error("max_tokens_per_run", limit, d.state.visits + count, origin, transition))


def limit_error(name: str, limit: int, value: int, origin: Origin, transition: GraphTransition) -> Error:
    """The error of a run that asks for more than a limit allows."""
    return Error(
        "LIMIT_EXCEEDED",
        f"{name} is {limit} and transition {transition.id!r} would make it {value}; raise limits.{name} or spawn less",
        origin.node.ref,
        origin.path,
    )
