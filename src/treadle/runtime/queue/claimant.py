"""A worker's hands: claims queue work, executes it, says that it is alive, reports what came of it.

    claim ──► offer ──► Attempt ──► LocalExecutor ──► letters, in order ──► the run's owner
                          │                            StartAttempt, progress, result
              renewed while it is in hand;
              a claim that is lost stops the work

Owns every offer this process has claimed, from the claim until its result was answered or somebody else has it.
Promises:
 1. It claims no more than it can begin: at most so many of each queue, results under way not counted, and as many as
    the process has room for. What it lacks a function for it gives back unbegun (`unable`).
 2. All it says about a claim goes by the claim's own name (`Claimed.holder`): a run listens to the newest holder
    only, so what a worker says that was presumed dead is refused, and its work stops.
 3. A claim is renewed at a third of its lease, until the result has been answered. Who could not renew for a whole
    lease stops that work by itself.
 4. Closing, it claims nothing more, lets what it has end for its grace, and gives the rest back: not counted as lost.
Must not know who owns a run: `ask` finds the way. Must not decide anything about runs.

An engine that executes queue work and a process that does nothing else use the same hands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

from msgspec.structs import replace

from treadle.errors import StoreUnavailable
from treadle.model import commands as c
from treadle.model.errors import Rejection
from treadle.model.ids import RunId
from treadle.runtime.base.logs import logger
from treadle.runtime.base.outage import OUTAGE
from treadle.runtime.base.ports import Attempt, Clock, MakeExecutor
from treadle.runtime.command.commander import Commander
from treadle.runtime.execute.progress import Progress
from treadle.runtime.execute.workshop import THREADS_MAX
from treadle.runtime.queue.attempt_of_offer import attempt_of
from treadle.runtime.queue.cannot_execute import Unable, look
from treadle.runtime.queue.claim_reports import Identity, Letters, ended
from treadle.runtime.queue.queue_settings import Rulebook
from treadle.store.work import Claim, Claimed, QueueRules, WorkStore

LEASE_MS = 15_000
"""Longer than a pause of the garbage collector, a busy machine or a restart of the database; a third of it is how long
cancelled work may go on."""
IDLE_S = 1.0
"""How long an idle worker trusts that it would have been woken."""
LIMITED_S = 0.2
"""The same where a rate lets work begin as time passes, or the room is full."""
AT_ONCE = 32
"""Of one claim: what one worker takes, others cannot."""
LAST_WORDS_S = 5.0
"""How long a closing worker waits for the owners of its runs."""
log = logger("treadle.claims")


class Claimant:
    """See the module's docstring. Made on the event loop it serves. `queues`: how many of each at once; None: whatever
    there is, up to THREADS_MAX of each."""

    def __init__(
        self,
        commander: Commander,
        work: WorkStore,
        make_executor: MakeExecutor,
        clock: Clock,
        *,
        worker: str,
        queues: Mapping[str, int] | None = None,
        lease_ms: int = LEASE_MS,
        random: Random | None = None,
        unable: Unable | None = None,
    ) -> None:
        self._commander = commander
        self._work = work
        self._clock = clock
        self._worker = worker
        self._queues = queues
        self._lease_ms = lease_ms
        self._random = random
        self.unable = unable if unable is not None else Unable(lambda _task: None, worker)
        self._rules = Rulebook(commander.store)
        self._executor = make_executor(self._report)
        self._progress = Progress(self._report, clock)
        self._in_hand: dict[Identity, Letters] = {}
        self._spawned: set[asyncio.Task[None]] = set()
        self._awake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._renewed = asyncio.get_running_loop().time()
        self._closing = False
        self._has_strays = False
        """The answer to a claim may have got lost."""

    @property
    def executing(self) -> int:
        """How much it has in hand."""
        return len(self._in_hand)

    def open(self) -> None:
        """Begins to claim."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._claiming()), loop.create_task(self._renewing())]

    def wake(self, queue: str = "") -> None:
        """There may be work, or a place has become free."""
        if not queue or self._queues is None or queue in self._queues:
            self.unable.woken(queue)
            self._awake.set()

    def changed(self) -> None:
        """Rules may be others now."""
        self._rules.forget()
        self.wake()

    async def close(self, grace_ms: int) -> None:
        """Claims nothing more; what is in hand may end for so long; the rest is given back."""
        self._closing = True
        if not self._tasks:
            await self._executor.close(0)
            return
        await ended(self._tasks[0])
        with suppress(StoreUnavailable):
            await self._give_back_strays()  # it may have been in the middle of a claim
        await self._executor.close(grace_ms)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._last_words(), LAST_WORDS_S)
        left = list(self._in_hand.values())
        for entry in left:
            self._forget(entry)
        await ended(self._tasks[1], *(entry.sending for entry in left), *self._spawned)

    async def _last_words(self) -> None:
        """Results that are on their way arrive; everything else is given back, not counted against the work."""
        left = list(self._in_hand.values())
        for entry in left:
            if not entry.finished:
                token, attempt = entry.claimed.offer.token, entry.claimed.offer.attempt
                entry.post(c.LoseWorker(token, attempt, entry.claimed.offer.recovery, graceful=True))
        if left:
            await asyncio.wait([entry.sending for entry in left])

    # Claiming

    async def _claiming(self) -> None:
        while True:
            self._awake.clear()
            pause = IDLE_S
            try:
                if self._has_strays:
                    await self._give_back_strays()
                claimed, limited = await self._claim_all()
                if claimed:
                    continue
                pause = LIMITED_S if limited else IDLE_S
            except StoreUnavailable as problem:
                self._has_strays = True
                OUTAGE.failed("claiming work", problem)
            except Exception as problem:  # a definition nobody can read, for instance: others must not wait for it
                log.error("claiming failed", exc_info=problem)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):  # `wait_for` of Python 3.11 may swallow a cancellation
                    await self._awake.wait()

    async def _claim_all(self) -> tuple[int, bool]:
        """How much it got, and whether time alone may bring more."""
        served = await self._work.waiting_queues() if self._queues is None else self._queues
        claimed, limited = 0, False
        for queue in served:
            free, room = self._free(queue), self._room()
            limited = limited or room <= 0 < free
            if min(free, room) <= 0 or not self.unable.may_look(queue):
                continue
            rules = await self._rules.of(queue)
            limited = limited or rules.rate is not None or rules.key_rate is not None
            claimed += await self._claim_from(queue, min(free, room), rules)
        return claimed, limited

    async def _claim_from(self, queue: str, free: int, rules: QueueRules) -> int:
        """How much has begun."""
        claim = partial(self._work.claim, queue, self._worker, ttl_ms=self._lease_ms, rules=rules)
        aside: list[Claim] = []
        try:
            begun = await look(free, AT_ONCE, claim, self._begin, aside)
        finally:
            await self._work.give_back(aside)
        self.unable.looked(queue, len(aside), begun)
        return begun

    async def _give_back_strays(self) -> None:
        await self._work.give_back_strays(self._worker, [entry.claimed.claim for entry in self._in_hand.values()])
        self._has_strays = False

    def _room(self) -> int:
        """How many it may claim now: as many as would begin. Where own runs fill the room, one claim stands in line, so
        that queue work gets its turn; more would keep work from others who could begin it."""
        return self._executor.places or 1

    def _free(self, queue: str) -> int:
        at_work = sum(one.claimed.offer.queue == queue and not one.finished for one in self._in_hand.values())
        return (THREADS_MAX if self._queues is None else self._queues.get(queue, 0)) - at_work

    async def _begin(self, claimed: Claimed) -> bool:
        """Nothing is said about it before it can be begun: what cannot is given back (False), or fails."""
        offer = claimed.offer
        identity = (claimed.run, offer.token, offer.attempt)
        attempt = await attempt_of(claimed, self._commander, self._progress.teller(identity), self._random)
        if isinstance(attempt, Attempt) and self.unable.is_beyond(claimed, attempt.task):
            return False
        entry = Letters(claimed, self._commander, self._answered)
        before = self._in_hand.get(identity)
        if before is not None:  # an older claim of ours, which we have lost without knowing
            self._forget(before)
        self._in_hand[identity] = entry
        entry.post(c.StartAttempt(offer.token, offer.attempt, claimed.holder, recovery=offer.recovery))
        if isinstance(attempt, c.FailAttempt):
            self._report(claimed.run, attempt)
        else:
            self._executor.begin(attempt)
        return True

    # Reporting

    def _report(self, run: RunId, command: c.Command) -> None:
        """What the executor says."""
        assert isinstance(command, c.FinishAttempt | c.FailAttempt | c.ReportProgress)
        entry = self._in_hand.get((run, command.token, command.attempt))
        if entry is None or entry.finished:
            return
        if isinstance(command, c.ReportProgress):
            entry.post(command)
            return
        self._progress.ended(*entry.identity)
        entry.post(replace(command, worker=entry.claimed.holder))
        self.wake()

    def _answered(self, entry: Letters, letter: c.Command, rejection: Rejection | None) -> None:
        """Its last letter was answered: the work is over, somebody else has it, or nobody wants it. What a paused run
        has refused to begin is on offer again when it goes on."""
        self._forget(entry)
        if rejection is None:
            return
        log.info("refused", run=entry.claimed.run, said=type(letter).__name__, reason=rejection.message)
        if isinstance(letter, c.StartAttempt) and rejection.kind == "INVALID_STATE":
            self._spawn(self._give_back(entry))

    async def _give_back(self, entry: Letters) -> None:
        with suppress(StoreUnavailable):
            await self._work.give_back([entry.claimed.claim])

    def _forget(self, entry: Letters) -> None:
        """Out of hand: whatever still runs of it stops."""
        if self._in_hand.get(entry.identity) is entry:
            del self._in_hand[entry.identity]
            self._executor.stop(*entry.identity)
            self.wake()
        entry.stop()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)

    # Staying alive

    async def _renewing(self) -> None:
        while True:
            await asyncio.sleep(self._lease_ms / 3_000)
            if not self._in_hand:
                self._renewed = asyncio.get_running_loop().time()
                continue
            try:
                await self.renew()
            except StoreUnavailable as problem:
                OUTAGE.failed("renewing claims", problem)
                if asyncio.get_running_loop().time() - self._renewed > self._lease_ms / 1_000:
                    self._give_up()

    async def renew(self) -> None:
        """Says that it is at work; what it has lost it stops."""
        begun = asyncio.get_running_loop().time()
        held = {entry.claimed.claim: entry for entry in self._in_hand.values()}
        for claim in await self._work.renew(self._worker, list(held), self._lease_ms):
            entry = held[claim]
            if not entry.finished:  # else its answer is on the way, and says the same
                log.warning("lost a claim", run=claim.run, visit=claim.token)
                self._forget(entry)
        self._renewed = begun

    def _give_up(self) -> None:
        """By now others have the work: it must not be done here as well."""
        for entry in list(self._in_hand.values()):
            if not entry.finished:
                self._forget(entry)
