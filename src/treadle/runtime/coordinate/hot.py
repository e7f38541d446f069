"""Runs in memory: the state the next decision is made on.

Owns which runs are hot. A state here may be ahead of the store by what is being committed; it is never behind. A run
that sleeps, ends or is many decisions old goes cold and is folded from its history when something happens to it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from treadle.kernel.state import RunState, Token
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RUN_ENDED, Mode, TokenState

HOT_MAX = 2_000
"""States kept although nothing is going on in them. A small run is some 10 KiB, so this is about 20 MiB."""


class Hot(Struct):
    """One run in memory."""

    state: RunState
    attempts: set[TokenId]
    """Visits somebody executes without a lease of their own: lost if this process dies."""
    unsettled: int = 0
    """Decisions that are not durable yet."""
    handed_out: set[TokenId] = set()
    """Those of `attempts` that were handed out on this very state: begun in this process, or about to be. Recovery must
    not take them for lost ones, although an executor may not have them in hand yet."""
    is_left: bool = False
    """Its run became somebody else's. If it comes back, recovery finds what was decided on this state."""

    def note(self, command: c.Command, effects: list[f.Effect]) -> bool:
        """Keeps `attempts` after a decision; whether anybody is at work. A visit too many costs a look at recovery."""
        state, attempts = self.state, self.attempts
        if isinstance(command, (c.FinishAttempt, c.FailAttempt)):
            token = state.tokens.get(command.token)
            if token is None or token.attempt == command.attempt:  # else it was late, and a newer attempt is at work
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
        """Whether queue work is claimed by workers, each with a lease of its own."""
        self.forgotten = 0
        """How often states were forgotten because somebody else may have written: what was read before is old."""

    def __len__(self) -> int:
        return len(self.by_run)

    def get(self, run: RunId) -> Hot | None:
        return self.by_run.get(run)

    def keep(self, run: RunId, state: RunState) -> Hot:
        """A state that was just folded or is about to be born."""
        attempts = {
            token.id
            for token in state.tokens.values()
            if is_executed_here(state, token) and not (self.are_offered and is_on_a_queue(state, token))
        }
        hot = Hot(state, attempts)
        self.by_run[run] = hot
        return hot

    def drop(self, run: RunId) -> None:
        """Forget it; the store knows better."""
        self.by_run.pop(run, None)

    def clear(self) -> None:
        self.forgotten += 1
        self.by_run.clear()

    def drop_unless(self, is_kept: Callable[[RunId], bool]) -> None:
        """Forget the others."""
        self.forgotten += 1
        for run in [run for run in self.by_run if not is_kept(run)]:
            self.by_run.pop(run).is_left = True

    def runs(self) -> list[tuple[RunId, Hot]]:
        return list(self.by_run.items())

    def cool(self, run: RunId, hot: Hot) -> None:
        """After a commit: an ended run goes at once, others while there is room."""
        if hot.unsettled or self.by_run.get(run) is not hot:
            return
        if hot.state.status in RUN_ENDED:
            self.by_run.pop(run, None)
        elif len(self.by_run) > self._max:
            self.by_run[run] = self.by_run.pop(run)
            self._evict_one()

    def _evict_one(self) -> None:
        """The oldest that nothing is going on in. Busy ones met on the way move to the end: they are looked at once per
        round, not once per commit."""
        for _ in range(8):
            run = next(iter(self.by_run))
            hot = self.by_run.pop(run)
            if not hot.unsettled and not hot.attempts:
                return
            self.by_run[run] = hot


def is_executed_here(state: RunState, token: Token) -> bool:
    """Whether an engine's own process is, or was, at work for this visit."""
    if token.state not in (TokenState.DISPATCHED, TokenState.EXECUTING):
        return False
    if token.mode is Mode.COMPENSATION:
        return True
    node = state.graph.nodes[token.node]
    return node.task is not None and node.suspends is None


def is_on_a_queue(state: RunState, token: Token) -> bool:
    """Whether the visit's work may have to wait for somebody to take it up."""
    node = state.graph.nodes[token.node].definition
    return token.mode is Mode.FORWARD and (node.queue is not None or node.concurrency is not None)
