"""What an operator says about finished runs; `retention` carries it out."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Keep(Struct, frozen=True, kw_only=True):
    """How long finished runs are kept; what is None has no limit."""

    age_ms: int | None = None
    """A run is dropped so long after it has ended, together with what it started."""
    count: int | None = None
    """Of each workflow so many finished runs are kept, those begun last; children are not counted."""
    history_age_ms: int | None = None
    """So long after its end a run keeps only its first and last event, and no artifacts."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"Keep.{name} cannot be negative")


class KeepRules(Struct, frozen=True):
    """What is kept of which workflow."""

    usual: Keep = Keep()
    of: Mapping[str, Keep] = {}

    def __getitem__(self, workflow: str) -> Keep:
        return self.of.get(workflow, self.usual)

    def shortest(self, field: str) -> int | None:
        """The shortest of all limits of a name; None if there is none."""
        found = [getattr(keep, field) for keep in (self.usual, *self.of.values())]
        return min((limit for limit in found if limit is not None), default=None)
