"""The attempt that user code runs in, for code that has no parameter for it.

    def resize(order):
        for page in order["pages"]:
            if current_attempt().cancelled.is_set():
                return None                      # the result is no longer wanted
            …

Owns the context variable. Promises that it follows the code into coroutines, threads and processes.

Known limit: a thread cannot be killed. When its attempt is stopped or its action times out, `cancelled` is set, its
result is dropped, and until it returns it keeps its place in the pool of threads. A function that may run long asks
`cancelled` now and then, waits with `cancelled.wait(seconds)` instead of sleeping, or says `process: true`: processes
are killed. Async functions need nothing of this: they are cancelled where they wait.
"""

from __future__ import annotations

from contextvars import ContextVar
from threading import Event, Lock
from typing import Any

from msgspec import Struct

from treadle.actions.protocol import AttemptFacts
from treadle.model.spending import together

Json = Any


class CurrentAttempt(Struct, eq=False):
    """One try of one action, seen from inside. An action's next try gets a flag of its own."""

    facts: AttemptFacts
    _cancelled: Event | None = None
    spent: Json = None
    """What `spend` was told so far, {cost, usage}."""

    @property
    def cancelled(self) -> Event:
        """Set when the attempt was stopped or the action has timed out; never unset."""
        with _ONE_AT_A_TIME:  # the working thread and the one that stops it may both ask first
            if self._cancelled is None:
                self._cancelled = Event()
            return self._cancelled


_ONE_AT_A_TIME = Lock()

CURRENT: ContextVar[CurrentAttempt | None] = ContextVar("treadle_attempt", default=None)
"""The attempt of this context; set by its executor."""


def current_attempt() -> CurrentAttempt:
    """The attempt this code runs in; raises `LookupError` outside of one."""
    current = CURRENT.get()
    if current is None:
        raise LookupError("no attempt is running here: current_attempt() is for functions that a task calls")
    return current


def spend(*, cost: float = 0, tokens: int = 0) -> None:
    """Report what this code has used up: money, and tokens of a language model. Several calls add up, and the amounts
    count even if the task fails. Raises `LookupError` outside of an attempt and `ValueError` for an amount that is
    negative or no number."""
    for name, amount in (("cost", cost), ("tokens", tokens)):
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < float("inf"):
            raise ValueError(f"spend({name}=…) takes a number of at least 0, not {amount!r}")
    current = CURRENT.get()
    if current is None:
        raise LookupError("no attempt is running here: spend() is for functions that a task calls")
    with _ONE_AT_A_TIME:
        report = {"cost": cost, "usage": {"total_tokens": int(tokens)}}
        current.spent = together([current.spent, report])


def spent_here() -> Json:
    """What the code of this attempt has reported with `spend` so far; None: nothing."""
    current = CURRENT.get()
    return current.spent if current is not None else None
