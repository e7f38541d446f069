"""References of a run to things outside it: the entity it is about, and the visit that waits for it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.model.ids import RunId, TokenId

Json = Any


class EntityRef(Struct, omit_defaults=True):
    """The entity a run is about, as it was when the run started."""

    id: str
    type: str
    name: str | None = None
    attributes: Json = None
    section: str | None = None


class ParentLink(Struct, omit_defaults=True):
    """The visit, and its run, that waits for this run."""

    run: RunId
    token: TokenId
    inherits_artifacts: bool = False
    """The run may read the artifacts of its parent."""
    catches: bool = False
    """The visit takes this run's failure as a result (`on_failure: catch`), so the failure is handled."""
