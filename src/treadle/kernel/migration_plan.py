"""Planning a migration: everything that is in the way of a run going on under another version (6.5).

`obstacles` is a pure function of the run's state, the other version's graph and a mapping of nodes; it changes nothing.
`on_migrate` refuses with its list, and `changes.version` of a fork may ask it, too. One entry stands for one thing that
somebody would have to change: a hundred visits at a node that is gone are one entry.

Visits count that are live, that have failed and may be retried, or that a retry would bring back.
"""

from __future__ import annotations

from collections.abc import Iterator

from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel import migration_data, migration_joins, migration_waits
from treadle.kernel.migration_parts import Obstacle, Obstacles
from treadle.kernel.renaming import Renaming
from treadle.kernel.state import RunState


def obstacles(state: RunState, new: ExecutionGraph, nodes: dict[str, str]) -> list[Obstacle]:
    """Everything in the way of going on under `new`, where `nodes` says which nodes take the place of others. The run
    can be migrated if that is nothing."""
    renaming = Renaming(state.graph, new, nodes)
    found = Obstacles()
    for check in (
        migration_waits.check_nodes,
        migration_joins.check_nesting,
        migration_joins.check_groups,
        migration_joins.check_arrivals,
        migration_waits.check_waits,
        migration_waits.check_answers,
        migration_data.check_loops,
        migration_data.check_state,
        migration_data.check_records,
        migration_data.check_limits,
    ):
        check(state, renaming, found)
    return list(found)


def unknown_nodes(state: RunState, new: ExecutionGraph, nodes: dict[str, str]) -> Iterator[str]:
    """What is wrong with a mapping of nodes: names that one of the versions does not have."""
    for before, after in nodes.items():
        if before not in state.graph.nodes:
            yield f"version {state.version} of {new.workflow_name!r} has no node {before!r} to be mapped"
        if after not in new.nodes:
            yield f"version {new.version} of {new.workflow_name!r} has no node {after!r} to map {before!r} to"
