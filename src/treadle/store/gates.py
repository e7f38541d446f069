"""Open gates as rows, and the questions about them that every store answers alike.

Owns the row and the query. Promises that a row that `fits` a query is one that the query asks for: databases narrow the
rows down by columns that are derived from the row (`people`, `words`), and `fits` decides. Must not know who may answer
a gate; that is the kernel's.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from treadle.model.effects import NoteGate
from treadle.model.ids import RUN_GATE, RunId, TokenId
from treadle.model.people import is_asked, people_of
from treadle.model.references import Person

Json = Any


class GateRow(Struct, frozen=True):
    """A human task that waits for an answer, as its run's `gate.opened` describes it; or a run that is out of time and
    waits for a person to extend or abort it (`token` is `RUN_GATE`)."""

    run: RunId
    token: TokenId
    node: str
    workflow: str
    opened: int
    title: str | None = None
    assign: Json = None
    due: int | None = None
    claimed_by: str | None = None
    """The person who has claimed it: no other answers it, unless by force."""
    escalated: Json = None
    """The people it was escalated to."""
    reminded: int = 0
    """Reminders sent."""
    commented: int = 0
    """Comments made."""
    answered: int = 0
    """Answers of a quorum so far."""

    @property
    def can(self) -> tuple[str, ...]:
        """The commands a person may give. A gate of a whole run cannot be answered: the run is out of time."""
        return can(self.token, self.title)

    @property
    def visit(self) -> TokenId:
        """The number of the visit, as people see it and `complete_gate` takes it."""
        return self.token

    @property
    def place(self) -> GatePlace:
        """Where it stands in the list of gates, longest open first."""
        return GatePlace(self.opened, self.run, self.token)

    def noted(self, note: NoteGate) -> GateRow:
        """The row after something about the gate has changed."""
        return msgspec.structs.replace(
            self,
            claimed_by=note.by,
            escalated=note.escalated,
            reminded=note.reminded,
            commented=note.commented,
            answered=note.answered,
            node=note.moved.node if note.moved is not None else self.node,
        )


def can(gate: TokenId, title: str | None = None) -> tuple[str, ...]:
    """The commands a person may give about a gate. The title of a run's own gate says what it is out of: the kernel
    begins it with `budget.` if that is its budget."""
    if gate == RUN_GATE and title is not None and title.startswith("budget."):
        return ("budget", "abort")
    return ("extend", "abort") if gate == RUN_GATE else ("answer", "claim", "release", "delegate", "comment")


class GateCount(Struct, frozen=True):
    """The open gates of one node."""

    workflow: str
    node: str
    count: int
    overdue: int
    oldest: int
    """When the longest open one was opened."""


@runtime_checkable
class CountsGates(Protocol):
    """A store that counts open gates itself."""

    async def count_gates(self, now: int) -> list[GateCount]:
        """All open gates by workflow and node; those are overdue whose due time is before `now`."""


class GatePlace(NamedTuple):
    """The order of gates: longest open first."""

    opened: int
    run: str
    token: int


class GateQuery(Struct, frozen=True):
    """A query for open gates: every condition that is set must hold."""

    run: RunId | None = None
    token: TokenId | None = None
    workflow: str | None = None
    workflows: tuple[str, ...] = ()
    """Patterns of names of workflows, such as `orders/*`; empty: any."""
    node: str | None = None
    assignee: str | None = None
    """A person or group that is asked by this name, or the person who has claimed it."""
    mine: Person | None = None
    """Asked of this person, by name or group, or claimed by them."""
    overdue_at: int | None = None
    """Its due time is before this moment."""
    text: str | None = None
    """Part of its title, node or run, in capitals or not."""
    after: GatePlace | None = None
    """The page begins after this place."""
    limit: int = 1_000


ALL_GATES = GateQuery()


def fits(query: GateQuery, row: GateRow) -> bool:
    """Whether a query asks for this row."""
    if query.after is not None and row.place <= query.after:
        return False
    exact = ((query.run, row.run), (query.token, row.token), (query.workflow, row.workflow), (query.node, row.node))
    if any(wanted is not None and wanted != has for wanted, has in exact):
        return False
    if query.workflows and not any(fnmatchcase(row.workflow, pattern) for pattern in query.workflows):
        return False
    if query.overdue_at is not None and (row.due is None or row.due >= query.overdue_at):
        return False
    if query.text is not None and query.text.casefold() not in words_of(row):
        return False
    return _fits_people(query, row)


def _fits_people(query: GateQuery, row: GateRow) -> bool:
    name, person = query.assignee, query.mine
    if name is not None and row.claimed_by != name:
        named = {asked for assign in (row.assign, row.escalated) for _, asked in people_of(assign)}
        if name not in named:
            return False
    if person is None or row.claimed_by == person.name:
        return True
    return is_asked(row.assign, person) or is_asked(row.escalated, person)


def words_of(row: GateRow) -> str:
    """The text in which a query looks for its words."""
    return f"{row.title or ''}\n{row.node}\n{row.run}".casefold()


def written(people: Json) -> str:
    """The people of a gate as a column: JSON, in which a name is found as `quoted` writes it."""
    return msgspec.json.encode(people).decode()


def quoted(query: GateQuery) -> list[str]:
    """The names a query looks for, as `written` writes them. A row with none of them does not fit; without names any
    row may."""
    names = [query.assignee] if query.assignee is not None else []
    if query.mine is not None and not names:
        names = [query.mine.name, *query.mine.groups]
    return [msgspec.json.encode(name).decode() for name in names]


def unwritten(people: str | None) -> Json:
    """The people of a column; None where it cannot be read, because nothing but lists depends on it."""
    try:
        return msgspec.json.decode(people) if people is not None else None
    except msgspec.DecodeError:
        return None


GATE_COLUMNS = ("claimed_by", "escalated", "reminded", "commented", "answered")
"""Columns of a row that change while the gate is open, as `changing` gives them."""


def changing(row: GateRow | NoteGate) -> tuple[Any, ...]:
    """The values of `GATE_COLUMNS`."""
    by = row.claimed_by if isinstance(row, GateRow) else row.by
    escalated = written(row.escalated) if row.escalated is not None else None
    return by, escalated, row.reminded, row.commented, row.answered
