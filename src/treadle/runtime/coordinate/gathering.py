"""What the next transaction will write, while the last one is still being written.

Owns the order: decisions are committed in the order in which they were made, and what has to happen when they are
durable happens in that order too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from treadle.errors import EngineStopped
from treadle.model import effects as f
from treadle.model.commands import Command
from treadle.model.errors import Rejection
from treadle.model.ids import RunId
from treadle.runtime.coordinate.hot import Hot
from treadle.store.port import Batch, Commit, Fence, InboxAnswer


class Item(Struct):
    """A command on its way, and who wants to know what becomes of it."""

    run: RunId
    command: Command
    workflow: str | None = None
    """Of a run to be started."""
    future: asyncio.Future[InboxAnswer] | None = None
    row: int = 0
    """The outbox row that asked for it: done with when the decision is."""
    keeps_row: bool = False
    """If it is refused the row stays: what is made of the refusal will settle it."""
    source: RunId | None = None
    """The run of that row, where it is another one: only while that is owned here, the row is ours to settle."""
    request: str = ""
    """The inbox request it came from."""
    fresh: bool = False
    """A run id made just now: nobody has to look whether it exists."""
    keyed: bool = False
    """Its idempotency key has been looked up: nobody was first."""
    tries: int = 0
    """How often deciding it has raised."""
    epoch: int = 0
    """Lease epoch the work ran under; 0: it does not matter. If another node has held the shard since then, the work
    was handed out anew and the report is stale, even if the shard has come back."""


class Decided(Struct):
    """One item that was decided and waits for its transaction."""

    item: Item
    hot: Hot | None
    local: list[f.Effect]
    """What is done in this process as soon as the decision is durable."""
    answer: InboxAnswer | None
    """None: nobody asked, and it was not refused."""
    commit: Commit | None = None


class Gathering(Struct):
    """A batch being put together."""

    decided: list[Decided] = []
    commits: list[Commit] = []
    done: list[int] = []
    parked: list[tuple[int, str]] = []
    revived: list[int] = []
    answers: list[InboxAnswer] = []
    fences: tuple[Fence, ...] = ()
    """Under which it was written."""

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
        if item.request and answer is not None:
            self.answers.append(answer)

    @property
    def writes(self) -> bool:
        """Whether the store has to be asked at all."""
        return bool(self.commits or self.done or self.parked or self.revived or self.answers)

    @property
    def runs(self) -> set[RunId]:
        """Those it says something about."""
        runs = {decided.item.run for decided in self.decided}
        return runs | {answer.run for answer in self.answers if answer.run is not None}

    def keep_answers(self, is_kept: Callable[[RunId], bool]) -> None:
        """The others are somebody else's to give."""
        self.answers = [answer for answer in self.answers if answer.run is None or is_kept(answer.run)]

    def rest(self, *others: Gathering) -> Gathering:
        """What belongs to no item, of this and of those behind it."""
        every = (self, *others)
        rows = {decided.item.row for one in every for decided in one.decided}
        requests = {decided.item.request for one in every for decided in one.decided}
        return Gathering(
            done=[row for one in every for row in one.done if row not in rows],
            parked=[letter for one in every for letter in one.parked],
            revived=[row for one in every for row in one.revived],
            answers=[answer for one in every for answer in one.answers if answer.request not in requests],
        )

    def halves(self) -> tuple[Gathering, Gathering]:
        """The same as two batches, in order."""
        first, second, middle = self.rest(), Gathering(), len(self.decided) // 2
        for number, decided in enumerate(self.decided):
            (first if number < middle else second).add(decided, decided.commit)
        return first, second

    def batch(self) -> Batch:
        return Batch(self.commits, self.done, self.parked, self.revived, self.answers)


def answer_to(item: Item, rejection: Rejection | None = None, run: RunId | None = None) -> InboxAnswer | None:
    """What the sender of an item is told: the run it is about, or why not. None for a report, which nobody waits for:
    most items are one."""
    if rejection is None and item.future is None and not item.request:
        return None
    return InboxAnswer(item.request, rejection, None if rejection is not None else run or item.run, item.run)


def refuse(item: Item, reason: BaseException) -> None:
    """Its sender is told that nobody will say."""
    if item.future is not None:
        unanswered(item.future, reason)


def unanswered(future: asyncio.Future[InboxAnswer], reason: BaseException) -> None:
    """Whoever waits for it need not wait any longer."""
    if not future.done():
        future.set_exception(EngineStopped(f"the engine has stopped, the outcome is unknown: {reason}"))


def sort_effects(effects: list[f.Effect]) -> tuple[list[f.Effect], list[f.Effect]]:
    """(for the store, for this process). Work that begins here at once needs no row: `busy` marks the run, and recovery
    finds it. Timers are both: durable rows, and alarms."""
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
