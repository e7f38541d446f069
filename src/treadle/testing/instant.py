"""Drives a coroutine that never waits, without an event loop: how the world talks to the memory store."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Wait(Protocol):
    """Drives a coroutine to its result."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> T: ...


def instantly(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that finishes at its first step; one that would suspend is a bug here."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        value: T = finished.value
        return value
    coroutine.close()
    raise RuntimeError("a coroutine of the virtual world tried to wait for the real one")
