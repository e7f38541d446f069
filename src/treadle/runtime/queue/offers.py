"""The owner's side of queue work: makes offers from decisions, and reports expired claims as lost workers.

Owns the translation of effects on a store whose workers claim rows (`store.work`). Promises that an offer exists only
as long as the run wants the attempt, written in the transaction of the decision; and that an expired claim becomes
`LoseWorker`, once for each offer. Must not know who claims, nor how.

    kernel says                          becomes
    RunTask with a queue or, on a        OfferWork: with all a worker needs, so that it need not fold the run
    shared store, a limit across runs
    StopTask, a result, a worker given   WithdrawWork
    up for good
    run paused, resumed                  HoldWork: nothing of the run can be claimed while it is paused
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from treadle.errors import EvaluationError, StoreUnavailable
from treadle.expression.paths import MISSING
from treadle.kernel.defined import defining
from treadle.kernel.identity import run_facts
from treadle.kernel.state import RunState, Token
from treadle.kernel.view import TokenView, branch_of
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import TokenId
from treadle.model.states import TokenState
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.runtime.coordinate.gathering import Decided
from treadle.runtime.coordinate.hot import is_on_a_queue
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.ports import Alarm, Clock, Tracing
from treadle.store.work import ExpiredClaim, WorkStore

ENGINES = ""
"""The queue of work without a queue that observes a limit across runs: any engine may execute it."""
KEY_MAX = 200
"""Characters of a key; a longer key is replaced by its digest. An index takes some 2,700 bytes."""
PAUSING = (c.PauseRun, c.ResumeRun, c.ExtendTimeout, c.FireTimer)
AT_WORK = (TokenState.DISPATCHED, TokenState.EXECUTING)

Json = Any

log = logger("treadle.claims")


def with_offers(
    state: RunState,
    command: c.Command,
    events: Sequence[e.Event],
    effects: list[f.Effect],
    limits: bool = True,
    tracing: Tracing | None = None,
) -> list[f.Effect]:
    """A decision's effects for a store whose workers claim rows; `state` is the state after the decision. `limits`:
    work without a queue that observes a limit across runs is offered, too; the only engine of a store keeps it."""
    if not (state.graph.has_queue or state.had_queue):  # every decision comes here: no further call
        return effects
    shaped: list[f.Effect] = []
    for effect in effects:
        if isinstance(effect, f.RunTask) and (effect.queue is not None or (limits and effect.slot is not None)):
            if _is_still_wanted(state, effect):
                shaped.append(offer_of(state, effect, tracing))
            continue
        shaped.append(effect)
        if isinstance(effect, f.StopTask) and _may_be_offered(state, effect.token, limits):
            shaped.append(f.WithdrawWork(effect.token))
    if isinstance(command, c.FinishAttempt | c.FailAttempt):
        if command.worker is not None and not is_wanted(state, command.token):
            shaped.append(f.WithdrawWork(command.token))
    elif isinstance(command, c.LoseWorker) and not is_wanted(state, command.token):
        shaped.append(f.WithdrawWork(command.token))
    if isinstance(command, PAUSING) or state.budget is not None:  # a budget may pause its run at any command
        shaped += [f.HoldWork(isinstance(event, e.RunPaused)) for event in events if isinstance(event, _STANDING)]
    return shaped


def _offers(state: RunState) -> bool:
    """Whether work of the run may be offered, by its version or by one that it was migrated from."""
    return state.graph.has_queue or state.had_queue


def _is_still_wanted(state: RunState, effect: f.RunTask) -> bool:
    """False if the same decision went on to cancel the visit: a sibling without work may have ended the run."""
    return is_wanted(state, effect.token) and state.tokens[effect.token].attempt == effect.attempt


def _may_be_offered(state: RunState, token_id: TokenId, limits: bool) -> bool:
    """Whether a visit may have an offer. Ended visits are assumed to have been offered."""
    token = state.tokens.get(token_id)
    return token is None or is_on_a_queue(state, token, limits)


_STANDING = (e.RunPaused, e.RunResumed)


def is_wanted(state: RunState, token_id: TokenId) -> bool:
    """Whether the run wants this visit to be executed, now or still."""
    token = state.tokens.get(token_id)
    return token is not None and token.state in AT_WORK and token_id not in state.deferred


def offer_of(state: RunState, effect: f.RunTask, tracing: Tracing | None = None) -> f.OfferWork:
    """An attempt as an offer, with everything a worker needs."""
    token = state.tokens[effect.token]
    branch = branch_of(state, token.frames)
    node = defining(state, token)
    turn = node.definition.turn
    return f.OfferWork(
        effect.token,
        effect.attempt,
        node.ref,
        effect.input,
        effect.queue or ENGINES,
        key_of(state.graph.workflow_name, effect.slot, _key_in(state, token)),
        workflow=state.graph.workflow_name,
        version=state.graph.version if token.under is None else token.under[0],
        path=token.path,
        recovery=token.recoveries,
        priority=(turn.priority if turn is not None else 1) - state.priority,
        branch=None if branch is MISSING else branch,
        slot=effect.slot,
        retries=token.retries,
        about=run_facts(state) if node.mentions_run else None,
        trace=None if tracing is None else tracing.carried(state.run, state.trace, effect.token, effect.attempt),
    )


def key_of(workflow: str, slot: f.Slot | None, key: Json = None) -> str:
    """Work with the same key shares turns and limits. The key is the node's `concurrency` with its key, else the
    queue's key, else the workflow."""
    if slot is not None:
        name = slot.name if slot.key is None else f"{slot.name}:{_text(slot.key)}"
    else:
        name = workflow if key is None else _text(key)
    name = name or '""'
    return name if len(name) <= KEY_MAX else f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"


