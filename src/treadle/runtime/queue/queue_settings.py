"""The settings of queues: limits, rates, weights. Kept as documents, one for each queue.

Owns their form and their place in the store. Promises that every worker on the store follows a change within a few
seconds. Must not enforce them: the store does, claim by claim (`store.work`).
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from treadle.errors import CommandRefused
from treadle.runtime.command.presence import NodeRow
from treadle.runtime.queue.offers import ENGINES
from treadle.runtime.queue.outside_workers import outside_workers
from treadle.store.fairness import Rate as Rate
from treadle.store.port import Store
from treadle.store.work import NO_RULES as NO_RULES
from treadle.store.work import QueueRow, WorkStore
from treadle.store.work import QueueRules as QueueRules

KIND = "queue"
BELIEVED_S = 2.0
"""Seconds that a worker trusts the rules before it reads them again: changes are rare, claims are not."""
_PER_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


def read_rate(text: str) -> Rate:
    """`5/s`, `100/m`, `20/h`, or a plain number a second. Raises CommandRefused."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(?:/([smh]))?", text.strip())
    if match is None or float(match[1]) <= 0:
        raise CommandRefused(
            "BAD_REQUEST", f"a rate is a number a second, minute or hour (5/s, 100/m, 20/h), not {text!r}"
        )
    return Rate(float(match[1]) / _PER_S[match[2] or "s"])


def write_rate(rate: Rate) -> str:
    """A rate as people write it."""
    for unit, seconds in _PER_S.items():
        if rate.per_s * seconds >= 1 or unit == "h":
            break
    return f"{rate.per_s * seconds:g}/{unit}"


def check_rules(rules: QueueRules) -> None:
    """Raises CommandRefused."""
    for name, limit in (("concurrency", rules.concurrency), ("key_concurrency", rules.key_concurrency)):
        if limit is not None and limit < 1:
            raise CommandRefused("BAD_REQUEST", f"{name} of a queue is 1 or more, not {limit}")
    for key, weight in rules.weights.items():
        if not 0 < weight <= 1_000_000:
            raise CommandRefused("BAD_REQUEST", f"the weight of {key!r} is a number above 0, not {weight:g}")


async def put_rules(store: Store, queue: str, rules: QueueRules) -> None:
    """Replaces the rules of a queue; empty rules remove them. Raises CommandRefused."""
    check_rules(rules)
    body: Any = msgspec.to_builtins(rules) or None
    packed = msgspec.json.encode(body, order="deterministic")
    await store.put_document(KIND, queue, hashlib.sha256(packed).hexdigest(), body)


async def all_rules(store: Store) -> dict[str, QueueRules]:
    """Queue → rules. A queue without a document has no limits."""
    documents = await store.documents(KIND)
    return {document.name: msgspec.convert(document.body, QueueRules) for document in documents}


class QueueView(Struct, frozen=True):
    """A queue for display: its figures, its workers and its rules."""

    queue: str
    """"" is the engines' own queue: work without a queue that observes a `concurrency` limit."""
    waiting: int
    claimed: int
    held: int
    """Offers of paused runs: they cannot be claimed until the runs go on."""
    oldest_ms: int
    """How long the oldest waiting offer has waited, in milliseconds."""
    workers: tuple[str, ...]
    """Nodes that claim from it."""
    rules: QueueRules
    lacks: dict[str, tuple[str, ...]] = {}
    """Node → functions it lacks for work that waits in the queue."""
    outside: tuple[str, ...] = ()
    """Workers that claim from it over HTTP."""

    @property
    def is_left_alone(self) -> bool:
        """Whether the queue has no worker, or no worker with all that its work needs."""
        return not self.outside and all(worker in self.lacks for worker in self.workers)


async def queues_of(store: Store, nodes: Sequence[NodeRow], now: int) -> list[QueueView]:
    """Every queue that has work, rules or a worker that names it. Raises CommandRefused if the store has no claims."""
    work = work_of(store)
    rules, rows = await all_rules(store), {row.queue: row for row in await work.queue_rows()}
    outside = await outside_workers(store, now)
    served = {queue for node in nodes for queue in node.queues or ()} | {q for one in outside for q in one.queues}
    views = []
    for queue in sorted(rules.keys() | rows.keys() | served):
        row = rows.get(queue, QueueRow(queue, 0, 0, 0, 0))
        serving = [node for node in nodes if _serves(node, queue)]
        able = {
            node.node for node in serving if queue not in node.lacks
        }  # of two nodes with the same name, one may be able
        views.append(
            QueueView(
                queue,
                waiting=row.waiting,
                claimed=row.claimed,
                held=row.held,
                oldest_ms=row.oldest_ms,
                workers=tuple(node.node for node in serving),
                rules=rules.get(queue, NO_RULES),
                lacks={node.node: node.lacks[queue] for node in serving if node.node not in able},
                outside=tuple(one.worker for one in outside if queue in one.queues),
            )
        )
    return views


def _serves(node: NodeRow, queue: str) -> bool:
    if queue == ENGINES:
        return node.coordinates
    return bool(node.node) and (node.queues is None or queue in node.queues)


def work_of(store: Store) -> WorkStore:
    """The store as a store of claims. Raises CommandRefused if it has none."""
    if not isinstance(store, WorkStore):
        text = "this store has no claims: its engine executes all queue work itself"
        raise CommandRefused("INVALID_STATE", text)
    return store


class Rulebook:
    """The rules of all queues, at most BELIEVED_S old."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rules: dict[str, QueueRules] = {}
        self._until = 0.0

    async def of(self, queue: str) -> QueueRules:
        if asyncio.get_running_loop().time() >= self._until:
            self._rules = await all_rules(self._store)
            self._until = asyncio.get_running_loop().time() + BELIEVED_S
        return self._rules.get(queue, NO_RULES)

    def forget(self) -> None:
        """Reads the rules again at the next question."""
        self._until = 0.0
