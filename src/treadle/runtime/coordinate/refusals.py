"""Commands nobody can carry out: deciding raises, the run cannot be read, what was decided cannot be written.

Owns what becomes of them: whoever asked is told, an outbox row that asked is parked where people find it, an attempt is
not left at work for ever. Promises that other commands do not notice. Must not touch a state.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.model import commands as c
from treadle.model.errors import Error, Rejection
from treadle.runtime.base.logs import logger
from treadle.runtime.coordinate.gathering import Item

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
        """Called with what deciding has raised."""
        self._park = park
        self._answer = answer
        self._put = put

    def undecidable(self, item: Item, problem: Exception) -> bool:
        """Deciding has raised: a defect of ours, or of a definition. Whether it is worth another try, on a fresh state;
        there is one."""
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
        """Its run, or its key, cannot be looked up."""
        text = f"{item.run} cannot be read: {type(problem).__name__}: {problem}"
        self._give_up(item, Rejection("INVALID_STATE", f"{text}. `treadle fsck` says more; nothing was changed"))

    def unwritable(self, item: Item, problem: Exception) -> None:
        """What was decided cannot be packed: a value in it is to blame."""
        command = item.command
        text = f"what follows from {type(command).__name__} cannot be written: {type(problem).__name__}: {problem}"
        if isinstance(command, c.FinishAttempt):
            failed = c.FailAttempt(command.token, command.attempt, Error("SCHEMA", text), command.tries, command.worker)
            self._put(Item(item.run, failed))
        self._give_up(item, Rejection("BAD_REQUEST", text))

    def _give_up(self, item: Item, rejection: Rejection) -> None:
        if item.row:
            self._park(item.row, rejection.message)
            item.row = 0
        self._answer(item, rejection)
