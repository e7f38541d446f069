"""The base of all events."""

from __future__ import annotations

from msgspec import Struct


class Event(Struct, tag_field="type", array_like=True, gc=False):
    """One line of history. Stored as an array: a new field is appended with a default, never inserted."""

    seq: int
    at: int

    @property
    def type(self) -> str:
        """The stored name, e.g. `token.created`."""
        return str(self.__struct_config__.tag)
