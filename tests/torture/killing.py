"""The kill torture: engines that die every 50 to 500 ms and are started again at once, while a client goes on.

    ready ── 50…500 ms ──► SIGKILL ──► the next one, from scratch or a standby that has been waiting
      └ sometimes before it is ready: recovery is interrupted too

Owns the rhythm and the journal of kills. In the end one engine is left alive until everything has finished, within a
bound, and is closed properly; then the judge looks.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tests.torture.engine import KILLS
from tests.torture.journal import Journal
from tests.torture.processes import Processes

RHYTHM_S = (0.05, 0.5)
STANDBY = 0.4
"""Rounds with a second engine waiting for the lock of the first."""
EARLY = 0.1
"""Rounds in which an engine is killed while it still opens and recovers; never two in a row, because a worker that is
lost five times is given up for good (`RECOVERIES_MAX`), as it should be."""
START_S = 60.0
"""How long a start may take on a machine that is busy with other things."""


class Killed(Struct):
    """What a torture has done."""

    kills: int = 0
    takeovers: int = 0
    early: int = 0
    seconds: float = 0.0
    settling_seconds: float = 0.0


class Torture:
    """One torture of one database."""

    def __init__(self, place: Path, seed: int, say: Callable[[str], None]) -> None:
        self._place = place
        self._random = random.Random(seed)
        self._seed = seed
        self._say = say
        self._kills = Journal(place / KILLS)
        self.done = Killed()

    def run(self, kills_max: int, seconds_max: float, settle_s: float) -> Killed:
        """Kills so often or so long, then lets everything finish."""
        processes = Processes(self._place / "stderr.log")
        began = time.monotonic()
        try:
            engine = processes.start("engine", self._place)
            processes.wait_ready(engine, START_S)  # the workflows are deployed
            client = processes.start("client", self._place, self._seed)
            processes.wait_ready(client, START_S)
            last = self._kill_many(processes, engine, kills_max, began + seconds_max)
            self.done.seconds = time.monotonic() - began
            self._settle(processes, last, client, settle_s)
        finally:
            processes.close()
        self.done.settling_seconds = time.monotonic() - began - self.done.seconds
        return self.done

    def _kill_many(self, processes: Processes, engine: int, kills_max: int, until: float) -> int:
        """The engine that is alive in the end, ready or not."""
        standby: int | None = None
        early = True  # the first engine has to make the file
        while self.done.kills < kills_max and time.monotonic() < until:
            early = not early and self._random.random() < EARLY
            if not early:
                processes.wait_ready(engine, START_S)
                if self._random.random() < STANDBY:
                    standby = processes.start("engine", self._place, "--wait")
            processes.rest(self._random.uniform(*((0, RHYTHM_S[0]) if early else RHYTHM_S)))
            self._kills.say(pid=engine)
            processes.kill(engine)
            self.done.kills += 1
            self.done.early += early
            self.done.takeovers += standby is not None
            engine, standby = standby or processes.start("engine", self._place), None
            if self.done.kills % 50 == 0:
                self._say(f"{self.done.kills} kills")
        if standby is not None:
            processes.kill(standby)
        return engine

    def _settle(self, processes: Processes, engine: int, client: int, settle_s: float) -> None:
        self._say("no more kills: everything has to finish")
        processes.wait_ready(engine, START_S)
        processes.signal(client, signal.SIGTERM)
        gone = processes.wait("gone", settle_s, client)
        assert gone["code"] == 0, f"the client failed: {gone}; see {self._place}/stderr.log"
        wait_finished(self._place, settle_s)
        processes.signal(engine, signal.SIGTERM)
        gone = processes.wait("gone", settle_s, engine)
        assert gone["code"] == 0, f"the engine did not close properly: {gone}; see {self._place}/stderr.log"


def wait_finished(place: Path, settle_s: float) -> None:
    """Until no run is open, however long that takes within the bound. What is left is the judge's to name."""
    import asyncio

    from tests.torture.engine import DATABASE
    from treadle.model.states import RUN_OPEN
    from treadle.runtime.connecting import connect

    is_open = list(RUN_OPEN)

    async def wait() -> None:
        async with connect(place / DATABASE) as client, asyncio.timeout(settle_s):
            while left := await client.runs(statuses=is_open, limit=100):
                for row in left:
                    await client.run(row.run).wait()

    try:
        asyncio.run(wait())
    except TimeoutError:
        return
