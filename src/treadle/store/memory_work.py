"""The reference for queue work: dictionaries, obviously correct.

Owns offers, claims and buckets of a `MemoryStore` that workers share. Promises the contract of `store.work` to the
letter. Every claim looks at all offers: this store defines what the verbs mean, and is not fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from random import Random

from msgspec import Struct

from treadle.model.effects import Effect, HoldWork, OfferWork, WithdrawWork
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.store.fairness import Lane, Rate, share
from treadle.store.memory import MemoryStore
from treadle.store.memory_parts import KeptRun
from treadle.store.packing import pack, unpacking_effects
from treadle.store.port import Commit, OutboxRow
from treadle.store.transfer import Beside
from treadle.store.work import NO_RULES, Claim, Claimed, ExpiredClaim, QueueRow, QueueRules

_unpack = unpacking_effects(lambda _kind, _content: None)


class _Row(Struct):
    run: RunId
    offer: OfferWork
    offered: int
    held: bool
    number: int = 0
    worker: str | None = None
    until: int = 0

    @property
    def lane(self) -> tuple[int, str]:
        return self.offer.priority, self.offer.key

    @property
    def claim(self) -> Claim:
        return Claim(self.run, self.offer.token, self.number)

    @property
    def is_ready(self) -> bool:
        return self.worker is None and not self.held


class _Bucket(Struct):
    tokens: float | None = None
    at: int = 0

    def fill(self, rate: Rate, now: int) -> float:
        self.tokens, self.at = rate.filled(self.tokens, now - self.at), now
        return self.tokens


class QueueMemoryStore(MemoryStore):
    """A `MemoryStore` with the verbs of `store.work`."""

    def __init__(self, shards: int = 1, now: Callable[[], int] | None = None, random: Random | None = None) -> None:
        super().__init__(shards, now)
        self._random = random or Random()
        self._offers: dict[tuple[RunId, TokenId], _Row] = {}
        self._buckets: dict[tuple[str, str | None], _Bucket] = {}

    async def beside(self, runs: Sequence[RunId]) -> Beside:
        found = await super().beside(runs)
        for number, row in enumerate(self._offers.values()):
            if row.run in runs:
                found.outbox.setdefault(row.run, []).append(OutboxRow(number, row.run, row.offer))
        return found

    async def claim(
        self, queue: str, worker: str, limit: int, ttl_ms: int, rules: QueueRules = NO_RULES
    ) -> list[Claimed]:
        now = self._now()
        rows = [row for row in self._offers.values() if row.offer.queue == queue]
        ready = [row for row in rows if row.is_ready]
        at_work = Counter(row.offer.key for row in rows if row.worker is not None)
        limit = min(limit, self._room(queue, None, rules.concurrency, rules.rate, at_work.total(), now))
        lanes = [
            Lane(priority, key, count, self._room_of_key(queue, key, rules, ready, at_work[key], now))
            for (priority, key), count in sorted(Counter(row.lane for row in ready).items())
        ]
        begun: list[Claimed] = []
        for turn in share(lanes, limit, rules.weights, self._random):
            self._spend(queue, None, turn.count)
            self._spend(queue, turn.key, turn.count)
            for row in islice((row for row in ready if row.lane == (turn.priority, turn.key)), turn.count):
                row.worker, row.until, row.number = worker, now + ttl_ms, row.number + 1
                begun.append(Claimed(row.run, row.offer, worker, row.number))
        return begun

    def _room_of_key(
        self, queue: str, key: str, rules: QueueRules, ready: list[_Row], at_work: int, now: int
    ) -> int | None:
        slots = [row.offer.slot.limit for row in ready if row.offer.key == key and row.offer.slot is not None]
        limits = [limit for limit in (rules.key_concurrency, *slots[:1]) if limit is not None]
        if not limits and rules.key_rate is None:
            return None
        return self._room(queue, key, min(limits, default=None), rules.key_rate, at_work, now)

    def _room(
        self, queue: str, key: str | None, concurrency: int | None, rate: Rate | None, at_work: int, now: int
    ) -> int:
        room = 1 << 30
        if concurrency is not None:
            room = concurrency - at_work
        if rate is not None:
            room = min(room, int(self._buckets.setdefault((queue, key), _Bucket()).fill(rate, now)))
        return max(0, room)

    def _spend(self, queue: str, key: str | None, count: int) -> None:
        bucket = self._buckets.get((queue, key))
        if bucket is not None and bucket.tokens is not None:
            bucket.tokens -= count

    async def renew(self, worker: str, claims: Sequence[Claim], ttl_ms: int) -> list[Claim]:
        lost = []
        for claim in claims:
            row = self._held_by(claim)
            if row is None or row.worker != worker:
                lost.append(claim)
            else:
                row.until = self._now() + ttl_ms
        return lost

    async def bury(self, owner: str) -> None:
        await super().bury(owner)
        for row in self._offers.values():
            if row.worker == owner:
                row.until = 0

    async def give_back(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            row = self._held_by(claim)
            if row is not None:
                row.worker = None

    async def give_back_strays(self, worker: str, held: Sequence[Claim]) -> None:
        await self.give_back(
            [row.claim for row in self._offers.values() if row.worker == worker and row.claim not in held]
        )

    async def drop_offers(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            if self._held_by(claim) is not None:
                del self._offers[claim.run, claim.token]

    async def expired_claims(self, shards: Sequence[int], limit: int = 1_000) -> list[ExpiredClaim]:
        now = self._now()
        rows = [row for row in self._offers.values() if row.worker is not None and row.until <= now]
        rows = [row for row in rows if self._shard_of(row.run) in shards]
        return [
            ExpiredClaim(row.claim, row.offer.attempt, row.offer.recovery, row.worker or "")
            for row in sorted(rows, key=lambda row: row.until)[:limit]
        ]

    async def waiting_queues(self) -> list[str]:
        return sorted({row.offer.queue for row in self._offers.values() if row.is_ready})

    async def queue_rows(self) -> list[QueueRow]:
        return [self._queue_row(queue) for queue in sorted({row.offer.queue for row in self._offers.values()})]

    def _queue_row(self, queue: str) -> QueueRow:
        rows = [row for row in self._offers.values() if row.offer.queue == queue]
        ready = [row for row in rows if row.is_ready]
        workers = {row.worker for row in rows if row.worker is not None}
        oldest = min((row.offered for row in ready), default=self._now())
        held = sum(row.worker is None and row.held for row in rows)
        claimed = sum(row.worker is not None for row in rows)
        return QueueRow(queue, len(ready), claimed, held, self._now() - oldest, tuple(sorted(workers)))

    def _held_by(self, claim: Claim) -> _Row | None:
        row = self._offers.get((claim.run, claim.token))
        return row if row is not None and row.worker is not None and row.number == claim.number else None

    def _keep(self, run: KeptRun, commit: Commit, effect: Effect, rows: list[OutboxRow]) -> None:
        if isinstance(effect, OfferWork):
            self._offer(commit, effect)
        elif isinstance(effect, WithdrawWork):
            self._offers.pop((commit.run, effect.token), None)
        elif isinstance(effect, HoldWork):
            for row in self._offers.values():
                if row.run == commit.run:
                    row.held = effect.held
        else:
            super()._keep(run, commit, effect, rows)

    def _offer(self, commit: Commit, offer: OfferWork) -> None:
        """Stores an offer. One that is offered again keeps its place in the line."""
        kept = _unpack(pack(offer))  # whatever the codec loses is lost here too
        assert isinstance(kept, OfferWork)
        held = commit.status is RunStatus.PAUSED
        row = self._offers.get((commit.run, offer.token))
        if row is None:
            self._offers[commit.run, offer.token] = _Row(commit.run, kept, self._now(), held)
        else:
            row.offer, row.worker, row.held = kept, None, held

    def _drop_rows(self, run: RunId) -> None:
        super()._drop_rows(run)
        self._offers = {key: row for key, row in self._offers.items() if key[0] != run}
