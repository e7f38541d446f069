"""Events of runs that wait for their start (6.7). `events` has them all."""

from __future__ import annotations

from typing import Any

from treadle.model.event import Event
from treadle.model.ids import RunId
from treadle.model.references import EntityRef, ParentLink

Json = Any


class RunQueued(Event, tag="run.queued"):
    """The run exists and waits for its start (6.7). Of a batch also every further start that joins it. The fields up to
    `priority` are those of `RunStarted`."""

    run: RunId
    workflow: str
    version: int
    hash: str
    input: Json
    entity: EntityRef | None = None
    parent: ParentLink | None = None
    depth: int = 0
    depth_max: int = 10
    idempotency_key: str | None = None
    trigger: Json = None
    seed: int = 0
    tags: tuple[str, ...] = ()
    trace: dict[str, str] | None = None
    priority: int = 0
    why: str = "concurrency"
    """concurrency | rate | debounce | batch"""
    due: int | None = None
    """When it stops waiting for further starts; None: it waits for its turn."""
    alias: RunId | None = None
    """Of a child that joined a batch: the run that its parent waits for."""
