"""The clients' letters against the histories: what was accepted is there, what was refused is not, nothing is invented.

A letter of which several copies arrived (its answer got lost, or the network doubled it) may be refused once although
another time it counted; of those only "what was accepted is there" is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.simulator.audit.lifecycle import OVER
from tests.simulator.audit.record import Record
from tests.simulator.post import Letter
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.ids import RunId

History = Sequence[e.Event]
Evidence = Callable[[Any, History], int]
"""How often the command's effect is in the history."""


def check_letters(
    records: Mapping[RunId, Record], histories: Mapping[RunId, History], letters: Sequence[Letter]
) -> None:
    """Every letter that was answered."""
    for letter in letters:
        record = records.get(letter.run)
        if record is None or letter.answered_at is None:
            continue
        find = _EVIDENCE.get(type(letter.command))
        if find is None:
            continue
        count = find(letter.command, histories[letter.run])
        if letter.accepted:
            record.expect(count == 1, "acknowledged", f"{letter.command} was accepted and is in history {count} times")
        elif letter.copies == 1 and not isinstance(letter.command, c.AddSiblings):
            record.expect(count == 0, "refused", f"{letter.command} was refused {letter.rejection} and is in history")


def _signal(command: c.SendSignal, history: History) -> int:
    return sum(1 for event in history if isinstance(event, e.SignalReceived) and event.command == command.id)


def _grown(command: c.AddSiblings, history: History) -> int:
    """Growing over a limit fails the run instead, and that is an answer, too."""
    grown = sum(1 for event in history if isinstance(event, e.GroupGrew) and event.command == command.id)
    burst = any(isinstance(event, e.RunFailed) and event.error.kind == "LIMIT_EXCEEDED" for event in history)
    return grown or int(burst)


def _gate(command: c.CompleteGate, history: History) -> int:
    return sum(
        1
        for event in history
        if isinstance(event, e.GateCompleted) and event.token == command.token and event.data == command.data
    )


def _callback(command: c.ReceiveCallback, history: History) -> int:
    wanted = (command.token, command.attempt, command.output, command.error)
    return sum(
        1
        for event in history
        if isinstance(event, e.CallbackReceived) and (event.token, event.attempt, event.output, event.error) == wanted
    )


def _started(_command: c.StartRun, history: History) -> int:
    return sum(1 for event in history if isinstance(event, e.RunStarted))


_EVIDENCE: dict[type[c.Command], Evidence] = {
    c.SendSignal: _signal,
    c.AddSiblings: _grown,
    c.CompleteGate: _gate,
    c.ReceiveCallback: _callback,
    c.StartRun: _started,
}


def check_families(records: Mapping[RunId, Record]) -> None:
    """Children and parents agree at the end: nobody waits for the dead, nobody outlives a parent that is over."""
    for record in records.values():
        parent = record.started.parent if record.started is not None else None
        if parent is None:
            continue
        above = records[parent.run]
        visit = above.visits[parent.token]
        record.expect(record.status in OVER, "children", f"parent {above.status}, child {record.status}")
        waits = visit.live and visit.child == record.run
        record.expect(
            not waits, "children", f"visit {visit.id} of {parent.run} still waits for {record.run}: {record.status}"
        )
