"""The claimant of a process: claims queue work, executes it, renews the claims and reports the results.

    claim ──► offer ──► Attempt ──► LocalExecutor ──► reports, in order ──► the run's owner
                          │                            StartAttempt, progress, result
              renewed while it is in hand; a lost claim stops the work

Owns every offer this process has claimed, until its result is answered or another worker has it. Promises:
 1. It claims no more work than it can begin: within the limit of each queue and the room of the process. Work that
    needs a function this process lacks is given back without being begun (`cannot_execute`).
 2. Every report carries the claim's own name (`Claimed.holder`). A run accepts reports of the newest holder only: the
    reports of a worker that was presumed dead are refused, and its work stops.
 3. A claim is renewed every third of its lease until the result has been answered. If renewing fails for a whole lease,
    the claimant stops the work by itself.
 4. Closing, it claims nothing more, lets its work go on for the grace period and gives the rest back, not as lost.
Must not know the owner of a run: `ask` finds it. Must not decide anything about runs.

Engines that execute queue work and processes that only execute use the same claimant.
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
from treadle.runtime.command.commander import Commander
from treadle.runtime.execute.progress import Progress
from treadle.runtime.execute.workshop import THREADS_MAX
from treadle.runtime.queue.attempt_of_offer import attempt_of
from treadle.runtime.queue.cannot_execute import CannotExecute, begin_claimed
from treadle.runtime.queue.claim_reports import ClaimReports, Identity, ended
from treadle.runtime.queue.queue_settings import Rulebook
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.outage import OUTAGE
from treadle.runtime.surroundings.ports import Attempt, Clock, MakeExecutor
from treadle.store.work import Claim, Claimed, QueueRules, WorkStore

LEASE_MS = 15_000
"""Longer than a pause of the garbage collector, a busy machine or a restart of the database. Cancelled work may go on
for a third of it."""
IDLE_S = 1.0
"""An idle worker looks for work this often even if no notice wakes it."""
LIMITED_S = 0.2
"""The same while a rate limit lets work begin as time passes, or while the process is full."""
AT_ONCE = 32
"""Offers taken by one claim. More would keep work from other workers."""
LAST_WORDS_S = 5.0
"""Seconds that a closing worker waits for the owners of its runs to answer its last reports."""
log = logger("treadle.claims")


class Claimant:
    """See the module's docstring. Made on the event loop it serves. `queues`: queue → how many attempts at once; None:
    every queue that has work, up to THREADS_MAX attempts of each."""

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
        cannot_execute: CannotExecute | None = None,
        idle_s: float = IDLE_S,
    ) -> None:
        self._commander = commander
        self._work = work
        self._clock = clock
        self._worker = worker
        self._queues = queues
        self._lease_ms, self._idle_s = lease_ms, idle_s
        self._random = random
        self.cannot_execute = (
            cannot_execute if cannot_execute is not None else CannotExecute(lambda _task: None, worker)
        )
        self._rules = Rulebook(commander.store)
        self._executor = make_executor(self._report)
        self._progress = Progress(self._report, clock)
        self._in_hand: dict[Identity, ClaimReports] = {}
        self._spawned: set[asyncio.Task[None]] = set()
        self._awake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._renewed = asyncio.get_running_loop().time()
        self._closing = False
        self._has_strays = False
        """A claim may have been written although its answer was lost: such claims are given back."""

    @property
    def executing(self) -> int:
        """How many claims it holds."""
        return len(self._in_hand)

    def open(self) -> None:
        """Begins to claim."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._claiming()), loop.create_task(self._renewing())]

    def wake(self, queue: str = "") -> None:
        """Looks for work now: a queue may have new work, or a place has become free."""
        if not queue or self._queues is None or queue in self._queues:
            self.cannot_execute.woken(queue)
            self._awake.set()

    def changed(self) -> None:
        """Reads the rules of the queues again: an operator may have changed them."""
        self._rules.forget()
        self.wake()

    async def close(self, grace_ms: int) -> None:
        """Claims nothing more, lets the work in hand go on for `grace_ms`, then gives the rest back."""
        self._closing = True
        if not self._tasks:
            await self._executor.close(0)
            return
        await ended(self._tasks[0])
        with suppress(StoreUnavailable):
            await self._give_back_strays()  # the claiming task may have been cancelled during a claim
        await self._executor.close(grace_ms)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._last_words(), LAST_WORDS_S)
        left = list(self._in_hand.values())
        for entry in left:
            self._forget(entry)
        await ended(self._tasks[1], *(entry.sending for entry in left), *self._spawned)

    async def _last_words(self) -> None:
        """Waits for the answers to results, and gives all other work back, which does not count as lost."""
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
            pause = self._idle_s
            try:
                if self._has_strays:
                    await self._give_back_strays()
                claimed, limited = await self._claim_all()
                if claimed:
                    continue
                pause = LIMITED_S if limited else IDLE_S if self.cannot_execute.rests else self._idle_s
            except StoreUnavailable as problem:
                self._has_strays, pause = True, IDLE_S
                OUTAGE.failed("claiming work", problem)
            except Exception as problem:  # an unreadable definition, for instance: other work must not wait
                log.error("claiming failed", exc_info=problem)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):  # `wait_for` of Python 3.11 may swallow a cancellation
                    await self._awake.wait()

    async def _claim_all(self) -> tuple[int, bool]:
        """How many attempts it has begun, and whether more may become possible without a notice."""
        served = await self._work.waiting_queues() if self._queues is None else self._queues
        claimed, limited = 0, False
        for queue in served:
            free, room = self._free(queue), self._room()
            limited = limited or room <= 0 < free
            if min(free, room) <= 0 or not self.cannot_execute.may_look(queue):
                continue
            rules = await self._rules.of(queue)
            limited = limited or rules.rate is not None or rules.key_rate is not None
            claimed += await self._claim_from(queue, min(free, room), rules)
        return claimed, limited

    async def _claim_from(self, queue: str, free: int, rules: QueueRules) -> int:
        """How many attempts it has begun."""
        claim = partial(self._work.claim, queue, self._worker, ttl_ms=self._lease_ms, rules=rules)
        aside: list[Claim] = []
        try:
            begun = await begin_claimed(free, AT_ONCE, claim, self._begin, aside)
        finally:
            await self._work.give_back(aside)
        self.cannot_execute.looked(queue, len(aside), begun)
        return begun

    async def _give_back_strays(self) -> None:
        await self._work.give_back_strays(self._worker, [entry.claimed.claim for entry in self._in_hand.values()])
        self._has_strays = False

    def _room(self) -> int:
        """As many offers as would begin at once. If the engine's own runs fill the process, one claim waits for room,
        so that queue work gets its turn; more would keep work from other workers."""
        return self._executor.places or 1

    def _free(self, queue: str) -> int:
        at_work = sum(one.claimed.offer.queue == queue and not one.finished for one in self._in_hand.values())
        return (THREADS_MAX if self._queues is None else self._queues.get(queue, 0)) - at_work

    async def _begin(self, claimed: Claimed) -> bool:
        """Begins a claimed offer and reports the start. False: this process cannot execute it; give it back."""
        offer = claimed.offer
        identity = (claimed.run, offer.token, offer.attempt)
        attempt = await attempt_of(claimed, self._commander, self._progress.teller(identity), self._random)
        if isinstance(attempt, Attempt) and self.cannot_execute.is_beyond(claimed, attempt.task):
            return False
        entry = ClaimReports(claimed, self._commander, self._answered)
        before = self._in_hand.get(identity)
        if before is not None:  # an older claim of this process, which was lost without notice
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
        """A report of the executor."""
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

    def _answered(self, entry: ClaimReports, report: c.Command, rejection: Rejection | None) -> None:
        """The owner has answered the last report: the claim is over. If a paused run refused to begin the work, the
        offer is given back and can be claimed when the run goes on."""
        self._forget(entry)
        if rejection is None:
            return
        log.info("refused", run=entry.claimed.run, said=type(report).__name__, reason=rejection.message)
        if isinstance(report, c.StartAttempt) and rejection.kind == "INVALID_STATE":
            self._spawn(self._give_back(entry))

    async def _give_back(self, entry: ClaimReports) -> None:
        with suppress(StoreUnavailable):
            await self._work.give_back([entry.claimed.claim])

    def _forget(self, entry: ClaimReports) -> None:
        """Drops a claim and stops its work."""
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
        """Renews every claim, and stops the work of claims that were lost."""
        begun = asyncio.get_running_loop().time()
        held = {entry.claimed.claim: entry for entry in self._in_hand.values()}
        for claim in await self._work.renew(self._worker, list(held), self._lease_ms):
            entry = held[claim]
            if not entry.finished:  # a finished one hears the same from its answer
                log.warning("lost a claim", run=claim.run, visit=claim.token)
                self._forget(entry)
        self._renewed = begun

    def _give_up(self) -> None:
        """Stops all work: the leases have run out, so other workers may have it by now."""
        for entry in list(self._in_hand.values()):
            if not entry.finished:
                self._forget(entry)
