"""Starting a run: it exists, and a token stands at every start node."""

from __future__ import annotations

from treadle.kernel import deliver, entity, objections, timers
from treadle.kernel.deciding import Deciding, Refused, RunFails
from treadle.kernel.route import Origin
from treadle.model import commands as c
from treadle.model.errors import Error
from treadle.model.ids import TokenId
from treadle.model.states import RunStatus


def start_run(d: Deciding, command: c.StartRun) -> None:
    """Start the run. The same command again changes nothing; an input against the schema starts nothing."""
    if d.state.status is not RunStatus.CREATED:
        return
    value = command.input if command.input is not None else {}
    objection = objections.to_input(d.graph, value)
    if objection is not None:
        raise Refused(objection.kind, objection.message)
    definition = d.graph.definition
    d.run_started(
        command.run,
        workflow=d.graph.workflow_name,
        version=command.version,
        hash=d.graph.hash,
        input=value,
        entity=command.entity,
        parent=command.parent,
        depth=command.depth,
        depth_max=command.depth_max if command.depth_max is not None else definition.limits.max_nesting_depth,
        idempotency_key=command.idempotency_key,
        trigger=command.trigger,
        seed=command.seed,
        tags=command.tags,
    )
    entity.enter(d)
    if definition.timeout_ms is not None:
        timers.start(d, d.now + definition.timeout_ms, "run")
    origin = Origin(TokenId(0), d.graph.start[0], "root", (), None)
    if len(d.graph.start) > definition.limits.max_tokens_per_run:
        limit = definition.limits.max_tokens_per_run
        text = f"max_tokens_per_run is {limit} and there are {len(d.graph.start)} start nodes"
        raise RunFails(Error("LIMIT_EXCEEDED", text))
    for node in d.graph.start:
        deliver.create(d, node, None, origin, frames=(), path="root", loops=None)
