"""Queue work that workers claim: the port of stores that many workers share.

Owns the verbs of claiming and the records that travel through them. Promises nothing by itself; `tests/contract` runs
on every store that has it. Must not know a rule: what follows from a lost claim is decided by the run's owner.

Theory of operation
    An offer is a row, made and withdrawn by commits of the run's owner (`OfferWork`, `WithdrawWork`), in the
    transaction of the decision. A worker claims rows for a limited time, renews its claims while it works, and reports
    to the run through the inbox, as every other process does. All times are of the store's own clock.

        owner commits ──► offered ──claim──► claimed ──► the owner decides the result, and withdraws
                             ▲                  │
                             ├── give_back ◄────┤  nothing has been reported yet
                             └── owner offers again: the claim has run out, or its worker stops in good order

Invariants
    1. A row is claimed by one worker at a time. Every claim of it has a greater number than the one before, which is
       part of the name the worker reports by (`Claimed.holder`): a run listens to the newest holder only.
    2. A claim that has run out stays until the run's owner decides what follows: the row cannot be claimed meanwhile.
    3. Smaller priorities first; within one, keys take turns by weight; within a key, what was offered first.
    4. Of a queue and of a key no more is claimed at a time, and no more begins in a second, than the rules given with
       the claims say, over all workers together. The rules come with each claim: a store keeps none.
    5. What a paused run has offered is not claimed until the run goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from treadle.model.effects import OfferWork
from treadle.model.ids import RunId, TokenId
from treadle.store.fairness import Rate


class Claim(Struct, frozen=True):
    """One worker's right to one offer."""

    run: RunId
    token: TokenId
    number: int


class Claimed(Struct, frozen=True):
    """An offer that a worker has claimed."""

    run: RunId
    offer: OfferWork
    worker: str
    number: int

    @property
    def claim(self) -> Claim:
        return Claim(self.run, self.offer.token, self.number)

    @property
    def holder(self) -> str:
        """The name under which the worker reports."""
        return f"{self.worker}#{self.number}"


class ExpiredClaim(Struct, frozen=True):
    """A claim that its worker has not renewed in time."""

    claim: Claim
    attempt: int
    recovery: int
    worker: str


class QueueRules(Struct, frozen=True, omit_defaults=True):
    """The operator's limits and weights of a queue."""

    concurrency: int | None = None
    """Most attempts of the queue at a time, over all workers."""
    rate: Rate | None = None
    key_concurrency: int | None = None
    """Most attempts of each key at a time."""
    key_rate: Rate | None = None
    weights: dict[str, float] = {}
    """Key → its weight in turns; other keys have 1."""

    @property
    def is_limited(self) -> bool:
        limits = (self.concurrency, self.rate, self.key_concurrency, self.key_rate)
        return any(limit is not None for limit in limits)

    @property
    def has_rate(self) -> bool:
        return self.rate is not None or self.key_rate is not None


NO_RULES = QueueRules()


class QueueRow(Struct, frozen=True):
    """The numbers of a queue: waiting, claimed, held."""

    queue: str
    waiting: int
    claimed: int
    held: int
    """Number of offers of paused runs."""
    oldest_ms: int
    """How long the oldest waiting offer has waited."""
    workers: tuple[str, ...] = ()
    """Workers that hold claims."""


@runtime_checkable
class WorkStore(Protocol):
    """The port. Every verb is one transaction."""

    async def claim(
        self, queue: str, worker: str, limit: int, ttl_ms: int, rules: QueueRules = NO_RULES
    ) -> list[Claimed]:
        """Claims up to `limit` offers and returns them in the order in which they should begin. Fewer does not mean
        that no more wait: limits, and other claims at the same moment, may hide them."""

    async def renew(self, worker: str, claims: Sequence[Claim], ttl_ms: int) -> list[Claim]:
        """Renews a worker's claims. Returns those that it has lost: claimed by another, or withdrawn. A claim that has
        run out without the owner noticing is renewed."""

    async def give_back(self, claims: Sequence[Claim]) -> None:
        """Offers claimed work again, as if it had never been claimed. Only for work that was not reported about."""

    async def give_back_strays(self, worker: str, held: Sequence[Claim]) -> None:
        """Offers again what the worker has claimed without knowing it, because the answer to a claim got lost. `held`
        are all claims it knows."""

    async def drop_offers(self, claims: Sequence[Claim]) -> None:
        """Removes offers that their run no longer wants; a claim that is not the newest changes nothing."""

    async def expired_claims(self, shards: Sequence[int], limit: int = 1_000) -> list[ExpiredClaim]:
        """Expired claims of runs in these shards, longest expired first."""

    async def bury(self, owner: str) -> None:
        """A worker is known to be dead: its claims have run out."""

    async def waiting_queues(self) -> list[str]:
        """Names of queues with something to claim, limits aside; sorted."""

    async def queue_rows(self) -> list[QueueRow]:
        """Every queue that has work, by name."""
