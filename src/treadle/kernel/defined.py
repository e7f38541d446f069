"""The definition that a visit's attempt goes by: of its node, or after a migration of the node it was begun at.

An attempt, gate or wait that was under way when its run was migrated ends under the old definition: its form, timeout,
`output_schema` and `output_mapping`, and the task if its worker is lost. Everything else is the run's graph (6.5).
"""

from __future__ import annotations

from treadle.graph.execution_graph import GraphNode
from treadle.kernel.state import RunState, Token


def defining(state: RunState, token: Token) -> GraphNode:
    """The node whose definition the visit's attempt was begun under."""
    if token.under is None:
        return state.graph.nodes[token.node]
    version, ref = token.under
    return state.graph.at_version(version).nodes[ref]
