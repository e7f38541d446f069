"""Claimed work that this process cannot execute, because it lacks a function or an action kind.

Owns the giving back of such work, the pause before its queue is looked at again, and the warning. Promises that such
work never counts against its run and is open to other workers at once; and that a process which lacks something neither
spins nor delays the work behind it. Must not know how work is claimed or begun.

    claim ──► can it be done here? ──► begun
                    │ no
                    └─► set aside, look behind it ──► all given back together; the queue rests: 1 s, 2 s, … 30 s

A queue rests only if none of its work could be begun. A notice of new work shortens the rest to the first pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from treadle.actions.protocol import Missing
from treadle.model.definition import Task
from treadle.runtime.surroundings.logs import logger
from treadle.store.work import Claim, Claimed

ASIDE_MAX = 256
"""Offers set aside by one look into a queue. Work behind so many is left to other workers, or to the next look."""
REST_FIRST_S, REST_LAST_S = 1.0, 30.0
"""An operator who has started another worker, or this one with more functions, should not wait long. The database
should not be asked every second for work that cannot be done."""

FORGOTTEN_S = 3 * REST_LAST_S
"""A missing function is forgotten after this time: waiting work is met again at every look, at most one pause later."""
NAMED_MAX = 8
"""Missing functions listed for one queue. More of them point to another problem."""

log = logger("treadle.claims")


async def begin_claimed(
    free: int,
    at_once: int,
    claim: Callable[[int], Awaitable[list[Claimed]]],
    begin: Callable[[Claimed], Awaitable[bool]],
    aside: list[Claim],
) -> int:
    """Claims and begins up to `free` offers; returns how many have begun. Offers that cannot be begun here are put
    `aside`, to be given back, and the look goes on behind them: perhaps no other worker can take those either."""
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
    """The rest of one queue."""

    since: float
    pause: float
    woken: bool = False


class CannotExecute:
    """See the module's docstring. `missing` says what a task needs that this process lacks; `name` is the name of this
    process; `offered` tells other workers that a queue has work."""

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
        """Queue → missing function → when work that needs it was last seen."""

    def hear(self, offered: Callable[[str], None]) -> None:
        """Calls this, too, when a queue has work that others may be able to do."""
        first = self._offered

        def both(queue: str) -> None:
            first(queue)
            offered(queue)

        self._offered = both

    @property
    def lacks(self) -> dict[str, tuple[str, ...]]:
        """Queue → the functions that waiting work needs and this process lacks. Functions not met for a while are left
        out: that work no longer waits."""
        since = self._elapsed() - FORGOTTEN_S
        recent = {queue: sorted(what for what, at in met.items() if at >= since) for queue, met in self._met.items()}
        return {queue: tuple(names[:NAMED_MAX]) for queue, names in recent.items() if names}

    @property
    def rests(self) -> bool:
        """Whether any queue rests, and is looked at again without a notice."""
        return bool(self._rests)

    def may_look(self, queue: str) -> bool:
        """Whether the queue may be looked at now, or still rests."""
        rest = self._rests.get(queue)
        if rest is None:
            return True
        return self._elapsed() >= rest.since + (REST_FIRST_S if rest.woken else rest.pause)

    def woken(self, queue: str) -> None:
        """A queue has new work, perhaps of another kind: its rest becomes shorter."""
        if queue in self._rests:
            self._rests[queue].woken = True

    def is_beyond(self, claimed: Claimed, task: Task) -> bool:
        """Whether this process cannot execute the task; the first time, the log says why."""
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
        """Called after a look into a queue: `aside` offers were given back, `begun` have begun. Other workers are told,
        because they may have looked while the offers were held here. They are not told if the queue has just rested, or
        two workers that cannot execute the work would wake each other for ever."""
        rest = self._rests.pop(queue, None)
        if not aside:
            return
        if not begun:
            pause = REST_FIRST_S if rest is None else min(rest.pause * 2, REST_LAST_S)
            self._rests[queue] = _Rest(self._elapsed(), pause)
        if rest is None:
            self._offered(queue)
