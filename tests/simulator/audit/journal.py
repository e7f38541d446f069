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
        elif letter.copies == 1 and not isinstance(letter.command, c.AddSiblings) and not _is_late(letter):
            record.expect(count == 0, "refused", f"{letter.command} was refused {letter.rejection} and is in history")


def _is_late(letter: Letter) -> bool:
    """Whether a limit on starts has refused it. An engine that cannot know whether the refusal was written decides
    again, and by then the limit may allow it."""
    return letter.rejection is not None and letter.rejection.kind in ("RATE_LIMITED", "DUPLICATE")


def _signal(command: c.SendSignal, history: History) -> int:
    return sum(1 for event in history if isinstance(event, e.SignalReceived) and event.command == command.id)


def _grown(command: c.AddSiblings, history: History) -> int:
    """Growing over a limit fails the run instead, and that is an answer, too."""
    grown = sum(1 for event in history if isinstance(event, e.GroupGrew) and event.command == command.id)
    burst = any(isinstance(event, e.RunFailed) and event.error.kind == "LIMIT_EXCEEDED" for event in history)
    return grown or int(burst)


def _gate(command: c.CompleteGate, history: History) -> int:
    of_gate = [event for event in history if getattr(event, "token", None) == command.token]
    said = sum(
        1
        for event in of_gate
        if isinstance(event, e.GateAnswered) and (event.data, event.by) == (command.data, command.by)
    )
    completed = sum(1 for event in of_gate if isinstance(event, e.GateCompleted) and event.data == command.data)
    count = said if any(isinstance(event, e.GateAnswered) for event in of_gate) else completed
    opened = sum(isinstance(event, e.GateOpened) for event in of_gate)
    return 1 if 1 <= count <= opened else count  # a gate that was opened again may get the same answer again


def _callback(command: c.ReceiveCallback, history: History) -> int:
    wanted = (command.token, command.attempt, command.output, command.error)
    return sum(
        1
        for event in history
        if isinstance(event, e.CallbackReceived) and (event.token, event.attempt, event.output, event.error) == wanted
    )


def _entity(command: c.MoveEntity, history: History) -> int:
    """Every copy of the letter that arrives moves it, to the same place."""
    return int(any(isinstance(event, e.EntityMoved) and event.reason == command.reason for event in history))


def _artifact(command: c.KeepArtifact, history: History) -> int:
    """A copy that arrives after another artifact has taken the name writes it once more."""
    return int(any(isinstance(event, e.ArtifactWritten) and event.digest == command.digest for event in history))


def _started(_command: c.StartRun, history: History) -> int:
    """A run that waits for its start exists, too."""
    return int(bool(history) and isinstance(history[0], e.Beginning))


def _forked(command: c.ForkRun, history: History) -> int:
    return sum(1 for event in history if isinstance(event, e.RunForked) and event.from_ == command.origin)


def _reasoned(kind: type[e.Event]) -> Evidence:
    """A change that an operator has given a reason of its own. A copy of the letter may find the visit failed again,
    and does it once more."""
    return lambda command, history: int(
        any(isinstance(event, kind) and getattr(event, "reason", None) == command.reason for event in history)
    )


def _raised(command: c.RaiseBudget, history: History) -> int:
    return sum(1 for event in history if isinstance(event, e.BudgetRaised) and event.command == command.id)


_EVIDENCE: dict[type[c.Command], Evidence] = {
    c.SendSignal: _signal,
    c.AddSiblings: _grown,
    c.CompleteGate: _gate,
    c.ReceiveCallback: _callback,
    c.MoveEntity: _entity,
    c.KeepArtifact: _artifact,
    c.StartRun: _started,
    c.ForkRun: _forked,
    c.SkipToken: _reasoned(e.TokenSkipped),
    c.JumpToken: _reasoned(e.TokenJumped),
    c.RaiseBudget: _raised,
}


def evidence(command: c.Command, history: History) -> int | None:
    """How often a command's effect is in the history; None: a history does not show it."""
    find = _EVIDENCE.get(type(command))
    return find(command, history) if find is not None else None


def check_families(records: Mapping[RunId, Record]) -> None:
    """Children and parents agree at the end: nobody waits for the dead, nobody outlives a parent that is over."""
    for record in records.values():
        for parent, token, alias in record.callers:
            above = records[RunId(parent)]
            visit = above.visits[token]
            record.expect(record.status in OVER, "children", f"parent {above.status}, child {record.status}")
            waits = visit.live and visit.child == (alias or record.run)
            record.expect(
                not waits, "children", f"visit {visit.id} of {parent} still waits for {record.run}: {record.status}"
            )
