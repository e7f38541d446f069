"""Holds a gathered batch back for callers that are about to ask again.

Owns the guess that they will. Callers that were answered together (clients of the service, tasks of a program) usually
ask again within a few turns of the event loop, one after the other, because their answers reach them one after the
other. A batch that is sent as soon as the first of them has asked leaves the others to a second one, which costs
another transaction. So after a batch with several waiting callers the next one waits until as many decisions have
gathered, at most for some turns of the loop, and no longer than a few milliseconds if its turns are long. A lone caller
never waits. A loop that has nothing else to do is through with its turns in a tenth of a millisecond.

Promises that a batch which is held back is looked at again. Must not know what was asked.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.runtime.coordinate.gathering import Gathering

TURNS = 32
"""Turns of the loop for which a batch waits. Sixteen clients on loopback need some twenty to send their next requests
(`bench/bench_service.py`)."""
MOST_S = 0.005
"""Seconds for which it waits where turns are long, because functions on the loop calculate."""
LARGE = 256
"""Decisions from which a batch shares its transaction well enough: the next one does not wait."""


class HoldBack:
    """See the module's docstring."""

    def __init__(self, wake: Callable[[], None], clock: Callable[[], float]) -> None:
        self._wake = wake
        """Brings about a turn in which the gathered batch is looked at again."""
        self._clock = clock
        """The loop's clock, in seconds."""
        self._expected = 0
        self._turns = 0
        """Turns for which the gathered batch may still wait."""
        self._until = 0.0
        """When it stops to wait, whatever turns are left."""

    def answered(self, written: Gathering, gathered: Gathering) -> None:
        """A batch was written and its callers have their answers, while another one has gathered."""
        decided = written.decided
        callers = sum(one.item.future is not None for one in decided) if 1 < len(decided) < LARGE else 0
        self._expected = callers + len(gathered.decided)
        if callers > 1:
            self._turns, self._until = TURNS, self._clock() + MOST_S
        else:
            self._turns = 0

    def goes_on(self, gathered: Gathering) -> bool:
        """Whether the gathered batch should wait for another turn of the loop."""
        if not self._turns or len(gathered.decided) >= self._expected or self._clock() >= self._until:
            self._turns = 0
            return False
        self._turns -= 1
        self._wake()
        return True
