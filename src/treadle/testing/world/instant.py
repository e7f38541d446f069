"""Drives a coroutine that never waits, without an event loop: how the world talks to the memory store."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Wait(Protocol):
    """Drives what somebody would await to its result."""

    def __call__(self, work: Awaitable[T], /) -> T: ...


def instantly(work: Awaitable[T]) -> T:
    """The result of a coroutine that finishes at its first step; one that would suspend is a bug here."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as finished:
        value: T = finished.value
        return value
    steps.close()
    raise RuntimeError("a coroutine of the virtual world tried to wait for the real one")
