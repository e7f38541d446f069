"""What is done to whom, and when; all of it from a seed, all of it written down.

Owns the rhythm of faults and the journal of them. Two things happen independently: every 0.7 to 3 s somebody is struck,
and every 5 to 40 s the database crashes; where it has a standby, every 15 to 30 s that takes over. Somebody is left:
never more than `HURT_MAX` processes are in trouble at once.
Must not judge.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from tests.torture.journal import Journal
from tests.torture.many.crew import Crew, Victim
from tests.torture.many.roles import LEASE_MS

STRIKE_S = (0.7, 3.0)
RESTART_S = (5.0, 40.0)
FAILOVER_S = (15.0, 30.0)
BACK_S = (1.0, 3.0)
"""How long an old primary takes writes again before it is made a standby."""
DOWN_S = (0.0, 2.0)
"""How long a crashed database stays away, every second time; else it is back at once."""
LEASE_S = LEASE_MS / 1000
HURT_MAX = 3
SKEWS_S = (0, 3_600, -3_600, 7, -7)
"""What the skewed processes believe, from jump to jump; in the beginning the second."""

STRIKES = {
    "kill": 5,
    "stop": 4,
    "term": 2,
    "delay": 2,
    "reset": 3,
    "orphan": 2,
    "hole": 3,
    "deaf": 2,
    "swallow": 4,
    "skew": 3,
    "lock": 2,
    "timeout": 2,
    "flood": 2,
    "terminate": 3,
    "freeze": 2,
}
OF_DATABASE = {
    "lock": (0.2, 1.2),
    "timeout": (0.2, 1.5),
    "flood": (0.5, 2.5),
    "terminate": (0.0, 0.0),
    "freeze": (0.2, 1.2),
}
"""For how many seconds: shorter than a lease and a claim. None of them is a reason to execute anything twice, and the
judge takes none for one; a lease that is lost all the same is written down by whoever loses it."""
OF_LINES = ("delay", "reset", "orphan", "hole", "deaf", "swallow")


class Nemesis:
    """See the module's docstring."""

    def __init__(self, crew: Crew, faults: Journal, seed: int) -> None:
        self._crew = crew
        self._faults = faults
        self._random = random.Random(seed)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._deck: list[str] = []
        self._skew = SKEWS_S[1]
        crew.set_skew(self._skew)
        self.done: Counter[str] = Counter()

    def strike_for(self, seconds: float) -> None:
        """Then everything is healed and everybody is up."""
        until = time.monotonic() + seconds
        self._in(1.0, self._strike)
        self._in(self._random.uniform(*RESTART_S) / 2, self._crash_database)
        if self._crew.standby is not None:
            self._in(self._random.uniform(*FAILOVER_S) / 2, self._fail_over)
        while self._agenda and (when := self._agenda[0][0]) < until:
            self._crew.rest(when - time.monotonic())
            heappop(self._agenda)[2]()
        self._crew.rest(until - time.monotonic())
        self._calm_down()

    def _calm_down(self) -> None:
        """What was going to be healed is healed now, and what follows from that is done; what was going to be struck is
        not: one that was to die in its sleep dies, and is up again."""
        while self._agenda:
            _, _, what = heappop(self._agenda)
            if what not in (self._strike, self._crash_database, self._fail_over):
                what()
        self._crew.set_skew(0)
        self._crew.hands.heal()

    def _in(self, seconds: float, what: Callable[[], None]) -> None:
        heappush(self._agenda, (time.monotonic() + seconds, next(self._numbers), what))

    def _write(self, fault: str, on: str, seconds: float = 0.0) -> None:
        self.done[fault] += 1
        self._faults.say(fault=fault, on=on, ms=round(seconds * 1000))

    def _crash_database(self) -> None:
        self._in(self._random.uniform(*RESTART_S), self._crash_database)
        down = self._random.uniform(*DOWN_S) if self._random.random() < 0.5 else 0.0
        self._write("restart", "server", down)
        self._crew.hands.wake()
        if down:
            self._crew.server.crash()
            self._crew.rest(down)
            self._crew.server.start()
        else:
            self._crew.server.restart()

    def _fail_over(self) -> None:
        """The primary dies, its standby is promoted, the old one comes back and takes writes while the new one is away
        for a moment; then it is made a standby. Only while everybody is well: who has just begun remembers nothing and
        would believe the old one, which nothing but fencing can prevent."""
        if any(one.hurt for one in self._crew.victims) or not self._crew.is_followed():
            self._in(1.0, self._fail_over)
            return
        self._in(self._random.uniform(*FAILOVER_S), self._fail_over)
        for victim in self._crew.victims:
            self._crew.wait_ready(victim)
        self._crew.hands.heal()
        self._write("failover", "server")
        old = self._crew.fail_over()
        self._crew.rest(self._random.uniform(*BACK_S))
        self._write("comeback", "server")
        self._crew.let_back(old)
        for victim in self._crew.victims:
            self._crew.lines.fail("reset", victim.name)
        self._crew.server.crash()
        self._crew.rest(self._random.uniform(*BACK_S))
        self._crew.server.start()
        old.crash()
        self._write("rebuild", "server")
        self._crew.rebuild(old)

    def _strike(self) -> None:
        self._in(self._random.uniform(*STRIKE_S), self._strike)
        fault = self._draw()
        if fault == "skew":
            self._jump()
            return
        if fault in OF_DATABASE:
            self._trouble(fault)
            return
        well = [one for one in self._crew.victims if not one.hurt and (fault in OF_LINES or one.role != "client")]
        if sum(one.hurt for one in self._crew.victims) >= HURT_MAX or not well:
            return
        victim = self._random.choice(well)
        strike: dict[str, Callable[[Victim], None]] = {"kill": self._kill, "stop": self._stop, "term": self._term}
        if fault in strike:
            strike[fault](victim)
        else:
            self._spoil(fault, victim)

    def _draw(self) -> str:
        """From a shuffled deck: a short torture has all of it, too."""
        if not self._deck:
            self._deck = [fault for fault, number in STRIKES.items() for _ in range(number)]
            self._random.shuffle(self._deck)
        return self._deck.pop()

    def _trouble(self, fault: str) -> None:
        seconds = self._random.uniform(*OF_DATABASE[fault])
        if self._crew.hands.strike(fault, seconds):
            self._write(fault, "database", seconds)

    def _jump(self) -> None:
        self._skew = self._random.choice([skew for skew in SKEWS_S if skew != self._skew])
        self._write("skew", "skewed")
        self._crew.set_skew(self._skew)

    def _kill(self, victim: Victim) -> None:
        victim.hurt = True
        self._write("kill", victim.name)
        self._crew.kill(victim)
        self._in(self._random.uniform(0, 4), lambda: self._revive(victim))

    def _revive(self, victim: Victim) -> None:
        self._crew.start(victim)
        victim.hurt = False

    def _stop(self, victim: Victim) -> None:
        """Past its lease. What it wakes up to has long been somebody else's; one in five never wakes up."""
        victim.hurt = True
        seconds = self._random.uniform(1.3, 2.5) * LEASE_S
        self._write("stop", victim.name, seconds)
        self._crew.signal(victim, signal.SIGSTOP)
        dies = self._random.random() < 0.2

        def wake() -> None:
            if dies:
                self._kill(victim)
            else:
                self._crew.signal(victim, signal.SIGCONT)
                victim.hurt = False

        self._in(seconds, wake)

    def _term(self, victim: Victim) -> None:
        """Asked to stop: it hands over and leaves with code 0."""
        victim.hurt = True
        self._write("term", victim.name)
        self._crew.signal(victim, signal.SIGTERM)
        self._in(self._random.uniform(1, 4), lambda: self._replace(victim))

    def _replace(self, victim: Victim) -> None:
        self._crew.wait_gone(victim)
        self._revive(victim)

    def _spoil(self, fault: str, victim: Victim) -> None:
        seconds = 0.0
        if fault in ("delay", "hole", "deaf"):
            victim.hurt = True
            longest = 2.5 * LEASE_S if fault == "hole" else 1.5 * LEASE_S
            seconds = self._random.uniform(0.3, longest)
            self._in(seconds, lambda: self._heal(victim))
        self._write(fault, victim.name, seconds)
        how = {"delay": {"ms": self._random.randint(20, 300)}, "swallow": {"count": self._random.randint(1, 3)}}
        self._crew.lines.fail(fault, victim.name, **how.get(fault, {}))

    def _heal(self, victim: Victim) -> None:
        self._crew.lines.heal(victim.name)
        victim.hurt = False
