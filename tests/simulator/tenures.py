"""Which process held which shard when, what it executed meanwhile, and which decisions are written.

Owns the leases the store has given, in their order, and where and under which lease each execution began. Rules:

    fence      nothing is written under a lease that was given to somebody else since
    told       a client is told that a command counts only when the decision is written
    tenure     a result of own work counts only if no other process has held the shard since the work began
    handover   work in hand at a process that gives its shard away in peace is not handed out again while it lives

Only these are used: the fences the store gave, commits in their order with the command that caused each, and what the
crew executes. Must not know how the runtime keeps these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.simulator.audit.complaint import Violation
from tests.simulator.audit.journal import evidence
from treadle.kernel.state import RunState
from treadle.model.commands import Command, FailAttempt, FinishAttempt
from treadle.model.events import Event, TokenDispatched
from treadle.model.ids import RunId, TokenId
from treadle.store.port import Commit, Fence

Attempt = tuple[RunId, TokenId, int]


class Execution(NamedTuple):
    """One execution of an engine's own work."""

    attempt: Attempt
    owner: str
    """The life of the process that executes it."""
    epoch: int
    """Of the lease at its beginning."""
    until: int


class Tenures:
    """See the module's docstring. `shard_of` tells a run's shard, `is_alive` whether a life of a process goes on.
    `is_sound`: every commit reaches the store and is answered, so that nothing excuses stopping work at a hand-over."""

    def __init__(self, shard_of: Callable[[RunId], int], is_alive: Callable[[str], bool], *, is_sound: bool) -> None:
        self._shard_of, self._is_alive, self._is_sound = shard_of, is_alive, is_sound
        self._owners: dict[int, dict[int, str]] = {}
        """Shard → epoch → who held it."""
        self._begun: dict[int, Execution] = {}
        """By the serial of its answer or error."""
        self._last: dict[Attempt, Execution] = {}
        self._in_hand: dict[Attempt, str] = {}
        """Attempts that were in hand when their shard was given away → the process that had them."""
        self._unwritten: dict[tuple[int, int], Command] = {}
        """By identity of a command and of the loop that decides it: its last decision there is not written yet."""

    # What happens

    def leased(self, fence: Fence) -> None:
        self._owners.setdefault(fence.shard, {})[fence.epoch] = fence.owner

    def released(self, fence: Fence, now: int) -> None:
        """A shard was given back while it was held."""
        for attempt, execution in self._last.items():
            is_here = execution.owner == fence.owner and self._shard_of(attempt[0]) == fence.shard
            if is_here and execution.until > now:
                self._in_hand[attempt] = fence.owner

    def executes(self, execution: Execution, serial: int) -> None:
        """An execution begins, and will bring the answer or error with that serial."""
        self._begun[serial] = self._last[execution.attempt] = execution

    def decided(self, command: Command, loop: object, *, has_events: bool) -> None:
        """The process of that loop has decided a command. Without events there is nothing to write."""
        if has_events:
            self._unwritten[id(command), id(loop)] = command
        else:
            self._unwritten.pop((id(command), id(loop)), None)

    # What must hold

    def check_told(self, run: RunId, command: Command, loop: object, history: Sequence[Event]) -> None:
        """The process of that loop tells the sender that a command counts. Another process may have written it."""
        if (id(command), id(loop)) in self._unwritten and evidence(command, history) == 0:
            raise Violation(run, "told", f"{command} was acknowledged before anything of it was written")

    def check_fences(self, run: RunId, fences: Sequence[Fence]) -> None:
        """A batch is written, perhaps without a decision: answers and marks need the lease, too. `run`: one of it."""
        for fence in fences:
            newest = max(self._owners[fence.shard])
            if fence.epoch < newest:
                text = f"{fence} has written, and epoch {newest} of its shard is given away"
                raise Violation(run, "fence", text)

    def check_commit(self, commit: Commit, cause: Command, fence: Fence, before: RunState | None, loop: object) -> None:
        """A decision of the process of that loop is written; `before` is the run as it was."""
        self._unwritten.pop((id(cause), id(loop)), None)
        self._check_result(commit.run, cause, fence)
        if before is not None:
            for event in commit.events:
                if isinstance(event, TokenDispatched) and event.recovery:
                    self._check_handed_out_again(commit.run, event, before)

    def _check_result(self, run: RunId, cause: Command, fence: Fence) -> None:
        if not isinstance(cause, FinishAttempt | FailAttempt) or cause.worker is not None:
            return
        begun = self._begun.get(_serial(cause))
        if begun is None or not begun.epoch:
            return
        held = {self._owners[fence.shard].get(epoch) for epoch in range(begun.epoch, fence.epoch + 1)}
        if held != {fence.owner} or begun.owner != fence.owner:
            text = f"{cause} of {begun} counts under {fence}, and {held} have held the shard meanwhile"
            raise Violation(run, "tenure", text)

    def _check_handed_out_again(self, run: RunId, event: TokenDispatched, before: RunState) -> None:
        owner = self._in_hand.pop((run, event.token, event.attempt), None)
        token = before.tokens.get(event.token)
        if owner is None or not self._is_sound or token is None or token.worker is not None:
            return
        if self._is_alive(owner):
            text = f"attempt {event.attempt} of visit {event.token} is handed out again; {owner} had it in hand"
            raise Violation(run, "handover", text)


def _serial(cause: FinishAttempt | FailAttempt) -> int:
    """The number by which the crew recognises what it has made."""
    made: Any = cause.output if isinstance(cause, FinishAttempt) else cause.error.message.removeprefix("failure ")
    if isinstance(made, dict):
        return int(made.get("v", 0)) if isinstance(made.get("v"), int) else 0
    return int(made) if isinstance(made, str) and made.isdigit() else 0
