"""The ports of the coordinator: what it needs of a clock, of whoever executes attempts, and of whoever speaks to the
outside.

Owns the words both sides speak. Promises that everything here can be real or virtual: an engine runs on the system's
clock with real work, `treadle test --store sqlite` runs the same coordinator on a virtual clock with scripted work.
Must not know any implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from treadle.actions.protocol import AttemptFacts
from treadle.model.commands import Command
from treadle.model.definition import Task
from treadle.model.effects import Effect, Slot
from treadle.model.ids import RecordId, RunId, TokenId

Json = Any


class Alarm(Protocol):
    """Something that will happen unless it is cancelled."""

    def cancel(self) -> None:
        """It will not happen."""


class Clock(Protocol):
    """Wall time in milliseconds since 1970, and a way to be called back."""

    def now(self) -> int:
        """What time it is. May step backwards or forwards; durations are not its business."""

    def call_at(self, due: int, action: Callable[[], None]) -> Alarm:
        """Calls `action` on the event loop once `now() >= due`; at the loop's next turn if that is so already."""


class SteadyClock(Protocol):
    """Time that nobody can set: for durations, such as how long one may trust a lease."""

    def elapsed(self) -> int:
        """Milliseconds since some moment; never goes back."""

    def call_after(self, ms: int, action: Callable[[], None]) -> Alarm:
        """Calls `action` on the event loop when so much time has passed."""


class Attempt(Struct, frozen=True):
    """One attempt to execute: everything an executor may know."""

    run: RunId
    token: TokenId
    attempt: int
    node: str
    task: Task
    input: Json
    facts: AttemptFacts
    queue: str | None = None
    slot: Slot | None = None
    record: RecordId | None = None
    """Set: it is the node's `compensate` task."""

    @property
    def identity(self) -> tuple[RunId, TokenId, int]:
        """Names this attempt for `Executor.stop`."""
        return (self.run, self.token, self.attempt)


Report = Callable[[RunId, Command], None]
"""How an executor answers: StartAttempt, ExtendLease, FinishAttempt, FailAttempt. Called on the event loop only, never
blocks. A report is a command like others: it may be refused, it counts once."""


class Executor(Protocol):
    """Executes attempts. All methods are called on the event loop and return at once."""

    def begin(self, attempt: Attempt) -> None:
        """Executes it, now or when there is room, and reports. An attempt with a queue or a slot begins with a
        StartAttempt when it really begins; others have begun already."""

    def stop(self, run: RunId, token: TokenId, attempt: int) -> None:
        """Really stops it, as soon as the work can be stopped; nothing is reported for it any more."""

    @property
    def executing(self) -> int:
        """How many attempts it has in hand, waiting ones included."""

    @property
    def in_hand(self) -> Sequence[Attempt]:
        """Those it will still report for, waiting ones included."""

    @property
    def places(self) -> int:
        """How many more attempts would begin at once; less than 1: so many wait for room already."""

    def has_in_hand(self, run: RunId, token: TokenId, attempt: int) -> bool:
        """Whether it will still report for this attempt."""

    async def close(self, grace_ms: int) -> None:
        """Takes nothing new, gives what runs so long to end and report, then stops the rest unreported: they will be
        recovered."""


MakeExecutor = Callable[[Report], Executor]


class Courier(Protocol):
    """Tells the world outside: webhooks, outgoing events, reminders. One call per try; the coordinator owns retries and
    dead letters."""

    async def carry(self, run: RunId, effect: Effect, context: Json) -> None:
        """Delivers; returns when the receiver has accepted. Raises for a failure worth another try; raises
        `Undeliverable` for one that is not. `context` is what the effect does not carry itself: the definition of the
        webhook's action, the dispatch key, the names of workflow and node."""


class Undeliverable(Exception):
    """No further try would help: the address is refused, the receiver says 4xx."""
