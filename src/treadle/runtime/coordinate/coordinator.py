"""The coordinator: takes commands about the runs it owns, decides them one after the other, commits many together.

Owns the hot states and the order of decisions. Promises: a decision is durable before its answer, effects and news go
out; a decision that could not be committed has no consequences; a command is decided exactly once per delivery, and
delivering it again is harmless. Must not know a rule (the kernel has them), a driver, or how work is executed.

Theory of operation
    One event loop, no locks. `tell` and `ask` append to a queue; a turn of the loop takes everything from it, decides
    on hot states and gathers decisions; when no commit is under way the gathered batch is sent to the store, and while
    it syncs the next one gathers. So a lone chain pays one sync per step, many runs share one sync, and no decision
    waits for a timer to fill a batch.

        tell/ask ─► queue ─► turn: decide, gather ─► commit n   (n+1 gathers meanwhile)
                      ▲                                 │ durable
                      └── reports, timers, rows ◄── effects delivered, futures answered, news published

    A state in memory may be ahead of the store by the decisions that are gathered or being committed. Deciding on such
    a state is safe because the store takes batches in order and refuses a decision whose predecessor is missing.

Failure
    1. The store is unavailable: the outcome of a commit may be unknown. The store is asked until it answers. If the
       batch was written, it is durable like any other. If not, or if it was refused, all hot states are dropped. The
       items of that batch and of the one gathered behind it go back to the front of the queue, in order, and are
       decided again on states read from the store. `recovery` then carries out effects that were left undone.
    2. The lease of a shard is lost: nothing about its runs may be written any more. Their states are dropped, their
       commands go to `other_nodes`, and the other commands of the batch are decided again. On a store with one shard
       the coordinator stops, and every waiting caller gets EngineStopped.
    3. Deciding raises: a defect of Treadle, or of a definition. The run's state is dropped and the item is tried once
       more on a state read from the store. If that raises too, the command is refused, and the outbox row it came from
       becomes a dead letter. Other runs are not affected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from contextvars import copy_context
from typing import Any

from msgspec.structs import replace

from treadle.errors import EngineStopped, StoreConflict, StoreUnavailable
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.decide import decide, decide_fork
from treadle.kernel.migration_outputs import HistoryNeeded
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model.effects import Effect
from treadle.model.errors import Rejection
from treadle.model.events import Event
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RUN_ENDED
from treadle.runtime.coordinate.along import taken_along
from treadle.runtime.coordinate.background import Background
from treadle.runtime.coordinate.committer import Committer
from treadle.runtime.coordinate.feed import Feed
from treadle.runtime.coordinate.flow_control import FlowControl
from treadle.runtime.coordinate.gathering import (
    Decided,
    Gathering,
    Item,
    answer_to,
    fail_future,
    fail_item,
    sort_effects,
)
from treadle.runtime.coordinate.hold_back import HoldBack
from treadle.runtime.coordinate.hot import Hot, Hots
from treadle.runtime.coordinate.incoming import Incoming
from treadle.runtime.coordinate.library import Library, VersionMissing, not_deployed
from treadle.runtime.coordinate.loading import Loading
from treadle.runtime.coordinate.neighbours import Neighbours
from treadle.runtime.coordinate.refusals import Refusals
from treadle.runtime.coordinate.shards import Shards
from treadle.runtime.surroundings.ports import Clock
from treadle.store.port import Commit, InboxAnswer, InboxRequest, OutboxRow, Store

TURN_S = 0.005
"""How long one turn decides before other callbacks of the loop get their turn: timers and sockets must not wait until a
long queue is empty."""

Subscribed = Callable[[str, list[Event]], list[Effect]]
Shape = Callable[[RunState, c.Command, list[Event], list[Effect]], list[Effect]]


class Coordinator:
    """See the module's docstring."""

    def __init__(self, store: Store, shards: Shards, clock: Clock, library: Library, around: Neighbours) -> None:
        self.store = store
        self.shards = shards
        self.clock = clock
        self.library = library
        self.feed = Feed()
        self._around = around
        self.shape: Shape | None = None
        """Rewrites the effects of a decision before they are kept: queue work becomes offers. Set by `offer_work`."""
        self.observers: list[Callable[[Sequence[Commit], float], None]] = []
        """Are told every written batch of decisions, and how many seconds writing took: for measuring and tracing."""
        self.subscribed: Subscribed | None = None  # what subscriptions add to the effects of a decision
        self.stopped: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        """Context variables of every turn. Otherwise a turn would run with those of the caller that woke it."""
        self._queue = Incoming()
        self._scheduled = False
        self._background = Background(self._is_idle, self._is_over)
        self.spawn = self._background.spawn
        """Runs a coroutine in the background. The coordinator is not quiet before it has ended."""
        self.wait_quiet = self._background.wait_quiet
        """Waits until there is nothing left to decide, load or write."""
        self._hots = Hots()
        self._asked: dict[asyncio.Future[InboxAnswer], None] = {}
        self._refusals = refusals = Refusals(around.defect, self.settle, self._answer, self.put)
        back, held = self._decide_again, HoldBack(self._wake, self._loop.time)
        self._committer = Committer(store, shards, self._durable, back, self._lost, refusals.unwritable, held)
        self.flow = FlowControl(
            store,
            shards,
            clock,
            library,
            self.put,
            self._answer,
            self._found,
            self._begin,
            self._give_back,
            self._not_loaded,
            self.drained,
            self.spawn,
            self.settle,
            self._is_over,
        )
        """Decides whether a start becomes a run now, for workflows that limit their starts (6.7)."""
        self._loading = Loading(
            self._committer,
            library,
            self._hots,
            self.spawn,
            self._give_back,
            refusals.unreadable,
            self._found,
            shards.owns,
            self._is_over,
        )
        self.flow.warm = self._loading.warm

    # Commands come in

    def tell(self, run: RunId, command: c.Command, row: int = 0, source: RunId | None = None) -> None:
        """Queues a command without waiting for its answer: a report, or the command of outbox `row` of run `source`."""
        self.put(Item(run, command, row=row, source=source))

    async def ask(
        self,
        run: RunId,
        command: c.Command,
        workflow: str | None = None,
        fresh: bool = False,
        asked: InboxRequest | None = None,
    ) -> InboxAnswer:
        """Queues a command and waits for its durable answer, which is kept with the request `asked`. Raises `Moved` if
        another node owns the run. What is to be written along with the decision: `along`."""
        if self.stopped is not None:
            raise EngineStopped(f"this engine has stopped: {self.stopped}") from self.stopped
        future: asyncio.Future[InboxAnswer] = self._loop.create_future()
        self._asked[future] = None
        along = None if self.shards.is_shared else taken_along()
        try:
            request = asked.id if asked is not None else ""
            self.put(Item(run, command, workflow, future, request=request, asked=asked, fresh=fresh, along=along))
            return await future
        finally:
            del self._asked[future]

    def put(self, item: Item) -> None:
        if self.stopped is None:
            self._queue.put(item)
            if not self._scheduled:
                self._wake()

    def settle(self, row: int, parked: str | None = None) -> None:
        """Removes an outbox row without a command, or makes it a dead letter for the reason `parked`."""
        self._committer.settle(row, parked)
        self._wake()

    def revive(self, row: int | None, run: RunId, request: str = "") -> None:
        """Takes a dead letter back into the outbox. None: there is no such row, and the request for it is refused."""
        rejection = Rejection("NOT_FOUND", "there is no such dead letter") if row is None else None
        self._committer.revive(row, InboxAnswer(request, rejection, run=run) if request else None)
        self._wake()

    def offer_work(self, shape: Shape) -> None:
        """Workers claim the queue work of this store: `shape` turns it into offers, and it is not executed here."""
        self.shape = shape
        self._hots.are_offered, self._hots.are_limits_offered = True, self.shards.is_shared

    async def drained(self) -> None:
        """Waits until everything decided so far is durable or was handed back."""
        await self._committer.drained()

    def future(self) -> asyncio.Future[Any]:
        """Makes a future on this coordinator's event loop."""
        return self._loop.create_future()

    async def state(self, run: RunId) -> RunState | None:
        """A run's state, None if there is no such run. Only for reading, and only until the next await."""
        hot = self._hots.get(run)
        return hot.state if hot is not None else await self._loading.state(run)

    def is_hot(self, run: RunId) -> bool:
        """Whether the run is in memory and has not ended: then its end will be published. The end of a run that has
        ended may have been published already."""
        hot = self._hots.get(run)
        return hot is not None and hot.state.status not in RUN_ENDED

    @property
    def written(self) -> int:
        """How many batches the store has written so far."""
        return self._committer.written

    def has_handed_out(self, run: RunId, token: TokenId) -> bool:
        """Whether the visit's work was handed out by a decision of this coordinator, durable yet or not."""
        hot = self._hots.get(run)
        return hot is not None and token in hot.handed_out

    @property
    def is_quiet(self) -> bool:
        """Nothing is queued, being loaded, gathered or written, and nothing goes on in the background."""
        return self._background.is_quiet

    def stop(self, reason: BaseException) -> None:
        """Decides and writes nothing from now on. Every waiting caller gets EngineStopped."""
        if self.stopped is not None:
            return
        self.stopped = reason
        self._committer.stop()
        for item in (*self._queue, *self._committer.waiting, *self._loading.waiting, *self.flow.waiting):
            fail_item(item, reason)
        for future in self._asked:  # also those whose items are being written
            fail_future(future, reason)
        self._queue.clear()
        self.flow.close()
        self._background.cancel()
        self.feed.close(reason)
        self._background.look()
        if isinstance(reason, StoreConflict):
            self._around.fenced()

    # Runs owned here

    def owns(self, run: RunId) -> bool:
        """Whether this coordinator decides for the run."""
        return self.shards.owns(run)

    def let_go(self) -> None:
        """Forgets the states of runs that are not owned any more, because shards were lost or are handed over. Queued
        commands for them go to `other_nodes` when their turn comes."""
        self._hots.drop_unless(self.shards.owns)
        self.flow.drop_unless(self.shards.owns)
        self.feed.wake_everybody()  # from now on another node publishes the ends of these runs
        self._wake()

    def hot_runs(self, shards: Collection[int]) -> list[tuple[RunId, Hot]]:
        """Runs of these shards that are in memory. Only for reading."""
        return [(run, hot) for run, hot in self._hots.runs() if self.shards.of(run) in shards]

    def decide_now(self, run: RunId, command: c.Command) -> asyncio.Future[InboxAnswer] | None:
        """Decides a command at once, ahead of the queue. Returns a future of the durable answer. None: the run is not
        in memory, and nothing was decided."""
        hot = self._hots.get(run)
        if hot is None or run in self._loading or self.stopped is not None:
            return None
        told: asyncio.Future[InboxAnswer] = self._loop.create_future()
        self._decide(hot, Item(run, command, future=told))
        self._wake()
        return told

    def _lost(self, problem: StoreConflict | StoreUnavailable) -> None:
        """Some shards belong to another node, or the store has failed for good. Stops if no shard can be left."""
        if isinstance(problem, StoreConflict) and self.shards.is_shared:
            self._around.lost(problem.shards)
        else:
            self.stop(problem)

    def _is_over(self) -> bool:
        return self.stopped is not None

    def _is_idle(self) -> bool:
        return not (self._queue or self._loading) and self._committer.is_idle

    # A turn: decide and gather

    def _wake(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn, context=self._context)

    def _turn(self) -> None:
        self._scheduled = False
        if self.stopped is not None:
            return
        until = self._loop.time() + TURN_S
        queue = self._queue
        while (item := queue.take()) is not None:
            try:
                self._take(item)
            except Exception as problem:  # for instance a stored definition that cannot be compiled
                self._could_not_decide(item, problem)
            if self._loop.time() > until:
                break
        if queue:
            self._wake()
        self._committer.flush()
        self._background.look()

    def _give_back(self, items: Iterable[Item]) -> None:
        self._queue.give_back(items)
        self._wake()

    def _take(self, item: Item) -> None:
        hot = self._hots.by_run.get(item.run)
        if item.epoch and not self.shards.is_current(item.run, item.epoch):
            self._around.not_here(item)
        elif item.run in self._loading.by_run:
            self._loading.load(item)
        elif hot is not None:
            self._decide(hot, item)
        elif self.flow.waits_behind(item):
            pass
        elif not self.shards.owns(item.run):
            self._around.not_here(self.flow.left(item))
        elif isinstance(item.command, c.StartRun) and item.command.idempotency_key is not None and not item.keyed:
            self._loading.look_up(item, item.command.idempotency_key)
        elif item.fresh:
            self._start_new(item)
        else:
            self._loading.load(item)

    def _found(self, item: Item, run: RunId) -> None:
        self._answer(item, None, run)

    def _start_new(self, item: Item) -> None:
        """Starts a run that does not exist yet. It is hot from here on, so that the next command for it finds it."""
        if not isinstance(item.command, c.StartRun) or item.workflow is None:
            if not self.flow.not_joined(item):
                self._answer(item, Rejection("NOT_FOUND", f"there is no run {item.run!r}"))
            return
        if isinstance(item.command, c.ForkRun) and item.past is None:
            self._loading.read_past(item, item.command)
            return
        try:
            graph = self.library.lookup(item.workflow, item.command.version or None)
        except VersionMissing as missing:
            self._loading.reload(item.run, [item], missing)  # later commands for the run wait behind it
            return
        if graph is None:
            self._answer(item, not_deployed(item.workflow, item.command.version))
            return
        if item.command.version != graph.version:
            item.command = replace(item.command, version=graph.version)
        if graph.flow is not None:
            self.flow.start(item, graph)
        else:
            self._begin(item, graph)

    def _begin(self, item: Item, graph: ExecutionGraph) -> None:
        self._decide(self._hots.keep(item.run, RunState(graph)), item)

    def _decide(self, hot: Hot, item: Item) -> None:
        state = hot.state
        seq, before = state.seq, state.status
        if state.graph.flow is not None and not self.flow.may_decide(item, state):
            return
        try:
            if item.past is not None and seq == 0 and isinstance(item.command, c.ForkRun):
                decision = decide_fork(state.graph, state, item.command, item.past, self.clock.now(), self.library)
            else:
                decision = decide(state.graph, state, item.command, self.clock.now(), self.library)
        except (VersionMissing, HistoryNeeded) as missing:
            self._loading.reload(item.run, [item], missing)
            return
        except Exception as problem:
            self._could_not_decide(item, problem)
            return
        events, effects, rejection = decision.events, decision.effects, decision.rejection
        if seq == 0 and not events:
            self._hots.drop(item.run)  # the start was refused
        if item.start is not None and rejection is None:
            self.flow.joined(item.start, state)
        if not events and not effects:
            if rejection is None or not self.flow.not_joined(item):
                self._answer(item, rejection)
            return
        done: Sequence[int] = ()
        if state.graph.flow is not None:
            effects, done = self.flow.decided(item, state, before, effects)
        if self.shape is not None:
            effects = self.shape(state, item.command, events, effects)
        if self.subscribed is not None:
            news = events[decision.cuts[-1] :] if decision.cuts else events
            effects = [*effects, *self.subscribed(state.graph.workflow_name, news)]
        busy = hot.update_attempts(item.command, effects)
        kept, local = sort_effects(effects) if effects else (effects, effects)
        hot.unsettled += 1
        commit = Commit(item.run, seq, events, kept, state.status, busy, decision.cuts)
        answer = answer_to(item, rejection, applied=True)
        self._committer.add(Decided(item, hot, local, answer, rows=done), commit)

    def _answer(self, item: Item, rejection: Rejection | None, run: RunId | None = None) -> None:
        """Answers a command that changes nothing. The answer goes out after everything decided before it is durable."""
        self.flow.answered(item)
        hot = self._hots.get(item.run)
        if hot is not None:
            hot.unsettled += 1
        self._committer.add(Decided(item, hot, [], answer_to(item, rejection, run)), None)
        self._wake()

    def _not_loaded(self, item: Item, problem: Exception) -> None:
        self._refusals.unreadable(item, problem)

    def _could_not_decide(self, item: Item, problem: Exception) -> None:
        again = self._refusals.undecidable(item, problem)
        self._loading.reload(item.run, [item] if again else [])

    # When a batch is written

    def _durable(self, gathered: Gathering, rows: list[OutboxRow]) -> None:
        for decided in gathered.decided:
            item, hot = decided.item, decided.hot
            if hot is not None:
                hot.unsettled -= 1
                self._hots.cool(item.run, hot)
            if item.along is not None and decided.answer is not None:
                item.along.told(decided.answer, decided.commit, rows)
            if item.future is not None and decided.answer is not None and not item.future.done():
                item.future.set_result(decided.answer)
        self._around.durable(gathered.decided, rows)
        self.feed.publish(gathered.commits)
        for observed in self.observers if gathered.commits else ():
            observed(gathered.commits, self._loop.time() - gathered.sent)
        if gathered.answers:
            self._refusals.tell_kept(gathered.answers)
            self._around.answered([answer.run for answer in gathered.answers if answer.run is not None])
        if self._background.waiting:
            self._wake()  # the turn checks whether the coordinator is quiet

    def _decide_again(self, items: list[Item]) -> None:
        """A batch was not written. The states in memory are ahead of the store, so all of them are dropped."""
        if self.stopped is not None:
            return
        self._hots.clear()
        items = self.flow.again(items)
        for item in items:
            item.fresh = False  # still `keyed`: other starts with its key wait for this very item
        self._queue.put_first(items)
        self._wake()
        self.feed.wake_everybody()  # events may have been written without being published
        self._around.answered([item.run for item in items if item.request])
        self.spawn(self._around.recover())
