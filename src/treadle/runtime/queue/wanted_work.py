"""Claims of workers outside as data: the request, the claimed work, and their bounds. Used by `Client.tasks`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.errors import CommandRefused
from treadle.expression.names import name_problem
from treadle.runtime.queue.task_id import APART

Json = Any

LIMIT_MAX = 1_000
LEASE_MIN_MS, LEASE_MAX_MS = 100, 24 * 3_600_000
"""A heartbeat over HTTP needs some milliseconds: a shorter lease would run out between two. A day outlasts a night."""


class ClaimedTask(Struct, frozen=True, kw_only=True):
    """Work for a worker outside."""

    task: str
    run: str
    workflow: str
    node: str
    visit: int
    attempt: int
    queue: str
    kind: str
    config: Json
    input: Json
    idempotency_key: str
    lease_until: int
    execution: Json = None
    trace: dict[str, str] | None = None


class WorkWanted(Struct, frozen=True, kw_only=True):
    """What a worker claims."""

    queues: tuple[str, ...]
    worker: str
    kinds: tuple[str, ...] | None = None
    limit: int = 1
    lease_ms: int = 15_000
    wait_ms: int = 0


def check_wanted(wanted: WorkWanted) -> None:
    named("worker", wanted.worker)
    if APART in wanted.worker:
        raise CommandRefused("BAD_REQUEST", f"the name of a worker has no {APART!r}")
    if not wanted.queues:
        raise CommandRefused("BAD_REQUEST", "name the queues to claim from")
    for queue in wanted.queues:
        named("queue", queue)
    if not 1 <= wanted.limit <= LIMIT_MAX:
        raise CommandRefused("BAD_REQUEST", f"limit is 1 to {LIMIT_MAX}, not {wanted.limit}")
    check_lease(wanted.lease_ms)


def named(what: str, text: str) -> None:
    """Raises CommandRefused(BAD_REQUEST) for a name with something in it that cannot be seen."""
    problem = name_problem(text)
    if problem is not None:
        raise CommandRefused("BAD_REQUEST", f"the {what} {problem}")


def check_lease(lease_ms: int) -> None:
    if not LEASE_MIN_MS <= lease_ms <= LEASE_MAX_MS:
        raise CommandRefused("BAD_REQUEST", f"lease_ms is {LEASE_MIN_MS} to {LEASE_MAX_MS}, not {lease_ms}")
