"""The view of an expression: a token's scope by name, without saying how the scope is kept.

The kernel implements `View` over layered scopes; `DictView` is the plain one, for task steps, output mappings and
tests. Values that a view returns are shared: their receiver must not change them.
"""

from __future__ import annotations

from typing import Any, Protocol

from treadle.expression.paths import Path, get_in

CEL_BYTES_MAX = 4 * 1024 * 1024
"""Bytes of JSON that one evaluation of CEL may read, unless an operator's setting says otherwise. The library copies
all of it, about 10 ms per MB."""


class View(Protocol):
    """The three questions an expression may ask. Roots are `state`, `input`, `nodes`, item variables …"""

    def get(self, path: Path) -> Any:
        """The value at a path whose first step is a root, or MISSING; `()` is the object of all roots."""

    def root(self, name: str, keys: frozenset[str] | None) -> Any:
        """A root as plain JSON, or MISSING. If `keys` is given, no other key of it will be looked at."""

    @property
    def bytes_max(self) -> int:
        """How much data one evaluation may read."""

    def tokens_at(self, node: str) -> int:
        """How many live tokens of the acting token's item are at a node (A3)."""


class DictView:
    """A view of one JSON value, as a rule an object of roots. There is no marking in it."""

    __slots__ = ("_value", "bytes_max")

    def __init__(self, value: Any, bytes_max: int = CEL_BYTES_MAX) -> None:
        self._value = value
        self.bytes_max = bytes_max

    def get(self, path: Path) -> Any:
        return get_in(self._value, path)

    def root(self, name: str, keys: frozenset[str] | None) -> Any:
        return only_keys(get_in(self._value, (name,)), keys)

    def tokens_at(self, node: str) -> int:  # noqa: ARG002
        return 0


def only_keys(value: Any, keys: frozenset[str] | None) -> Any:
    """An object reduced to `keys`; anything else, or with no keys named, as it is."""
    if keys is None or not isinstance(value, dict):
        return value
    return {key: value[key] for key in keys if key in value}
