"""The coordinator: takes commands about the runs it owns, decides them one after the other, commits many together.

Owns the hot states and the order of things. Promises: a decision is durable before anybody hears of it (an answer, an
effect, news); one that could not be committed never happened; a command is decided exactly once per delivery, and
delivering it again is harmless. Must not know a rule (the kernel has them), a driver, or how work is executed.

Theory of operation
    One event loop, no locks. `tell` and `ask` append to a queue; a turn of the loop takes everything from it, decides
    on hot states and gathers decisions; when no commit is under way the gathered batch is sent to the store, and while
    it syncs the next one gathers. So a lone chain pays one sync per step, a crowd shares it, and nobody ever waits for
    a timer to fill a batch.

        tell/ask ─► queue ─► turn: decide, gather ─► commit n   (n+1 gathers meanwhile)
                      ▲                                 │ durable
                      └── reports, timers, rows ◄── effects delivered, futures answered, news published

    A state in memory may be ahead of the store by what is gathered and being committed. Deciding on such a state is
    safe because the store takes batches in order and refuses a decision whose predecessor is missing.

Failure
    1. The store is unavailable: the outcome may be unknown. It is asked until it answers; a batch that did happen is
       durable like any other. One that did not, or was refused: all hot states are dropped; its items and those of the
       one gathered behind it go back to the front of the queue in their order and are decided on what the store really
       has, and `recovery` looks for what was left undone.
    2. The lease of a shard is lost: nothing of it may be written any more. Its states are dropped, its commands go to
       `other_nodes`, whatever else was in the batch is decided again. A store of one shard has one owner: it stops, and
       everybody who waits is told.
    3. Deciding raises: a defect of ours, or of a definition. The run's state is thrown away; the item is tried once
       more on a fresh one, then refused, and what it came from is parked. Other runs do not notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from contextvars import copy_context
from typing import Any

from msgspec.structs import replace

from treadle.errors import EngineStopped, StoreConflict, StoreUnavailable
from treadle.kernel.decide import decide
from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model.effects import Effect
from treadle.model.errors import Rejection
from treadle.model.events import Event
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RUN_ENDED
from treadle.runtime.base.ports import Clock
from treadle.runtime.coordinate.background import Background
from treadle.runtime.coordinate.committer import Committer
from treadle.runtime.coordinate.feed import Feed
from treadle.runtime.coordinate.gathering import Decided, Gathering, Item, answer_to, refuse, sort_effects, unanswered
from treadle.runtime.coordinate.hot import Hot, Hots
from treadle.runtime.coordinate.incoming import Incoming
from treadle.runtime.coordinate.library import Library, VersionMissing, not_deployed
from treadle.runtime.coordinate.loading import Loading
from treadle.runtime.coordinate.neighbours import Neighbours
from treadle.runtime.coordinate.refusals import Refusals
from treadle.runtime.coordinate.shards import Shards
from treadle.store.port import Commit, InboxAnswer, OutboxRow, Store

TURN_S = 0.005
"""How long one turn decides before it lets the loop breathe: timers, sockets and people must not wait for an
avalanche."""

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
        """What becomes of a decision's effects before they are kept; set by `offer_work`."""
        self.stopped: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        """Of every turn: what is decided has nothing to do with the variables of whoever asked first."""
        self._queue = Incoming()
        self._scheduled = False
        self._background = Background(self._is_idle, self._is_over)
        self.spawn = self._background.spawn
        """Something that takes a while, after which the coordinator may be quiet again."""
        self.wait_quiet = self._background.wait_quiet
        """Until there is nothing left to decide without news from outside."""
        self._hots = Hots()
        self._asked: dict[asyncio.Future[InboxAnswer], None] = {}
        self._refusals = refusals = Refusals(around.defect, self.settle, self._answer, self.put)
        self._committer = Committer(store, shards, self._durable, self._decide_again, self._fell, refusals.unwritable)
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

    # How things come in

    def tell(self, run: RunId, command: c.Command, row: int = 0, source: RunId | None = None) -> None:
        """A command nobody waits for: a report, a timer, a row of the outbox (of `source`)."""
        self.put(Item(run, command, row=row, source=source))

    async def ask(
        self, run: RunId, command: c.Command, workflow: str | None = None, fresh: bool = False
    ) -> InboxAnswer:
        """A command to its durable answer. Raises `Moved` if it must be asked of another node."""
        if self.stopped is not None:
            raise EngineStopped(f"this engine has stopped: {self.stopped}") from self.stopped
        future: asyncio.Future[InboxAnswer] = self._loop.create_future()
        self._asked[future] = None
        try:
            self.put(Item(run, command, workflow, future, fresh=fresh))
            return await future
        finally:
            del self._asked[future]

    def put(self, item: Item) -> None:
        if self.stopped is None:
            self._queue.put(item)
            if not self._scheduled:
                self._wake()

    def settle(self, row: int, parked: str | None = None) -> None:
        """An outbox row is done with, or given up, without a command."""
        self._committer.settle(row, parked)
        self._wake()

    def revive(self, row: int | None, run: RunId, request: str = "") -> None:
        """A parked row is to be tried again; None: there is no such row, and the request for it is refused."""
        rejection = Rejection("NOT_FOUND", "there is no such dead letter") if row is None else None
        self._committer.revive(row, InboxAnswer(request, rejection, run=run) if request else None)
        self._wake()

    def offer_work(self, shape: Shape) -> None:
        """Queue work of this store is claimed by workers: `shape` makes offers of it, and it is not executed here."""
        self.shape = shape
        self._hots.are_offered = True

    async def drained(self) -> None:
        """Everything decided so far is durable."""
        await self._committer.drained()

    def future(self) -> asyncio.Future[Any]:
        """One of this coordinator's loop."""
        return self._loop.create_future()

    async def state(self, run: RunId) -> RunState | None:
        """A run's state, for reading at this very moment; None if there is no such run."""
        hot = self._hots.get(run)
        return hot.state if hot is not None else await self._loading.state(run)

    def is_hot(self, run: RunId) -> bool:
        """Whether it lives, in memory: then its end will be news. One that has ended may have been news already."""
        hot = self._hots.get(run)
        return hot is not None and hot.state.status not in RUN_ENDED

    @property
    def written(self) -> int:
        """How many batches the store has taken: whether there is progress."""
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
        """Decide and write nothing any more."""
        if self.stopped is not None:
            return
        self.stopped = reason
        self._committer.stop()
        for item in (*self._queue, *self._committer.waiting, *self._loading.waiting):
            refuse(item, reason)
        for future in self._asked:  # wherever their items are
            unanswered(future, reason)
        self._queue.clear()
        self._background.cancel()
        self.feed.close(reason)
        self._background.look()
        if isinstance(reason, StoreConflict):
            self._around.fenced()

    # Which runs

    def owns(self, run: RunId) -> bool:
        """Whether this coordinator decides for it."""
        return self.shards.owns(run)

    def let_go(self) -> None:
        """Shards were lost or are being handed over: what is known of their runs is forgotten. Commands for them find
        that out when their turn comes."""
        self._hots.drop_unless(self.shards.owns)
        self.feed.wake_everybody()  # their ends will be news elsewhere
        self._wake()

    def hot_runs(self, shards: Collection[int]) -> list[tuple[RunId, Hot]]:
        """Runs of these shards that are in memory, for looking at."""
        return [(run, hot) for run, hot in self._hots.runs() if self.shards.of(run) in shards]

    def decide_now(self, run: RunId, command: c.Command) -> asyncio.Future[InboxAnswer] | None:
        """Decides before anything else is, if the run is in memory; the durable answer, None if it is not."""
        hot = self._hots.get(run)
        if hot is None or run in self._loading or self.stopped is not None:
            return None
        told: asyncio.Future[InboxAnswer] = self._loop.create_future()
        self._decide(hot, Item(run, command, future=told))
        self._wake()
        return told

    def _fell(self, problem: StoreConflict | StoreUnavailable) -> None:
        """The store will not take what is written here, of some shards or at all."""
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
            except Exception as problem:  # a stored definition nobody can read, for instance
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
        elif not self.shards.owns(item.run):
            self._around.not_here(item)
        elif isinstance(item.command, c.StartRun) and item.command.idempotency_key is not None and not item.keyed:
            self._loading.look_up(item, item.command.idempotency_key)
        elif item.fresh:
            self._born(item)
        else:
            self._loading.load(item)

    def _found(self, item: Item, run: RunId) -> None:
        self._answer(item, None, run)

    def _born(self, item: Item) -> None:
        """A run that does not exist yet. It is hot from here on: who speaks of it next finds it."""
        if not isinstance(item.command, c.StartRun) or item.workflow is None:
            self._answer(item, Rejection("NOT_FOUND", f"there is no run {item.run!r}"))
            return
        try:
            graph = self.library.lookup(item.workflow, item.command.version or None)
        except VersionMissing as missing:
            self._loading.reload(item.run, [item], missing)  # what comes behind it waits: it may be its end
            return
        if graph is None:
            self._answer(item, not_deployed(item.workflow, item.command.version))
            return
        if item.command.version != graph.version:
            item.command = replace(item.command, version=graph.version)
        self._decide(self._hots.keep(item.run, RunState(graph)), item)

    def _decide(self, hot: Hot, item: Item) -> None:
        state = hot.state
        seq = state.seq
        try:
            decision = decide(state.graph, state, item.command, self.clock.now(), self.library)
        except VersionMissing as missing:
            self._loading.reload(item.run, [item], missing)
            return
        except Exception as problem:
            self._could_not_decide(item, problem)
            return
        events, effects, rejection = decision.events, decision.effects, decision.rejection
        if state.seq == 0:
            self._hots.drop(item.run)  # refused before it was born
        if not events and not effects:
            self._answer(item, rejection)
            return
        if self.shape is not None:
            effects = self.shape(state, item.command, events, effects)
        busy = hot.note(item.command, effects)
        kept, local = sort_effects(effects) if effects else (effects, effects)
        hot.unsettled += 1
        commit = Commit(item.run, seq, events, kept, state.status, busy)
        self._committer.add(Decided(item, hot, local, answer_to(item, rejection)), commit)

    def _answer(self, item: Item, rejection: Rejection | None, run: RunId | None = None) -> None:
        """Nothing was decided: still an answer comes after everything that was decided before it."""
        hot = self._hots.get(item.run)
        if hot is not None:
            hot.unsettled += 1
        self._committer.add(Decided(item, hot, [], answer_to(item, rejection, run)), None)
        self._wake()

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
            if item.future is not None and decided.answer is not None and not item.future.done():
                item.future.set_result(decided.answer)
        self._around.durable(gathered.decided, rows)
        newest = {commit.run: commit for commit in gathered.commits if commit.events}
        for run, commit in newest.items():  # once for the thousand branches of a fan-out that share a commit
            self.feed.publish(run, commit.events[-1], commit.status)
        if gathered.answers:
            self._around.answered([answer.run for answer in gathered.answers if answer.run is not None])
        if self._background.waiting:
            self._wake()  # whoever waits for quiet looks when the committer is done

    def _decide_again(self, items: list[Item]) -> None:
        """A batch could not be written, or nobody knows: the states are ahead of the store, so all of them go."""
        if self.stopped is not None:
            return
        self._hots.clear()
        for item in items:
            item.fresh = False  # still `keyed`: whoever waits for its key waits for this very item
        self._queue.put_first(items)
        self._wake()
        self.feed.wake_everybody()  # what did get through unseen was never news
        self._around.answered([item.run for item in items if item.request])
        self.spawn(self._around.recover())
