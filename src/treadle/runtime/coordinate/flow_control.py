"""Flow control: admits the starts of workflows that limit them, and starts queued runs when their turn comes (6.7).

Owns the books in memory, one for each such workflow whose home shard this node owns. The rules are the kernel's
(`kernel.admission`); this module carries them out. Must not decide anything about a run: it sends commands.

Theory of operation
    All runs of a workflow with flow control are in one shard, its home (`kernel.placing`). So the node that decides
    about one of its starts decides about all of its starts and ends, one after the other, and a book in memory is as
    good as the states of hot runs: it may be ahead of the store by the decisions being written, and is dropped with
    them if they are not written. What the store refuses to a node without the lease, it refuses for the book, too.

        start ─► arrive(book) ─┬─ start, fail: run.started          end of a run ─┐
                               ├─ queue: run.queued                 an alarm ─────┴─► take_next(book) ─► AdmitRun
                               ├─ join: JoinBatch to the queued run                                      run.started
                               └─ refuse: the caller is told

    Durable are the places: a run that is live or queued has a row `HoldPlace` in the outbox, written by the decision
    that made it so and removed by the one that ended it. A start under a rate has a row `MarkStart` until it counts no
    longer. The next owner of the shard finds these rows, reads the book (`book_reading`), and goes on.

Invariants
    1. A run counts as live from the moment it is chosen, before its start is decided, until its end is decided.
    2. Nothing starts while the book is being read; starts wait, and changes of runs are heard.
    3. A command of the book whose decision was not written is not sent again: the book is read anew and chooses anew.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, cast

from msgspec.structs import replace

from treadle.graph.execution_graph import ExecutionGraph, GraphFlow
from treadle.kernel import objections
from treadle.kernel.admission import Verdict, arrive, keys_of, priority_of, within_limits
from treadle.kernel.book import StartBook
from treadle.kernel.deciding import Refused
from treadle.kernel.placing import home_of
from treadle.kernel.start_place import StartPlace
from treadle.kernel.start_rates import counts_until
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.errors import Rejection
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED, RunStatus
from treadle.runtime.coordinate.book_reading import Opening, holds_place, read_current
from treadle.runtime.coordinate.flow_starts import held_place, input_of, is_live_fork, misplaced
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.coordinate.joining import Joining, as_start
from treadle.runtime.coordinate.library import Library
from treadle.runtime.coordinate.shards import Shards
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.patience import reliably
from treadle.runtime.surroundings.ports import Alarm, Clock
from treadle.store.port import OutboxRow, RunQuery, Store

Json = Any
log = logger("treadle.flow_control")


class FlowControl:
    """See the module's docstring."""

    def __init__(
        self,
        store: Store,
        shards: Shards,
        clock: Clock,
        library: Library,
        put: Callable[[Item], None],
        answer: Callable[[Item, Rejection | None], None],
        found: Callable[[Item, RunId], None],
        begin: Callable[[Item, ExecutionGraph], None],
        requeue: Callable[[Iterable[Item]], None],
        failed: Callable[[Item, Exception], None],
        drained: Callable[[], Coroutine[Any, Any, None]],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        settle: Callable[[int], None],
        is_over: Callable[[], bool],
    ) -> None:
        self._store = store
        self._shards = shards
        self._clock = clock
        self._library = library
        self._put = put
        self._answer = answer
        self._found = found
        self._begin = begin
        self._requeue = requeue
        self._failed = failed
        self._drained = drained
        self._spawn = spawn
        self._settle = settle
        self.warm: Callable[[list[RunId]], None] = lambda _runs: None
        """Reads runs that will be admitted soon, so that nobody waits for that when their turn has come."""
        self._is_over = is_over
        self._books: dict[str, StartBook] = {}
        self._opening: dict[str, Opening] = {}
        self._alarms: dict[str, tuple[int, Alarm]] = {}
        self._joining = Joining(requeue)

    @property
    def waiting(self) -> list[Item]:
        """Starts that wait for a book, and commands that wait behind a start."""
        return [*self._joining.waiting, *(item for opening in self._opening.values() for item in opening.items)]

    def book(self, workflow: str) -> StartBook | None:
        """The book of a workflow, if this node has it. Only for reading."""
        return self._books.get(workflow)

    # Starts

    def start(self, item: Item, graph: ExecutionGraph) -> None:
        """Decides what becomes of a start, or lets it wait until the book is read."""
        assert isinstance(item.command, c.StartRun) and graph.flow is not None
        workflow = graph.workflow_name
        if self._shards.of(item.run) != self._shards.of(home_of(workflow)):
            self._answer(item, misplaced(item.run, workflow))
            return
        book = self._books.get(workflow)
        if book is None:
            self._open(workflow).items.append(item)
            return
        if (batch := self._joining.batch_of(item.run)) is not None:
            self._found(item, batch)
            return
        place = self._place(item, graph, graph.flow)
        if place is not None:
            if isinstance(item.command, c.ForkRun):
                self._fork(book, item, graph, place, item.command)
            else:
                verdict = arrive(book, place, self._clock.now())
                self._give_way(book, verdict, item.run)
                self._carry_out(book, item, graph, place, verdict)

    def _place(self, item: Item, graph: ExecutionGraph, flow: GraphFlow) -> StartPlace | None:
        """The place of a start; None: it was refused."""
        assert isinstance(item.command, c.StartRun)
        value, objection = item.command.input if item.command.input is not None else {}, None
        if isinstance(item.command, c.ForkRun):
            changed = item.command.changes.input
            objection = objections.to_whole_input(graph, changed) if changed is not None else None
            value = input_of(item, item.command, flow) if objection is None else value
        else:
            objection = objections.to_input(graph, value)
        try:
            if objection is None:
                priority = priority_of(graph, value) if graph.priority is not None else 0
                keys = keys_of(graph, flow, value)
                return StartPlace(item.run, graph.version, flow, keys, priority, since=self._clock.now())
        except Refused as refused:
            objection = refused.rejection
        self._answer(item, objection)
        return None

    def _fork(self, book: StartBook, item: Item, graph: ExecutionGraph, place: StartPlace, command: c.ForkRun) -> None:
        """A fork is a start that waits for no further ones; one of a run that has ended by its point is none. Others
        give way to it only when it exists: it may be refused."""
        verdict = Verdict("start")
        if item.past is not None and is_live_fork(item.past, command):
            verdict = within_limits(book, place, self._clock.now())
        self._carry_out(book, item, graph, place, verdict)
        if verdict.cancel and book.find(item.run) is not None:
            self._give_way(book, verdict, item.run)

    def _carry_out(
        self, book: StartBook, item: Item, graph: ExecutionGraph, place: StartPlace, verdict: Verdict
    ) -> None:
        command = item.command
        assert isinstance(command, c.StartRun)
        if verdict.outcome == "refuse":
            self._answer(item, verdict.rejection)
        elif verdict.outcome == "join":
            assert verdict.batch is not None
            self._join(book, item, command, verdict.batch)
        else:
            place.why, place.due, place.since = verdict.why, verdict.due, verdict.since or place.since
            queued = verdict.why if verdict.outcome == "queue" else None
            item.place = place
            item.command = replace(command, queued=queued, due=verdict.due, refused=verdict.error)
            self._begin(item, graph)

    def _give_way(self, book: StartBook, verdict: Verdict, run: RunId) -> None:
        for other in verdict.cancel:
            book.leaving(other)
            self._cancel(other, verdict.why, f"replaced by run {run}")

    def _cancel(self, run: RunId, by: str, reason: str) -> None:
        self._put(Item(run, c.CancelRun(by=by, reason=reason), is_of_book=True))

    def _join(self, book: StartBook, item: Item, command: c.StartRun, batch: RunId) -> None:
        if batch in book.places:
            book.join(book.places[batch])
        self._joining.begin(item, command, batch)
        self._put(item)

    def joined(self, start: c.StartRun, state: RunState) -> None:
        """A start has become an item of a batch, or was one before. A full batch starts as soon as the limits allow."""
        self._joining.joined(start.run, state.run, self._clock.now())
        workflow = state.graph.workflow_name
        book = self._books.get(workflow)
        place = book.places.get(state.run) if book is not None else None
        if book is not None and place is not None and book.joined(place, len(state.items)):
            book.collected(place)
            self._line_up(book, place)
            self._choose(workflow, book)

    def not_joined(self, item: Item) -> bool:
        """A start could not join its batch, which has started or ended meanwhile: it is decided anew."""
        if item.start is None:
            return False
        self._joining.not_joined(item)
        return True

    def left(self, item: Item) -> Item:
        """Called with an item for a run of another node. A start on its way into a batch goes there as the start that
        it was: only the owner of the book knows which batch it may join."""
        if item.start is not None:
            as_start(item)
            self._joining.over(item.run)
        return item

    def answered(self, item: Item) -> None:
        """A command was answered without changing anything."""
        if isinstance(item.command, c.AdmitRun):
            self._not_admitted(item.run)
        elif item.start is not None:
            self._joining.over(item.start.run)
        elif item.is_of_book:
            for workflow, book in self._books.items():
                if book.stays(item.run):
                    self._choose(workflow, book)

    def waits_behind(self, item: Item) -> bool:
        """Lets a command wait behind the start of its run, if that waits for a book or is on its way into a batch.
        Returns whether it does."""
        if self._joining.keeps(item):
            return True
        for opening in self._opening.values():
            if any(start.run == item.run for start in opening.items):
                opening.items.append(item)
                return True
        return False

    # Decisions about runs

    def may_decide(self, item: Item, state: RunState) -> bool:
        """Whether a command may be decided: an AdmitRun only if the book still wants it."""
        book = self._books.get(state.graph.workflow_name)
        return not isinstance(item.command, c.AdmitRun) or (book is not None and item.run in book.chosen)

    def decided(
        self, item: Item, state: RunState, before: RunStatus, effects: list[f.Effect]
    ) -> tuple[list[f.Effect], Sequence[int]]:
        """A decision about a run was made. Returns its effects with those for the book, and the rows that end with
        it."""
        workflow, run, status = state.graph.workflow_name, state.run, state.status
        opening = self._opening.get(workflow)
        if opening is not None:
            opening.moved[run] = (status, len(state.items))
        book = self._books.get(workflow)
        if before is RunStatus.CREATED:
            assert book is not None, "a start is decided with its book"
            return [*effects, *self._entered(book, item, state)], ()
        if before is RunStatus.QUEUED and isinstance(item.command, c.AdmitRun):
            return self._admitted(book, item.command, state, effects)
        if status in RUN_ENDED and before not in RUN_ENDED:
            return effects, self._left(book, workflow, run)
        if before in RUN_ENDED and status not in RUN_ENDED:
            return [*effects, *self._reopened(book, state)], ()
        return effects, ()

    def _entered(self, book: StartBook, item: Item, state: RunState) -> list[f.Effect]:
        """A new run has started or is queued."""
        place, workflow = item.place, state.graph.workflow_name
        assert place is not None, "a start is decided with its place"
        if state.status is RunStatus.QUEUED:
            book.queue(place)
            held = held_place(workflow, place)  # queued, also if its turn is at once
            self._choose(workflow, book)
            return [held]
        assert isinstance(item.command, c.StartRun)
        if item.command.refused is not None:
            return []  # it has failed at once
        if state.status in RUN_ENDED and state.started_at < self._clock.now():
            return []  # the fork of a run that had ended
        book.start(place, self._clock.now())
        marks = self._marks(book, place, workflow)
        if state.status in RUN_ENDED:
            book.leave(place.run)
            return marks
        return [*marks, held_place(workflow, place)] if place.flow.concurrency is not None else marks

    def _admitted(
        self, book: StartBook | None, command: c.AdmitRun, state: RunState, effects: list[f.Effect]
    ) -> tuple[list[f.Effect], Sequence[int]]:
        """A queued run has started, perhaps only to fail: then it does not count for a rate."""
        assert book is not None, "see `may_decide`"
        workflow = state.graph.workflow_name
        if command.refused is not None:
            return effects, self._left(book, workflow, state.run)
        place = book.admitted(state.run, self._clock.now() if state.forked else state.started_at)
        marked = [*effects, *self._marks(book, place, workflow)]
        if state.status in RUN_ENDED:
            return marked, self._left(book, workflow, state.run, place)
        return marked, () if place.flow.concurrency is not None else place.rows

    def _not_admitted(self, run: RunId) -> None:
        """A chosen run cannot be read, or its start cannot be decided: its rate does not wait for it."""
        for workflow, book in self._books.items():
            if book.not_admitted(run) is not None:
                self._choose(workflow, book)

    def _left(
        self, book: StartBook | None, workflow: str, run: RunId, place: StartPlace | None = None
    ) -> Sequence[int]:
        """A run has ended: others may start."""
        if book is None:
            return ()  # its rows are found when the book is read
        place = book.leave(run) or place
        if place is None:
            return ()
        self._choose(workflow, book)
        return place.rows

    def _reopened(self, book: StartBook | None, state: RunState) -> list[f.Effect]:
        """An ended run is live again, by a retry or because its parent undoes it."""
        graph, flow = state.graph, state.graph.flow
        assert flow is not None
        if flow.concurrency is None:
            return []
        value = state.input["items"][0] if flow.batch is not None else state.input
        place = StartPlace(state.run, graph.version, flow, keys_of(graph, flow, value), state.priority)
        if book is not None:
            book.reopen(place)
            self._choose(graph.workflow_name, book)
        elif graph.workflow_name in self._opening:
            self._opening[graph.workflow_name].reopened[state.run] = place
        return [held_place(graph.workflow_name, place)]

    def _marks(self, book: StartBook, place: StartPlace, workflow: str) -> list[f.Effect]:
        rate, at = place.flow.rate, place.started
        if rate is None or at is None:
            return []
        level = book.rates.level(place.keys.rate) if rate.burst is not None else None
        return [f.MarkStart(workflow, place.keys.rate, at, counts_until(rate, at, level), level)]

    # Queued runs start

    def _choose(self, workflow: str, book: StartBook) -> None:
        """Starts every queued run that may start now, and has those that come next read."""
        now = self._clock.now()
        while (place := book.take_next(now)) is not None:
            self._put(Item(place.run, c.AdmitRun(), is_of_book=True))
            self.warm(book.queued.behind(place))
        self._arm(workflow, book)

    def _line_up(self, book: StartBook, place: StartPlace) -> None:
        """A run waits for no further starts: the limits are looked at now."""
        verdict = within_limits(book, place, self._clock.now())
        if verdict.outcome == "refuse":
            assert verdict.rejection is not None
            self._cancel(place.run, "flow", verdict.rejection.message)
        elif verdict.outcome == "fail":
            book.chosen[place.run] = place
            self._put(Item(place.run, c.AdmitRun(refused=verdict.error), is_of_book=True))
        else:
            self._give_way(book, verdict, place.run)
            book.queue(place)

    def _arm(self, workflow: str, book: StartBook) -> None:
        at = book.wake_at()
        armed = self._alarms.get(workflow)
        if armed is not None and armed[0] == at:
            return
        if armed is not None:
            armed[1].cancel()
            del self._alarms[workflow]
        if at is not None:
            self._alarms[workflow] = (at, self._clock.call_at(at, lambda: self._ring(workflow)))

    def _ring(self, workflow: str) -> None:
        self._alarms.pop(workflow, None)
        book = self._books.get(workflow)
        if book is None or self._is_over():
            return
        for place in book.take_all_due(self._clock.now()):
            self._line_up(book, place)
            self._choose(workflow, book)
        self._choose(workflow, book)

    # Books are read, kept and dropped

    def held(self, row: OutboxRow, effect: f.HoldPlace) -> None:
        """A place is durable, or was found by recovery."""
        book = self._books.get(effect.workflow)
        if book is None:
            self._open(effect.workflow).heard.append(row)
            return
        place = book.find(row.run)
        if place is None:
            self._spawn(self._check_place(row, effect.workflow))
        elif row.id not in place.rows:
            place.rows = (*place.rows, row.id)

    async def _check_place(self, row: OutboxRow, workflow: str) -> None:
        """The book does not know a run that has a row. Mostly it has ended; else its start was written while the book
        was read, and the book is read again."""
        effect = cast(f.HoldPlace, row.effect)
        found = await reliably(lambda: self._store.find_runs(RunQuery(run=row.run)), self._is_over)
        graph = await reliably(lambda: self._library.graph(workflow, effect.version), self._is_over)
        book = self._books.get(workflow)
        if book is not None and book.find(row.run) is not None:
            self.held(row, effect)
        elif not found or not holds_place(graph, found[0].status):
            self._settle(row.id)
        else:
            self._forget([workflow] if book is not None else [])
            self._open(workflow).heard.append(row)

    def marked(self, row: OutboxRow, effect: f.MarkStart) -> None:
        """A start is durable, or was found by recovery."""
        book = self._books.get(effect.workflow)
        if book is None:
            self._open(effect.workflow).heard.append(row)
            return
        book.rates.marked(effect.key, effect.until, row.id)
        for expired in book.rates.expire(self._clock.now()):
            self._settle(expired)

    def again(self, items: list[Item]) -> list[Item]:
        """A batch was not written: books are dropped, and these items are to be decided again. Returns them without
        those that the books have decided."""
        self._forget(self._books)
        self._joining.forget_joined()
        for opening in self._opening.values():
            opening.is_stale = True
        for item in items:
            as_start(item)
        return [item for item in items if not item.is_of_book]

    def drop_unless(self, owns: Callable[[str], bool]) -> None:
        """Forgets the books of workflows whose home this node does not own any more."""
        gone = [workflow for workflow in self._books if not owns(home_of(workflow))]
        self._forget(gone)
        if gone:
            self._joining.forget_joined()

    def close(self) -> None:
        """Starts nothing from now on."""
        self._forget(self._books)

    def _forget(self, workflows: Iterable[str]) -> None:
        for workflow in list(workflows):
            del self._books[workflow]
            armed = self._alarms.pop(workflow, None)
            if armed is not None:
                armed[1].cancel()

    def _open(self, workflow: str) -> Opening:
        opening = self._opening.get(workflow)
        if opening is None:
            opening = self._opening[workflow] = Opening()
            self._spawn(self._read(workflow, opening))
        return opening

    async def _read(self, workflow: str, opening: Opening) -> None:
        try:
            read = await read_current(self._store, self._library, workflow, self._is_over, opening, self._drained)
        except Exception as problem:
            log.error("a book cannot be read", workflow=workflow, exc_info=problem)
            del self._opening[workflow]
            for item in opening.items:
                self._failed(item, problem)
            return
        del self._opening[workflow]
        if self._shards.owns(home_of(workflow)):
            self._books[workflow] = read.book
            for row in read.gone:
                self._settle(row)
            self._make_room(read.book)
            self._ring(workflow)
        self._requeue(opening.items)

    def _make_room(self, book: StartBook) -> None:
        """Lets runs give way that had to when the last owner of the book stopped: a run that replaces another is
        written before the other is cancelled."""
        for place in book.superseded():
            self._cancel(place.run, "debounce", "replaced by a later start")
        for run in book.crowded_out():
            book.leaving(run)
            self._cancel(run, "concurrency", "replaced by a later start")
