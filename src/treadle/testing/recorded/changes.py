"""Steps for what operators have changed in a recorded run (6.3 to 6.5): forks, edits, skips, jumps, inputs, versions.

Part of `steps`, whose reading it is given.
"""

from __future__ import annotations

from typing import Any

from treadle.expression.paths import format_path
from treadle.language.document import document_of
from treadle.model import events as e
from treadle.model.definition import Workflow
from treadle.model.ids import Frame
from treadle.testing.recorded.reading import RecordedReading, has_failed
from treadle.testing.world.projection import Visit

Json = Any
Step = dict[str, Json]

POINT = "the point"
"""Stands in a fork step for the sequence number, until the play of what comes before has told it."""


def steps(reading: RecordedReading, event: e.RunForked) -> list[Step] | None:
    """The fork; then its origin stands still, so that it takes no outcomes from the fork."""
    if not event.point and not (event.changes or {}).get("state"):
        return None  # an ordinary start
    asked = dict(event.changes or {})
    found: list[Step] = []
    if asked.get("version") is not None:
        number, is_new = reading.versions.number(reading.recorded.workflow.workflow, asked["version"])
        found += [_deploy(reading, asked["version"])] if is_new else []
        asked["version"] = number
    visits = reading.projection.visits
    told: Step = {
        "input": asked.get("input"),
        "state": asked.get("state"),
        "outputs": {str(visits[token]): value for token, value in event.outputs},
        "version": asked.get("version"),
    }
    kept = {key: value for key, value in told.items() if value not in (None, {})}
    fork: Step = {"at": POINT}
    if kept:
        fork["changes"] = kept
    if event.inherit_compensation:
        fork["inherit_compensation"] = True
    entity = reading.recorded.started.entity
    if entity is not None:
        fork["entity"] = entity_of(entity)
    return [*found, {"fork": fork}]


def entity_of(entity: Any) -> Step:
    """An entity as a scenario writes it."""
    told = {"id": entity.id, "type": entity.type, "name": entity.name, "attributes": entity.attributes}
    told["section"] = entity.section
    return {key: value for key, value in told.items() if value is not None}


def edit(reading: RecordedReading, event: e.ContextUpdated) -> Step | None:
    """An operator's write. What a fork has changed is in its step."""
    if event.by is None or any(isinstance(one, e.RunForked) for one in reading.recorded.decision(event)):
        return None
    writes = {format_path(path).removeprefix("$."): value for path, value in event.writes}
    if event.scope is None:
        return {"edit": {"writes": writes}}
    inside = _inside(reading, event.scope)
    chosen = reading.addressed("edit", inside.token, lambda visit: visit.live, "branch")
    return {**chosen, "edit": {"writes": writes, **chosen["edit"]}}


def _inside(reading: RecordedReading, scope: Frame) -> Visit:
    """A visit whose scope this is."""
    visits = [visit for visit in reading.projection.visits.values() if scope in visit.frames]
    return max(visits, key=lambda visit: (visit.frames[-1] == scope, visit.live, visit.token))


def skip(reading: RecordedReading, event: e.TokenSkipped) -> Step:
    """An operator has completed a visit."""
    step = reading.addressed("skip", event.token, _changeable, "visit")
    step["skip"]["output"] = event.output
    return step


def jump(reading: RecordedReading, event: e.TokenJumped) -> Step:
    """An operator has sent a visit somewhere else."""
    step = reading.addressed("jump", event.token, _changeable, "visit")
    step["jump"]["to"] = event.to
    return step


def set_input(reading: RecordedReading, event: e.TokenInputSet) -> Step:
    """An operator has given further attempts an input."""
    step = reading.addressed("set_input", event.token, _changeable, "visit")
    step["set_input"]["input"] = event.input
    return step


def _changeable(visit: Visit) -> bool:
    return visit.live or has_failed(visit)


def migrate(reading: RecordedReading, event: e.RunMigrated) -> list[Step] | None:
    """Another version, which is deployed first. One that a fork has begun with is in its step, and one that a queued
    run was given is the one it starts with."""
    decision = reading.recorded.decision(event)
    if any(isinstance(one, e.RunForked) for one in decision) or event.seq < reading.recorded.started.seq:
        return None
    number, is_new = reading.versions.number(reading.recorded.workflow.workflow, event.to)
    step: Step = {"migrate": {"to": number, **({"nodes": event.nodes} if event.nodes else {})}}
    return [_deploy(reading, event.to), step] if is_new else [step]


def _deploy(reading: RecordedReading, version: int) -> Step:
    return {"deploy": definition_of(reading.recorded.versions[version])}


def definition_of(workflow: Workflow) -> Json:
    """The definition as a scenario deploys it: runs are migrated by steps alone."""
    document = document_of(workflow)
    document.pop("on_deploy", None)
    return document
