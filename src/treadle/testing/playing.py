"""What a world asks of an engine, whichever it is: the virtual one, or the real one on a virtual clock.

Owns the words only. Every method may raise `Crashed`; whoever called makes a new engine then.
"""

from __future__ import annotations

from typing import Protocol

from treadle.kernel.state import RunState
from treadle.model.commands import Command, StartRun
from treadle.model.errors import Rejection
from treadle.model.ids import RunId
from treadle.testing.agenda import Agenda


class PlayedEngine(Protocol):
    """See the module's docstring."""

    agenda: Agenda
    """What will happen by itself, as far as this engine knows."""

    def start(self, workflow: str, version: int | None, command: StartRun) -> Rejection | None:
        """Creates a run."""

    def handle(self, run: RunId, command: Command) -> Rejection | None:
        """One command about one run, to its commit."""

    def answer_later(self, run: RunId, command: Command, after_ms: int) -> None:
        """A worker will report so much later."""

    def state(self, run: RunId) -> RunState | None:
        """What the engine knows of a run."""
