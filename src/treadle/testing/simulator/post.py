"""Messages to runs: whoever wants something of a run writes a letter, and it finds the engine that owns the run.

Owns what networks do to messages: late, lost, doubled, and answers that never come back. Promises at-least-once to a
sender that keeps trying, which is what real clients and outboxes do; a command that arrives twice must count once, and
that is the kernel's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from treadle.model.commands import Command
from treadle.model.errors import Rejection
from treadle.model.ids import RunId
from treadle.testing.simulator.draw import Draw
from treadle.testing.simulator.faults import Faults
from treadle.testing.simulator.schedule import Host, Process, Schedule

if TYPE_CHECKING:
    from treadle.testing.simulator.engine import Engine

PATIENCE_MS = 60
"""How long a sender waits for an answer before it writes again: longer than a commit takes, shorter than a lease."""
PATIENCE_FACTOR_MAX = 16
"""Senders wait longer each time, up to so many times as long: an engine that is behind must be able to catch up."""
LATE_MS = 900
"""How late a late message is at most: several leases, most timers."""


class Letter:
    """One command to one run, and what became of it."""

    __slots__ = ("answered_at", "command", "copies", "on_answer", "queued", "rejection", "run", "sent_at", "workflow")

    def __init__(
        self, run: RunId, command: Command, sent_at: int, workflow: str = "", on_answer: Answered | None = None
    ) -> None:
        self.run = run
        self.command = command
        self.workflow = workflow
        """Of a StartRun: what to start."""
        self.sent_at = sent_at
        self.answered_at: int | None = None
        self.rejection: Rejection | None = None
        """Once answered: None means accepted."""
        self.copies = 0
        """How often it has reached an engine."""
        self.queued = False
        """A copy lies in an engine's inbox."""
        self.on_answer = on_answer

    @property
    def accepted(self) -> bool:
        return self.answered_at is not None and self.rejection is None


Answered = Callable[[Letter], None]


class Post:
    """See the module's docstring."""

    def __init__(self, draw: Draw, schedule: Schedule, faults: Faults) -> None:
        self._schedule = schedule
        self._draw = draw
        self._faults = faults
        self.engines: list[Engine] = []
        self.letters: list[Letter] = []
        """Everything ever written, in order: the clients' journal."""

    def send(
        self,
        run: RunId,
        command: Command,
        *,
        workflow: str = "",
        host: Host | None = None,
        tries: int | None = None,
        on_answer: Answered | None = None,
    ) -> Letter:
        """Write to a run, again and again until it answers, as long as the sender's host lives."""
        letter = Letter(run, command, self._schedule.now, workflow, on_answer)
        self.letters.append(letter)
        self._schedule.spawn(self._carry(letter, tries), host)
        return letter

    def _carry(self, letter: Letter, tries: int | None) -> Process:
        sent = 0
        while letter.answered_at is None and (tries is None or sent < tries):
            sent += 1
            if self._faults.happens("duplicate_message"):
                self._schedule.spawn(self._again(letter), None, self._draw.between(1, LATE_MS))
            if self._faults.happens("late_message"):
                self._schedule.spawn(self._again(letter), None, self._draw.between(PATIENCE_MS, LATE_MS))
            elif not self._faults.happens("lost_message"):
                yield self._draw.between(0, 3)
                self._hand_over(letter)
            yield PATIENCE_MS * min(sent, PATIENCE_FACTOR_MAX)

    def _again(self, letter: Letter) -> Process:
        self._hand_over(letter)
        return
        yield 0

    def _hand_over(self, letter: Letter) -> None:
        owners = [engine for engine in self.engines if engine.up and engine.owns(letter.run)]
        if owners:
            letter.copies += 1
            self._draw.pick(owners).receive(letter)

    def answer(self, letter: Letter, rejection: Rejection | None) -> None:
        """What became of a letter, on its way back to the sender. The first answer is the one it goes by."""
        if letter.answered_at is not None or self._faults.happens("lost_reply"):
            return
        letter.answered_at = self._schedule.now
        letter.rejection = rejection
        if letter.on_answer is not None:
            letter.on_answer(letter)


def answered(letter: Letter) -> Process:
    """Until a letter has its answer."""
    wait = 3
    while letter.answered_at is None:
        yield wait
        wait = min(wait * 2, PATIENCE_MS)
