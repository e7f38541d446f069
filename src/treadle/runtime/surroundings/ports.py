"""The ports of the coordinator: the clock, the executor of attempts, and the courier to the world outside.

Owns the vocabulary of both sides. Promises that each port can be real or virtual: an engine runs on the system's clock
with real work, `treadle test --store sqlite` runs the same coordinator on a virtual clock with scripted work. Must not
know any implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from msgspec import Struct

from treadle.actions.protocol import AttemptFacts
from treadle.model.commands import Command
from treadle.model.definition import Task
from treadle.model.effects import Effect, Slot
from treadle.model.ids import RecordId, RunId, TokenId
from treadle.store.port import Commit

Json = Any
Trace = dict[str, str] | None


class Alarm(Protocol):
    """An action that will happen unless it is cancelled."""

    def cancel(self) -> None:
        """Cancels the action."""


class Clock(Protocol):
    """Wall time in milliseconds since 1970, and a way to be called back."""

    def now(self) -> int:
        """The current time. It may step backwards or forwards: do not measure durations with it."""

    def call_at(self, due: int, action: Callable[[], None]) -> Alarm:
        """Calls `action` on the event loop once `now() >= due`; at the loop's next turn if it is due already."""


class SteadyClock(Protocol):
    """A clock that cannot be set, for durations such as the age of a lease."""

    def elapsed(self) -> int:
        """Milliseconds since an arbitrary moment; never goes back."""

    def call_after(self, ms: int, action: Callable[[], None]) -> Alarm:
        """Calls `action` on the event loop after `ms` milliseconds."""


class Attempt(Struct, frozen=True):
    """One attempt to execute, with everything an executor may know."""

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
    """Set if the task is the node's `compensate` task."""

    @property
    def identity(self) -> tuple[RunId, TokenId, int]:
        """Names this attempt for `Executor.stop`."""
        return (self.run, self.token, self.attempt)


Report = Callable[[RunId, Command], None]
"""The executor's reports: StartAttempt, ExtendLease, FinishAttempt, FailAttempt. Called on the event loop only, never
blocks. A report is a command like any other: it may be refused, and it counts once."""


class Executor(Protocol):
    """Executes attempts. All methods are called on the event loop and return at once."""

    def begin(self, attempt: Attempt) -> None:
        """Executes the attempt as soon as there is room, and reports. An attempt with a queue or a slot reports
        StartAttempt when it really begins; every other attempt has begun already."""

    def stop(self, run: RunId, token: TokenId, attempt: int) -> None:
        """Stops the attempt as soon as its work can be stopped. Nothing is reported for it any more."""

    @property
    def executing(self) -> int:
        """How many attempts it has in hand, waiting ones included."""

    @property
    def in_hand(self) -> Sequence[Attempt]:
        """The attempts it will still report for, waiting ones included."""

    @property
    def places(self) -> int:
        """How many more attempts would begin at once. A number below 1 counts the attempts that already wait for
        room."""

    def has_in_hand(self, run: RunId, token: TokenId, attempt: int) -> bool:
        """Whether it will still report for this attempt."""

    async def close(self, grace_ms: int) -> None:
        """Takes no new attempts, lets the running ones go on for `grace_ms`, then stops the rest without a report: they
        will be recovered."""


class Tracing(Protocol):
    """Traces of runs. Only where an operator has turned them on is there one."""

    def carried(self, run: RunId, trace: Trace, token: TokenId, attempt: int) -> dict[str, str]:
        """The headers for everything that is sent on behalf of an attempt. `trace`: the context that its run was
        started with."""

    def observe(self, commits: Sequence[Commit], seconds: float) -> None:
        """These decisions were written. Returns at once."""

    def took_over(self, shards: Sequence[int], shard_of: Callable[[RunId], int]) -> None:
        """The last owner of these shards was killed, perhaps before it had sent its newest spans."""

    def drop_unless(self, is_kept: Callable[[RunId], bool]) -> None:
        """Forgets the other runs: their new owner traces them."""


MakeExecutor = Callable[[Report], Executor]


class Answered(Struct, frozen=True):
    """The worker of a webhook has answered at once: its work is done."""

    output: Json
    spent: Json = None
    """What it has used up, {cost, usage}, as it reports beside its output."""


class Courier(Protocol):
    """Sends webhooks, outgoing events and reminders to the world outside. One call for each try; the coordinator owns
    retries and dead letters."""

    def turn(self, effect: Effect, context: Json) -> AbstractAsyncContextManager[None]:
        """Waits until the receiver may be sent something; `carry` is called inside. Waiting is no try."""

    async def carry(self, run: RunId, effect: Effect, context: Json) -> Answered | None:
        """Delivers the effect and returns when the receiver has accepted it. Raises an exception if another try may
        help, `Undeliverable` if none would. `context` holds the parts that the effect does not carry: the definition of
        the webhook's action, the dispatch key, the names of workflow and node."""


class Undeliverable(Exception):
    """No further try would help: the address is refused, or the receiver answers 4xx."""

    def __init__(self, message: str, *, answered: bool = False) -> None:
        super().__init__(message)
        self.answered = answered
        """The receiver was reached and has refused."""
