"""Hot runs: the states in memory on which the next decisions are made.

Owns which runs are hot. A state here may be ahead of the store by the decisions being committed; it is never behind. A
run that has ended, or that has had no decision for long while memory is short, goes cold: it is folded from its history
when the next command for it comes.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from treadle.kernel.defined import defining
from treadle.kernel.state import RunState, Token
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RUN_ENDED, Mode, RunStatus, TokenState

HOT_MAX = 2_000
"""Runs kept in memory while they only wait. A small run takes some 10 KiB, so this is about 20 MiB."""


class Hot(Struct):
    """One run in memory."""

    state: RunState
    attempts: set[TokenId]
    """Visits being executed without a lease of their own: their work is lost if this process dies."""
    unsettled: int = 0
    """Number of decisions that are not durable yet."""
    handed_out: set[TokenId] = set()
    """Visits of `attempts` that a decision on this very state handed out: begun in this process, or about to be.
    Recovery must not take them for lost, although an executor may not have them in hand yet."""
    is_left: bool = False
    """The run was given up to another node. If it comes back, recovery finds the work decided on this state."""

    def update_attempts(self, command: c.Command, effects: list[f.Effect]) -> bool:
        """Updates `attempts` after a decision. Returns whether any visit is being executed. An extra entry only costs
        one lookup at recovery."""
        state, attempts = self.state, self.attempts
        if isinstance(command, (c.FinishAttempt, c.FailAttempt)):
            token = state.tokens.get(command.token)
            if token is None or token.attempt == command.attempt:  # else it came late, and a newer attempt is at work
                attempts.discard(command.token)
                self.handed_out.discard(command.token)
        for effect in effects:
            if isinstance(effect, f.RunTask):
                attempts.add(effect.token)
                self.handed_out.add(effect.token)
            elif isinstance(effect, f.StopTask):
                attempts.discard(effect.token)
                self.handed_out.discard(effect.token)
        if state.status in RUN_ENDED:
            attempts.clear()
            self.handed_out.clear()
        return bool(attempts)


class Hots:
    """The hot runs, least recently used first."""

    def __init__(self, hot_max: int = HOT_MAX) -> None:
        self.by_run: dict[RunId, Hot] = {}
        self._max = hot_max
        self.are_offered = False
        """Whether workers claim queue work, each under a lease of its own."""
        self.are_limits_offered = False
        """Whether they also claim work without a queue that observes a limit across runs."""
        self.forgotten = 0
        """How often states were dropped because another node may have written. A history read before that is stale."""

    def __len__(self) -> int:
        return len(self.by_run)

    def get(self, run: RunId) -> Hot | None:
        return self.by_run.get(run)

    def keep(self, run: RunId, state: RunState) -> Hot:
        """Makes a run hot, with a state that was just folded, or an empty one of a run about to start."""
        attempts = {
            token.id
            for token in state.tokens.values()
            if is_executed_here(state, token)
            and not (self.are_offered and is_on_a_queue(state, token, limits=self.are_limits_offered))
        }
        hot = Hot(state, attempts)
        self.by_run[run] = hot
        return hot

    def drop(self, run: RunId) -> None:
        """Forgets the state of a run; the next command folds it from the store."""
        self.by_run.pop(run, None)

    def clear(self) -> None:
        self.forgotten += 1
        self.by_run.clear()

    def drop_unless(self, is_kept: Callable[[RunId], bool]) -> None:
        """Forgets the states of all other runs."""
        self.forgotten += 1
        for run in [run for run in self.by_run if not is_kept(run)]:
            self.by_run.pop(run).is_left = True

    def runs(self) -> list[tuple[RunId, Hot]]:
        return list(self.by_run.items())

    def cool(self, run: RunId, hot: Hot) -> None:
        """Called after a commit: an ended run goes cold at once; any other run stays as long as there is room."""
        if hot.unsettled or self.by_run.get(run) is not hot:
            return
        if hot.state.status in RUN_ENDED:
            self.by_run.pop(run, None)
        elif len(self.by_run) > self._max and hot.state.status is RunStatus.QUEUED:
            self.by_run.pop(run, None)  # the last of a queue: runs in memory get a command sooner
        elif len(self.by_run) > self._max:
            self.by_run[run] = self.by_run.pop(run)
            self._evict_one()

    def _evict_one(self) -> None:
        """Drops the oldest run that only waits. Busy runs met on the way move to the end, so that each is visited once
        per round and not once per commit."""
        for _ in range(8):
            run = next(iter(self.by_run))
            hot = self.by_run.pop(run)
            if not hot.unsettled and not hot.attempts:
                return
            self.by_run[run] = hot


def is_executed_here(state: RunState, token: Token) -> bool:
    """Whether the process of an engine is, or was, executing this visit."""
    if token.state not in (TokenState.DISPATCHED, TokenState.EXECUTING):
        return False
    if token.mode is Mode.COMPENSATION:
        return True
    node = defining(state, token)
    return node.task is not None and node.suspends is None


def is_on_a_queue(state: RunState, token: Token, limits: bool = True) -> bool:
    """Whether the visit's work waits in a queue, or (`limits`) for its turn under a concurrency limit."""
    node = defining(state, token).definition
    return token.mode is Mode.FORWARD and (node.queue is not None or (limits and node.concurrency is not None))
