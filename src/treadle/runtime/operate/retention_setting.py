"""The operator's rules for keeping finished runs; `retention` carries them out."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Keep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long finished runs are kept; None means no limit."""

    age_ms: int | None = None
    """A run is dropped this long after it has ended, together with all runs it started."""
    count: int | None = None
    """This many finished runs of each workflow are kept, those begun last; children are not counted."""
    history_age_ms: int | None = None
    """This long after its end, a run keeps only its first and last event, and no artifacts."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"Keep.{name} cannot be negative")


class KeepRules(Struct, frozen=True):
    """The rules of all workflows."""

    usual: Keep = Keep()
    of: Mapping[str, Keep] = {}

    def __getitem__(self, workflow: str) -> Keep:
        return self.of.get(workflow, self.usual)

    def shortest(self, field: str) -> int | None:
        """The shortest limit with that name; None if no rule has one."""
        found = [getattr(keep, field) for keep in (self.usual, *self.of.values())]
        return min((limit for limit in found if limit is not None), default=None)
