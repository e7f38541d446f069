"""Claimed work that this process cannot carry out: it lacks a function, or an action kind.

Owns what is given back unbegun, how soon its queue is looked at again, and the warning. Promises that such work is
never counted against its run, is open to others at once, and that a process which lacks something neither spins nor
keeps the work behind it waiting. Must not know how work is claimed or begun.

    claim ──► can it be done here? ──► begun
                    │ no
                    └─► set aside, look behind it ──► all given back together; the queue rests: 1 s, 2 s, … 30 s

A queue rests only if nothing in it could be begun; who is told of new work there looks after the first of these pauses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from treadle.actions.protocol import Missing
from treadle.model.definition import Task
from treadle.runtime.base.logs import logger
from treadle.store.work import Claim, Claimed

ASIDE_MAX = 256
"""Of one look into a queue: what lies behind so much is left to others, or to the next look."""
REST_FIRST_S, REST_LAST_S = 1.0, 30.0
"""An operator who has started another worker, or this one with more functions, should not wait long; nor should the
database be asked every second for what cannot be done."""

FORGOTTEN_S = 3 * REST_LAST_S
"""Work that still waits is met again at every look, at most one pause later."""
NAMED_MAX = 8
"""Of one queue: who has to be told more has another problem."""

log = logger("treadle.claims")


async def begin_claimed(
    free: int,
    at_once: int,
    claim: Callable[[int], Awaitable[list[Claimed]]],
    begin: Callable[[Claimed], Awaitable[bool]],
    aside: list[Claim],
) -> int:
    """How much of what was claimed has begun; what has to be given back is put `aside`. Behind what cannot be begun
    here it goes on looking: nobody else may ever take that."""
    begun, limit = 0, min(free, at_once)
    while begun < free and len(aside) < ASIDE_MAX:
        before = len(aside)
        for one in await claim(limit):
            if begun < free and await begin(one):
                begun += 1
            else:
                aside.append(one.claim)
        if len(aside) == before:
            break
        limit = at_once
    return begun


class _Rest(Struct):
    """Of one queue."""

    since: float
    pause: float
    woken: bool = False


class CannotExecute:
    """See the module's docstring. `missing`: what a task needs that is not here; `name`: of this process;
    `offered`: tells others that there is work on a queue."""

    def __init__(
        self,
        missing: Callable[[Task], Missing | None],
        name: str,
        offered: Callable[[str], None] = lambda _queue: None,
        elapsed: Callable[[], float] | None = None,
    ) -> None:
        self._missing = missing
        self._name = name
        self._offered = offered
        self._elapsed = elapsed or asyncio.get_running_loop().time
        self._rests: dict[str, _Rest] = {}
        self._met: dict[str, dict[str, float]] = {}
        """Queue → what was lacking there, and when that was last seen."""

    @property
    def lacks(self) -> dict[str, tuple[str, ...]]:
        """Queue → what work that waits there needs and is not here. What was not met for a while waits no longer."""
        since = self._elapsed() - FORGOTTEN_S
        recent = {queue: sorted(what for what, at in met.items() if at >= since) for queue, met in self._met.items()}
        return {queue: tuple(names[:NAMED_MAX]) for queue, names in recent.items() if names}

    def may_look(self, queue: str) -> bool:
        """Whether it is time to look into a queue."""
        rest = self._rests.get(queue)
        if rest is None:
            return True
        return self._elapsed() >= rest.since + (REST_FIRST_S if rest.woken else rest.pause)

    def woken(self, queue: str) -> None:
        """There is new work in it, which may be of another kind."""
        if queue in self._rests:
            self._rests[queue].woken = True

    def is_beyond(self, claimed: Claimed, task: Task) -> bool:
        """Whether this cannot be done here; the first time, that is said."""
        missing = self._missing(task)
        if missing is None:
            return False
        offer = claimed.offer
        is_new = all(missing.what not in met for met in self._met.values())
        self._met.setdefault(offer.queue, {})[missing.what] = self._elapsed()
        if is_new:
            log.warning(
                f"{self._name} lacks {missing.what} of workflow {offer.workflow!r}: such work is left to others",
                queue=offer.queue,
                node=offer.node,
                why=missing.why,
                remedy=f"{missing.remedy}, or let it serve another queue",
            )
        return True

    def looked(self, queue: str, aside: int, begun: int) -> None:
        """After a look that has given so much back. Others are told: they may have looked while it was in hand here.
        Not when the queue has just rested, or two that cannot do it would wake each other for ever."""
        rest = self._rests.pop(queue, None)
        if not aside:
            return
        if not begun:
            pause = REST_FIRST_S if rest is None else min(rest.pause * 2, REST_LAST_S)
            self._rests[queue] = _Rest(self._elapsed(), pause)
        if rest is None:
            self._offered(queue)
