"""An entry of a log that is written along with a decision, in its transaction.

Owns the way of such an entry from a caller to the coordinator of this process: the first command that is sent inside
`with Along(entry):` takes it. Promises that it is written if and only if the command was not refused, and that
`is_written` says so. Brings back the row of a run that the command has started, where the store has told its number
with the commit, so that it need not be read again. Where several nodes share a store nothing is taken along: appending
to a chained log waits for everybody else who appends to it, and the decisions of all nodes would wait with it. Must not
know what the entry says.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any

from treadle.model.events import Beginning
from treadle.store.port import Commit, CommitRows, InboxAnswer, OutboxRow, RunRow
from treadle.store.service import Entry


class Along:
    """See the module's docstring."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.is_written = False
        """Whether the entry is in the log. If not, the caller has to write it."""
        self.row: RunRow | None = None
        """The run that the command has started, as it was when that became durable; None: not known."""
        self.is_free = False
        """Whether a command may take the entry."""
        self._is_inside = False
        self._token: Token[Along | None] | None = None

    def __enter__(self) -> Along:
        self.is_free = self._is_inside = True
        self._token = _current.set(self)
        return self

    def __exit__(self, *_problem: Any) -> None:
        self.is_free = self._is_inside = False  # tasks that were started inside have a copy of the context
        if self._token is not None:
            _current.reset(self._token)

    def told(self, answer: InboxAnswer, commit: Commit | None, rows: list[OutboxRow]) -> None:
        """The command that took the entry has its durable answer, and perhaps a decision with these rows. A refused one
        leaves the entry to the next command."""
        self.is_written = answer.rejection is None
        self.is_free = self._is_inside and not self.is_written
        number = rows.numbers.get(commit.run) if commit is not None and isinstance(rows, CommitRows) else None
        if commit is not None and number is not None:
            self.row = _begun(commit, number)


def _begun(commit: Commit, number: int) -> RunRow:
    """The row of a run that a decision has created."""
    started, last = commit.events[0], commit.events[-1]
    assert isinstance(started, Beginning)
    return RunRow(
        run=commit.run,
        workflow=started.workflow,
        version=started.version,
        status=commit.status,
        seq=last.seq,
        idempotency_key=started.idempotency_key,
        started=last.at if commit.cuts else started.at,
        changed=last.at,
        busy=commit.busy,
        entity=started.entity.address if started.entity is not None else None,
        tags=started.tags,
        parent=started.parent.run if started.parent is not None else None,
        number=number,
    )


_current: ContextVar[Along | None] = ContextVar("treadle_along", default=None)


def taken_along() -> Along | None:
    """What the command that is being sent takes along."""
    along = _current.get()
    if along is None or not along.is_free:
        return None
    along.is_free = False
    return along
