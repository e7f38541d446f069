"""The artifacts a run sees: its own, then those of the runs it inherits from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from treadle.kernel.state import RunState
from treadle.model.ids import RunId

ReadState = Callable[[RunId], Awaitable[RunState | None]]


class Artifact(Struct, frozen=True):
    """A named blob. `run` is the one that wrote it: the run itself, or one it inherits from."""

    name: str
    digest: str
    size: int
    content_type: str | None
    run: RunId
    by: str | None = None
    """The person who has added it; None: the run has written it."""


async def lineage(state: RunState, read_state: ReadState) -> list[tuple[RunId, dict[str, Any]]]:
    """The names each run binds: first the run's own, then those of ever farther ancestors it inherits from."""
    found = [(state.run, dict(state.artifacts))]
    parent = state.parent
    while parent is not None and parent.inherits_artifacts:
        above = await read_state(parent.run)
        if above is None:
            break
        found.append((above.run, dict(above.artifacts)))
        parent = above.parent
    return found


async def artifacts_of(state: RunState, read_state: ReadState) -> dict[str, Artifact]:
    """Name → artifact. If several runs bind a name, the nearest one wins."""
    found: dict[str, Artifact] = {}
    for run, bound in await lineage(state, read_state):
        for name, facts in bound.items():
            found.setdefault(name, Artifact(name=name, run=run, **facts))
    return dict(sorted(found.items()))
