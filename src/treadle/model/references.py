"""What a run points to outside itself: the entity it is about, the visit that waits for it."""

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
    """Which visit of which run waits for this one."""

    run: RunId
    token: TokenId
    inherits_artifacts: bool = False
    """It may read the artifacts of the run above."""
    catches: bool = False
    """The visit goes on with this run's failure as a result (`on_failure: catch`): it is handled."""
