"""Letters to runs: how clients reach them, through any node or through the store's inbox, and what becomes of each.

Owns what networks do to messages: late, lost, doubled, and answers that never come back. Promises at-least-once to a
sender that keeps trying, which is what real clients do; a command that arrives twice must count once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulator.generator.generate import MAIN
from treadle.errors import EngineStopped, StoreUnavailable
from treadle.model.commands import Command, StartRun
from treadle.model.errors import Rejection
from treadle.model.ids import RunId
from treadle.runtime.command.commander import Commander, Remote

if TYPE_CHECKING:
    from tests.simulator.world import World

PATIENCE_MS = 60
"""How long a sender waits for an answer before it writes again: longer than a commit takes, shorter than a lease."""
PATIENCE_FACTOR_MAX = 16
"""Senders wait longer each time, up to so many times as long: an engine that is behind must be able to catch up."""
LATE_MS = 900
"""How late a late message is at most: several leases, most timers."""


class Letter:
    """One command to one run, and what became of it."""

    __slots__ = ("answered_at", "command", "copies", "number", "rejection", "result", "run", "workflow")

    def __init__(self, number: int, run: RunId, command: Command, workflow: str | None = None) -> None:
        self.number = number
        self.run = run
        self.command = command
        self.workflow = workflow
        """Of a StartRun: what to start."""
        self.answered_at: int | None = None
        self.rejection: Rejection | None = None
        """Once answered: None means accepted."""
        self.result: RunId | None = None
        """Of an accepted start: the run it has become, or has become an item of."""
        self.copies = 0
        """How often it has been handed to a process."""

    @property
    def accepted(self) -> bool:
        return self.answered_at is not None and self.rejection is None


class Post:
    """See the module's docstring."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.letters: list[Letter] = []
        """Everything ever written, in order: the clients' journal."""
        self.remote: Commander | None = None
        """The way through the inbox."""

    def send(self, run: RunId, command: Command, *, tries: int | None = None, workflow: str | None = None) -> Letter:
        """Writes to a run, again and again until it answers. `workflow`: of a start, if it is not the main one."""
        start = (workflow or MAIN) if isinstance(command, StartRun) else None
        letter = Letter(len(self.letters), run, command, start)
        self.letters.append(letter)
        self._world.outside.spawn(self._carry(letter, tries))
        return letter

    async def _carry(self, letter: Letter, tries: int | None) -> None:
        faults, draw = self._world.faults, self._world.draw
        sent = 0
        while letter.answered_at is None and (tries is None or sent < tries):
            sent += 1
            if faults.happens("duplicate_message"):
                self._later(letter, draw.between(1, LATE_MS), "again")
            if faults.happens("late_message"):
                self._later(letter, draw.between(PATIENCE_MS, LATE_MS))
            elif not faults.happens("lost_message"):
                self._hand_over(letter)
            await asyncio.sleep(PATIENCE_MS * min(sent, PATIENCE_FACTOR_MAX) / 1_000)

    def _later(self, letter: Letter, ms: int, copy: str = "") -> None:
        loop = self._world.outside.loop
        assert loop is not None
        loop.call_later(ms / 1_000, self._hand_over, letter, copy)

    def _hand_over(self, letter: Letter, copy: str = "") -> None:
        ways = [engine for engine in self._world.engines if engine.commander is not None]
        chosen = self._world.draw.pick([*ways, None]) if ways else None
        letter.copies += 1
        if chosen is not None:
            assert chosen.commander is not None
            chosen.spawn(self._ask(letter, chosen.commander, copy))
        else:
            assert self.remote is not None
            self._world.outside.spawn(self._ask(letter, self.remote, copy))

    async def _ask(self, letter: Letter, way: Commander, copy: str) -> None:
        request = f"letter-{letter.number}{copy}"
        try:
            answer = await way.ask(letter.run, letter.command, letter.workflow, request=request)
        except (EngineStopped, StoreUnavailable):
            return  # the sender asks again
        if answer.rejection is None:
            run = stands_in(letter, answer.result)
            watched = self._world.auditor.runs.get(run)
            history = watched.events if watched is not None else []
            self._world.tenures.check_told(run, letter.command, asyncio.get_running_loop(), history)
        if letter.answered_at is None and not self._world.faults.happens("lost_reply"):
            letter.answered_at = self._world.schedule.now
            letter.rejection = answer.rejection
            if answer.rejection is not None:
                self._world.coverage.answers[f"{type(letter.command).__name__} {answer.rejection.kind}"] += 1
            letter.result = answer.result if isinstance(letter.command, StartRun) else None


def stands_in(letter: Letter, result: object) -> RunId:
    """The run whose history must show that the letter counts. A start whose key another run has is answered with that
    run, also if the engine that was asked had decided it before it heard of the other one."""
    return RunId(result) if isinstance(letter.command, StartRun) and isinstance(result, str) else letter.run


async def refreshed(remote: Remote) -> None:
    """Reads the workflows, however often that takes."""
    while True:
        try:
            await remote.library.refresh()
        except StoreUnavailable:
            continue
        return
