"""Runs a coroutine that never waits, without an event loop: the world calls the memory store with it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Wait(Protocol):
    """Runs an awaitable to its result."""

    def __call__(self, work: Awaitable[T], /) -> T: ...


def instantly(work: Awaitable[T]) -> T:
    """The result of a coroutine that finishes at its first step; one that suspends is a bug here."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as finished:
        value: T = finished.value
        return value
    steps.close()
    raise RuntimeError("a coroutine of the virtual world tried to wait for the real one")