def _text(key: Json) -> str:
    return key if isinstance(key, str) else msgspec.json.encode(key, order="deterministic").decode()


def _key_in(state: RunState, token: Token) -> Json:
    """The key of the node's queue in the visit's scope; None if it has no value, and the workflow's name stands in."""
    source = defining(state, token).queue_key
    if source is None:
        return None
    try:
        key = source.evaluate(TokenView(state, token.frames, token.last_error, None, token))
    except EvaluationError:
        return None
    return None if key is MISSING else key


ENDS_TOGETHER_MS = 50
"""Short leases that end within this time share one look, which also covers some milliseconds between two clocks."""


class ClaimSweep:
    """Looks for expired claims of the runs owned here: three times in the length of a lease, when a shorter lease ends
    that was given in this process, and when runs were taken over. The only owner of a store makes all its offers, so it
    looks only while there are any: an idle engine on a file has nothing to do."""

    def __init__(self, coordinator: Coordinator, work: WorkStore, clock: Clock, lease_ms: int) -> None:
        self._coordinator = coordinator
        self._work = work
        self._clock = clock
        self._every_ms = max(1, lease_ms // 3)
        self._patience_ms = lease_ms
        self._not_before = 0
        self._alarm: Alarm | None = None
        self._looking = asyncio.Lock()
        self._closed = False
        self._ends: dict[int, Alarm] = {}
        self._is_alone = not coordinator.shards.is_shared

    def open(self) -> None:
        self._later()

    def soon(self) -> None:
        """Looks now: runs were taken over, and their claims may have expired meanwhile."""
        if not self._closed:
            self._coordinator.spawn(self._reliably())

    def offered(self) -> None:
        """Looks from time to time: there is an offer, which a worker may claim and lose."""
        if self._alarm is None:
            self._later()

    def leased(self, lease_ms: int) -> None:
        """Looks when a lease has ended that is too short to wait for the next look. Ends close together share one."""
        end = (self._clock.now() + lease_ms) // ENDS_TOGETHER_MS + 1
        if lease_ms <= self._every_ms and end not in self._ends and not self._closed:
            self._ends[end] = self._clock.call_at(end * ENDS_TOGETHER_MS, lambda: self._ended(end))

    def _ended(self, end: int) -> None:
        del self._ends[end]
        self.soon()

    def close(self) -> None:
        self._closed = True
        for alarm in self._ends.values():
            alarm.cancel()
        self._ends.clear()
        if self._alarm is not None:
            self._alarm.cancel()

    def _later(self) -> None:
        if not self._closed:
            self._alarm = self._clock.call_at(self._clock.now() + self._every_ms, self._look)

    def _look(self) -> None:
        self._alarm = None
        if self._is_alone:
            self._coordinator.spawn(self._look_while_offered())
            return
        self._later()
        if not self._looking.locked():
            self._coordinator.spawn(self._reliably())

    async def _look_while_offered(self) -> None:
        await self._reliably()
        with suppress(StoreUnavailable):
            if not await self._work.waiting_queues() and not await self._work.queue_rows():
                return
        self.offered()

    async def _reliably(self) -> None:
        """Looks, unless the store failed within the last lease: workers could not renew their claims either, and get
        their full time again before they are presumed dead."""
        if self._clock.now() < self._not_before:
            return
        try:
            await self.sweep()
        except StoreUnavailable as problem:
            self._not_before = self._clock.now() + self._patience_ms
            log.info("could not look for claims that ran out", error=str(problem))

    async def sweep(self) -> None:
        """Reports every claim that has expired by now. Reporting one twice is harmless."""
        async with self._looking:
            shards = self._coordinator.shards.owned
            if not shards:
                return
            for expired in await self._work.expired_claims(shards):
                await self._lose(expired)

    async def _lose(self, expired: ExpiredClaim) -> None:
        run, token = expired.claim.run, expired.claim.token
        if not await self._is_wanted(expired):
            await self._coordinator.drained()  # a decision may still be undone, a dropped offer may not
            if self._coordinator.owns(run) and not await self._is_wanted(expired):
                await self._work.drop_offers([expired.claim])
            return
        log.info("a worker is lost", run=run, visit=token, worker=expired.worker)
        self._coordinator.tell(run, c.LoseWorker(token, expired.attempt, expired.recovery))

    async def _is_wanted(self, expired: ExpiredClaim) -> bool:
        """Whether the run still waits for this very offer."""
        state = await self._coordinator.state(expired.claim.run)
        if state is None or not is_wanted(state, expired.claim.token):
            return False
        token = state.tokens[expired.claim.token]
        return (token.attempt, token.recoveries) == (expired.attempt, expired.recovery)


Wake = Callable[[str], None]
"""Called with the name of a queue that has new work."""


def wake_queues(wake: Wake, decided: list[Decided]) -> None:
    """Calls `wake` for every queue on which durable decisions have offered work, or have let work go that a pause
    held."""
    queues: dict[str, None] = {}
    for one in decided:
        if one.commit is not None and one.commit.effects and one.hot is not None and _offers(one.hot.state):
            for effect in one.commit.effects:
                if type(effect) is f.OfferWork:
                    queues[effect.queue] = None
                elif type(effect) is f.HoldWork and not effect.held:
                    queues.update(dict.fromkeys(_queues_with_work(one.hot.state)))
    for queue in queues:
        wake(queue)


def _queues_with_work(state: RunState) -> Iterator[str]:
    """The queues on which a run may have work that nobody has begun."""
    for token in state.tokens.values():
        if token.state is TokenState.DISPATCHED and is_on_a_queue(state, token):
            yield defining(state, token).definition.queue or ENGINES
