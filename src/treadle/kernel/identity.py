"""The facts `_run` and `_visit`: what expressions may read about the run and the visit they belong to (1.5).

Both are made when an expression reads them and are never kept, so a run whose definition names neither pays nothing.
"""

from __future__ import annotations

from typing import Any

from treadle.kernel.members import PENDING
from treadle.kernel.state import RunState, Token
from treadle.model.ids import visit_key

Json = Any


def run_facts(state: RunState) -> dict[str, Json]:
    """`_run`. `started` is in milliseconds since 1970; the entity is as it was when the run started."""
    entity, parent = state.entity, state.parent
    return {
        "id": state.run,
        "key": state.idempotency_key,
        "workflow": state.graph.workflow_name,
        "version": state.version,
        "started": state.started_at,
        "tags": list(state.tags),
        "entity": None
        if entity is None
        else {"id": entity.id, "type": entity.type, "name": entity.name, "attributes": entity.attributes},
        "parent": None if parent is None else {"run": parent.run, "visit": parent.token},
    }


def visit_facts(state: RunState, token: Token) -> dict[str, Json]:
    """`_visit`. For a visit that is about to begin an attempt, `attempt` is that one."""
    return {
        "id": token.id,
        "key": visit_key(state.run, token.id, token.retries),
        "attempt": token.attempt + 1 if token.state is PENDING else token.attempt,
        "path": token.path,
    }
