"""Refuses commands that cannot be carried out: deciding raises, the run cannot be read, or the decision cannot be
written.

Owns the consequences: the caller gets a rejection, the outbox row of the command becomes a dead letter, and an attempt
whose result cannot be written fails. Promises that other commands are not affected. Must not touch a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from treadle.model import commands as c
from treadle.model.errors import Error, Rejection
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.surroundings.logs import logger
from treadle.store.port import KEPT, InboxAnswer

TRIES_MAX = 2

log = logger("treadle.coordinator")


class Refusals:
    """See the module's docstring."""

    def __init__(
        self,
        defect: Callable[[Exception], None],
        park: Callable[[int, str], None],
        answer: Callable[[Item, Rejection], None],
        put: Callable[[Item], None],
    ) -> None:
        self._defect = defect
        """Called with the exception that deciding has raised."""
        self._park = park
        self._answer = answer
        self._put = put

    def undecidable(self, item: Item, problem: Exception) -> bool:
        """Deciding has raised: a defect of Treadle, or of a definition. Returns whether to try again on a state read
        from the store, which is done once; then the command is refused."""
        command = type(item.command).__name__
        log.error("deciding failed", run=item.run, command=command, exc_info=problem)
        self._defect(problem)
        item.tries += 1
        if item.tries < TRIES_MAX:
            return True
        text = f"{command} could not be decided: {type(problem).__name__}: {problem}"
        self._give_up(item, Rejection("INVALID_STATE", f"{text}. This is a defect of Treadle; nothing was changed"))
        return False

    def unreadable(self, item: Item, problem: Exception) -> None:
        """Refuses an item whose run or idempotency key cannot be read."""
        text = f"{item.run} cannot be read: {type(problem).__name__}: {problem}"
        self._give_up(item, Rejection("INVALID_STATE", f"{text}. `treadle fsck` says more; nothing was changed"))

    def unwritable(self, item: Item, problem: Exception) -> None:
        """Refuses an item whose decision holds a value that cannot be packed."""
        command = item.command
        text = f"the events of {type(command).__name__} cannot be written: {type(problem).__name__}: {problem}"
        if isinstance(command, c.FinishAttempt):
            failed = c.FailAttempt(command.token, command.attempt, Error("SCHEMA", text), command.tries, command.worker)
            self._put(Item(item.run, failed))
        self._give_up(item, Rejection("BAD_REQUEST", text))

    @staticmethod
    def tell_kept(answers: Iterable[InboxAnswer]) -> None:
        """Logs refusals of requests that were kept while no engine ran: their senders do not wait for an answer."""
        for answer in answers:
            if answer.rejection is not None and answer.request.startswith(KEPT):
                reason, look = answer.rejection.message, f"treadle requests show {answer.request}"
                log.warning("a kept request is refused", run=answer.run, reason=reason, look=look)

    def _give_up(self, item: Item, rejection: Rejection) -> None:
        if item.row:
            self._park(item.row, rejection.message)
            item.row = 0
        self._answer(item, rejection)
