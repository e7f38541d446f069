"""The batch that gathers for the next transaction while the last one is being written, and the items in it.

Owns the order: decisions are committed in the order in which they were made, and their answers, effects and news go out
in that order, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct

from treadle.errors import EngineStopped
from treadle.kernel.points import Past
from treadle.kernel.start_place import StartPlace
from treadle.model import effects as f
from treadle.model.commands import Command, JoinBatch, StartRun
from treadle.model.errors import Rejection
from treadle.model.ids import RunId
from treadle.runtime.coordinate.along import Along
from treadle.runtime.coordinate.hot import Hot
from treadle.store.port import Batch, Commit, Entry, Fence, InboxAnswer, InboxRequest


class Item(Struct):
    """A command on its way to a decision, and where it came from."""

    run: RunId
    command: Command
    workflow: str | None = None
    """Workflow of a run to be started; None for every other command."""
    future: asyncio.Future[InboxAnswer] | None = None
    """Gets the durable answer; None: no caller waits for it."""
    row: int = 0
    """Outbox row the command came from, 0: none. The row is removed in the transaction of the decision."""
    keeps_row: bool = False
    """A refusal leaves the row in the outbox: the command that follows from the refusal removes it."""
    source: RunId | None = None
    """Run whose outbox has the row, if it is another run. This node may remove the row only while it owns that run."""
    request: str = ""
    """Inbox request the command came from; empty: none."""
    asked: InboxRequest | None = None
    """That request, if it is not in the inbox and is to be kept with its answer."""
    fresh: bool = False
    """The run id was made just now, so the store need not be asked whether it exists."""
    past: Past | None = None
    """History of the run that a fork comes from, once it has been read."""
    keyed: bool = False
    """The idempotency key has been looked up, and no run has it."""
    recalls: bool = False
    """A migration that needs outputs out of the run's history."""
    tries: int = 0
    """How often deciding the command has raised."""
    epoch: int = 0
    """Lease epoch the work ran under; 0: any. If another node has held the shard since then, the work was handed out
    anew and the report is stale, even if the shard has come back."""
    place: StartPlace | None = None
    """Of a start that was admitted or queued: the place of its run in its workflow's book."""
    start: StartRun | None = None
    """Of a start that joins a batch: the start itself."""
    along: Along | None = None
    """An entry of a log that is written with the decision, unless the command is refused."""
    is_of_book: bool = False
    """The book of a workflow has made the command. If its decision is not written, the book is read and chooses
    anew."""

    @property
    def asks_for(self) -> RunId:
        """The run that its sender has asked for: that of a start which joins a batch is not the batch's."""
        return self.start.run if self.start is not None else self.run


class Decided(Struct):
    """One item that was decided and waits for its transaction."""

    item: Item
    hot: Hot | None
    local: list[f.Effect]
    """Effects that this process carries out as soon as the decision is durable."""
    answer: InboxAnswer | None
    """None: no caller waits for an answer, and the command was not refused."""
    commit: Commit | None = None
    rows: Sequence[int] = ()
    """Outbox rows that end with this decision: the places of a run that has ended (`flow_control`)."""


class Gathering(Struct):
    """A batch being put together."""

    decided: list[Decided] = []
    commits: list[Commit] = []
    done: list[int] = []
    parked: list[tuple[int, str]] = []
    revived: list[int] = []
    answers: list[InboxAnswer] = []
    entries: list[Entry] = []
    fences: tuple[Fence, ...] = ()
    """Fences the batch was written under."""
    sent: float = 0.0
    """When it was given to the store, by the event loop's clock."""

    def __bool__(self) -> bool:
        return bool(self.decided or self.writes)

    def add(self, decided: Decided, commit: Commit | None) -> None:
        item = decided.item
        self.decided.append(decided)
        if commit is not None:
            decided.commit = commit
            self.commits.append(commit)
        answer = decided.answer
        if item.row and not (item.keeps_row and answer is not None and answer.rejection is not None):
            self.done.append(item.row)
        self.done.extend(decided.rows)
        if item.request and answer is not None:
            self.answers.append(answer)
        if item.along is not None and answer is not None and answer.rejection is None:
            self.entries.append(item.along.entry)

    @property
    def writes(self) -> bool:
        """Whether the batch has anything to write."""
        return bool(self.commits or self.done or self.parked or self.revived or self.answers or self.entries)

    @property
    def runs(self) -> set[RunId]:
        """Runs the batch is about."""
        runs = {decided.item.run for decided in self.decided}
        return runs | {answer.run for answer in self.answers if answer.run is not None}

    def keep_answers(self, is_kept: Callable[[RunId], bool]) -> None:
        """Drops answers for runs this node no longer owns."""
        self.answers = [answer for answer in self.answers if answer.run is None or is_kept(answer.run)]

    def without_items(self, *others: Gathering) -> Gathering:
        """The writes of these batches that belong to no item: rows and answers that would be lost if only the items
        were decided again."""
        every = (self, *others)
        rows = {decided.item.row for one in every for decided in one.decided}
        rows.update(row for one in every for decided in one.decided for row in decided.rows)
        requests = {decided.item.request for one in every for decided in one.decided}
        return Gathering(
            done=[row for one in every for row in one.done if row not in rows],
            parked=[letter for one in every for letter in one.parked],
            revived=[row for one in every for row in one.revived],
            answers=[answer for one in every for answer in one.answers if answer.request not in requests],
        )

    def halves(self) -> tuple[Gathering, Gathering]:
        """Cuts the batch in two, in order."""
        first, second, middle = self.without_items(), Gathering(), len(self.decided) // 2
        for number, decided in enumerate(self.decided):
            (first if number < middle else second).add(decided, decided.commit)
        return first, second

    def batch(self) -> Batch:
        return Batch(self.commits, self.done, self.parked, self.revived, self.answers, self.entries)


def answer_to(
    item: Item, rejection: Rejection | None = None, run: RunId | None = None, *, applied: bool = False
) -> InboxAnswer | None:
    """The answer to an item: to a start the run, to any other command whether it had an effect, or the rejection. None
    if no caller waits and it was not refused: most items are reports of work."""
    if rejection is not None:
        return InboxAnswer(item.request, rejection, None, item.run, item.asked)
    if item.future is None and not item.request:
        return None
    result = run or item.run if isinstance(item.command, StartRun | JoinBatch) else applied
    return InboxAnswer(item.request, None, result, item.run, item.asked)


def fail_item(item: Item, reason: BaseException) -> None:
    """Fails the item's future: the outcome is unknown."""
    if item.future is not None:
        fail_future(item.future, reason)


def fail_future(future: asyncio.Future[InboxAnswer], reason: BaseException) -> None:
    """Fails a future that will not get its answer. Raises nothing if it has one."""
    if not future.done():
        future.set_exception(EngineStopped(f"the engine has stopped, the outcome is unknown: {reason}"))


def sort_effects(effects: list[f.Effect]) -> tuple[list[f.Effect], list[f.Effect]]:
    """Returns (effects for the store, effects for this process). Work that begins here at once needs no row: the store
    marks the run `busy`, and recovery finds it by that mark. Timers go to both, as durable rows and as alarms."""
    kept: list[f.Effect] = []
    local: list[f.Effect] = []
    for effect in effects:
        kind = type(effect)
        if kind is f.StopTask or (isinstance(effect, f.RunTask) and effect.queue is None and effect.slot is None):
            local.append(effect)
        elif kind is f.SetTimer or kind is f.ClearTimer:
            kept.append(effect)
            local.append(effect)
        else:
            kept.append(effect)
    return kept, local
