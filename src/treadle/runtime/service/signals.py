"""Signals to every run that waits for one now (5.2). Reached as `Client.signal`.

Promises that a signal under one id counts once in each run. Nobody waits: nothing is kept. Known limit: runs are looked
through one after the other, because no store knows what a run waits for.
"""

from __future__ import annotations

from typing import Any

from treadle.errors import CommandRefused
from treadle.kernel.signal_lines import waiters
from treadle.model.commands import SendSignal
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.command.commander import Commander
from treadle.store.port import RunQuery

Json = Any
PAGE = 500


async def runs_waiting_for(commander: Commander, name: str, key: Json) -> list[RunId]:
    """Runs in which somebody would take this signal now."""
    found: list[RunId] = []
    query = RunQuery(statuses=(RunStatus.RUNNING, RunStatus.PAUSED), limit=PAGE)
    while rows := await commander.store.find_runs(query):
        for row in rows:
            state = await commander.state(row.run)
            if state is not None and any(True for _ in waiters(state.lines, name, key)):
                found.append(row.run)
        query = RunQuery(statuses=query.statuses, after=rows[-1].run, limit=PAGE)
    return found


async def send_to(commander: Commander, runs: list[RunId], signal: SendSignal) -> list[RunId]:
    """Sends a signal to these runs. Returns those that took it; one that has ended meanwhile does not."""
    taken: list[RunId] = []
    for run in runs:
        answer = await commander.ask(run, signal)
        if answer.rejection is None:
            taken.append(run)
        elif answer.rejection.kind not in ("INVALID_STATE", "NOT_FOUND"):
            raise CommandRefused(answer.rejection.kind, answer.rejection.message)
    return taken
